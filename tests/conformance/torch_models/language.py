"""Models of transformers, made of configurations of few layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from torch_models.case import Case, Tensors, image, rand, tokens
from torch_models.vision import torchvision

#: The sizes of configurations that have them by these names.
SIZES: Final = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def model(
    config: str, of: str, names: tuple[str, ...] = ("input_ids",), *, cached: bool = True, **options: Any
) -> Callable[[], nn.Module]:
    """Return what makes a model of a configuration.

    Args:
        config: The name of the class of the configuration.
        of: The name of the class of the model.
        names: The names of the inputs.
        cached: Whether the model has a cache, which is not used.
        options: What the configuration has beside or in place of the usual sizes.
    """

    def build() -> nn.Module:
        torchvision()
        import transformers

        settings = {**SIZES, **options}
        made = getattr(transformers, config)(**{name: value for name, value in settings.items() if value is not None})
        return Tensors(getattr(transformers, of)(made), *names, **({"use_cache": False} if cached else {}))

    return build


def clip() -> nn.Module:
    torchvision()
    import transformers

    config = transformers.CLIPConfig(
        text_config={**SIZES, "eos_token_id": 98},
        vision_config={**SIZES, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    return Tensors(transformers.CLIPModel(config), "input_ids", "pixel_values")


def whisper() -> nn.Module:
    return model(
        "WhisperConfig", "WhisperModel", ("input_features", "decoder_input_ids"), d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        num_mel_bins=16, max_source_positions=20, max_target_positions=20, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, hidden_size=None, num_attention_heads=None, intermediate_size=None,
    )()  # fmt: skip


def wav2vec2() -> nn.Module:
    return model(
        "Wav2Vec2Config", "Wav2Vec2Model", ("input_values",), cached=False, conv_dim=(16, 16, 16),
        conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_feat_extract_layers=3, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )()  # fmt: skip


def causal(name: str, **options: Any) -> Case:
    """Return a language model of the classes ``NameConfig`` and ``NameForCausalLM``."""
    return Case(model(f"{name}Config", f"{name}ForCausalLM", **options), tokens())


def encoder(name: str, **options: Any) -> Case:
    """Return an encoder of the classes ``NameConfig`` and ``NameModel``, with an attention mask."""

    def inputs() -> tuple[torch.Tensor, ...]:
        mask = torch.ones(2, 9, dtype=torch.long)
        mask[1, 6:] = 0
        return (*tokens()(), mask)

    names = ("input_ids", "attention_mask")
    return Case(model(f"{name}Config", f"{name}Model", names, cached=False, **options), inputs)


def sequence_to_sequence(name: str, of: str, **options: Any) -> Case:
    return Case(model(f"{name}Config", of, ("input_ids", "decoder_input_ids"), **options), tokens(count=2))


GROUPED: Final = {"num_key_value_heads": 2}
UNSIZED: Final = {
    "hidden_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "intermediate_size": None,
}

TRANSFORMERS: Final = {
    "transformers/bert": encoder("Bert"),
    "transformers/distilbert": encoder("DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=64, **UNSIZED),
    "transformers/albert": encoder("Albert", embedding_size=16),
    "transformers/deberta_v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "transformers/gpt2": Case(model("GPT2Config", "GPT2LMHeadModel"), tokens()),
    "transformers/gpt_neox": causal("GPTNeoX"),
    "transformers/opt": causal("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "transformers/bloom": causal("Bloom", n_layer=2, n_head=4),
    "transformers/llama": causal("Llama", **GROUPED),
    "transformers/mistral": causal("Mistral", sliding_window=4, **GROUPED),
    "transformers/mixtral": causal("Mixtral", num_local_experts=4, **GROUPED),
    "transformers/qwen2": causal("Qwen2", **GROUPED),
    "transformers/qwen3": causal("Qwen3", head_dim=8, **GROUPED),
    "transformers/gemma2": causal("Gemma2", head_dim=8, **GROUPED),
    "transformers/phi": causal("Phi"),
    "transformers/falcon": causal("Falcon"),
    "transformers/olmo": causal("Olmo"),
    "transformers/mamba": causal("Mamba", state_size=4),
    "transformers/t5": sequence_to_sequence(
        "T5", "T5Model", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, **UNSIZED
    ),
    "transformers/bart": sequence_to_sequence(
        "Bart", "BartModel", d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, **UNSIZED,
    ),
    "transformers/whisper": Case(
        whisper, lambda: (rand(2, 16, 40), torch.randint(3, 90, (2, 7)))
    ),
    "transformers/wav2vec2": Case(wav2vec2, lambda: (rand(2, 800),)),
    "transformers/clip": Case(clip, lambda: (*tokens()(), rand(2, 3, 32, 32))),
    "transformers/vit": Case(
        model("ViTConfig", "ViTModel", ("pixel_values",), cached=False, image_size=32, patch_size=8), image(32)
    ),
    "transformers/dinov2": Case(
        model("Dinov2Config", "Dinov2Model", ("pixel_values",), cached=False, image_size=32, patch_size=8), image(48)
    ),
    "transformers/segformer": Case(
        model(
            "SegformerConfig", "SegformerForSemanticSegmentation", ("pixel_values",), cached=False,
            hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16, **UNSIZED,
        ),
        image(64),
    ),
}  # fmt: skip
