"""Models of text, recommenders, and graphs."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch_models.vision import torchvision

from torch_program_cases.registry import Of, case, ints, linear, mlp, of, rand

# Text


def rotated(x: torch.Tensor, start: Any = 0) -> torch.Tensor:
    angles = (torch.arange(x.shape[-2]) + start)[:, None] * 10000.0 ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    one, two = x.chunk(2, -1)
    return torch.cat([one * angles.cos() - two * angles.sin(), one * angles.sin() + two * angles.cos()], -1)


def grouped(m: Any, x: torch.Tensor) -> torch.Tensor:
    q = m.q(x).unflatten(-1, (4, 4)).transpose(1, 2)
    k, v = m.kv(x).unflatten(-1, (2, 2, 4)).permute(2, 0, 3, 1, 4)
    found = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
    return m.o(found.transpose(1, 2).flatten(2))


def cached(m: Any, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, at: torch.Tensor) -> Any:
    q, k, v = m.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
    keys, values = keys.index_copy(2, at, rotated(k, at)), values.index_copy(2, at, v)
    mask = torch.arange(keys.shape[2]) <= at
    return F.scaled_dot_product_attention(rotated(q, at), keys, values, mask[None, None, None]), keys, values


def biased(m: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = m.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
    distance = torch.arange(x.shape[1])[None] - torch.arange(x.shape[1])[:, None]
    slopes = torch.tensor([2.0 ** -(8 * (i + 1) / 2) for i in range(2)])
    scores = q @ k.transpose(-1, -2) / 2 + slopes[:, None, None] * distance.clamp(max=0)
    return (scores.masked_fill(distance > 0, -math.inf).softmax(-1) @ v).transpose(1, 2).flatten(2)


def routed(m: Any, x: torch.Tensor) -> Any:
    weights, experts = m.router(x).softmax(-1).topk(2)
    weights = weights / weights.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for number, expert in enumerate(m.experts):
        chosen = (weights * (experts == number)).sum(-1, keepdim=True)
        out = out + chosen * expert(x)
    load = F.one_hot(experts, 4).sum((0, 1)).float() / x.shape[0]
    return out, (load * m.router(x).softmax(-1).mean(0)).sum()


def dispatched(m: Any, x: torch.Tensor) -> torch.Tensor:
    scores, expert = m.router(x).softmax(-1).max(-1)
    place = (F.one_hot(expert, 4).cumsum(0) - 1).gather(1, expert[:, None]).squeeze(1)
    buffer = torch.zeros(4, 3, x.shape[1]).index_put(
        (expert, place.clamp(max=2)), x * (place < 3)[:, None], accumulate=True
    )
    found = torch.einsum("ecd,edf->ecf", buffer, m.weight)
    return found[expert, place.clamp(max=2)] * (scores * (place < 3))[:, None]


def beam_step(_: Any, logits: torch.Tensor, scores: torch.Tensor, tokens: torch.Tensor) -> Any:
    total = scores[:, :, None] + logits.log_softmax(-1)
    best, flat = total.flatten(1).topk(3)
    beam, token = flat // logits.shape[-1], flat.remainder(logits.shape[-1])
    kept = tokens.take_along_dim(beam[:, :, None].expand(-1, -1, tokens.shape[2]), 1)
    return best, torch.cat([kept, token[:, :, None]], 2), (token == 1).any(1)


def viterbi(m: Any, emissions: torch.Tensor) -> Any:
    score, back = emissions[:, 0], []
    for t in range(1, emissions.shape[1]):
        score, at = (score[:, :, None] + m.transitions + emissions[:, t, None]).max(1)
        back.append(at)
    best = [score.argmax(-1)]
    for each in reversed(back):
        best.append(each.gather(1, best[-1][:, None]).squeeze(1))
    return score.amax(-1), torch.stack(best[::-1], 1)


def crf(m: Any, emissions: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
    alpha = emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        alpha = (alpha[:, :, None] + m.transitions).logsumexp(1) + emissions[:, t]
    gold = emissions.gather(2, tags[:, :, None]).sum((1, 2)) + m.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
    return alpha.logsumexp(-1) - gold


def linear_attention(m: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = m.qkv(x).chunk(3, -1)
    q, k = F.elu(q) + 1, F.elu(k) + 1
    sums = torch.einsum("btd,bte->btde", k, v).cumsum(1)
    return torch.einsum("btd,btde->bte", q, sums) / (q * k.cumsum(1)).sum(-1, keepdim=True)


def chosen_tokens(_: Any, logits: torch.Tensor) -> torch.Tensor:
    ordered, places = logits.sort(-1, descending=True)
    kept = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) < 0.7
    masked = logits.masked_fill(~torch.zeros_like(kept).scatter(-1, places, kept), -math.inf)
    return masked.log_softmax(-1)


class Translator(nn.Module):
    def __init__(self, is_causal: bool | None) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.table, self.body = nn.Embedding(20, 8), nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        masks = {"tgt_mask": mask, "src_key_padding_mask": source == 0, "tgt_is_causal": self.is_causal}
        found = self.body(self.table(source), self.table(target), **masks)
        return found @ self.table.weight.T


def transformer(name: str, of_class: str, inputs: dict[str, Any], **options: Any) -> None:
    def made() -> nn.Module:
        torchvision()
        import transformers

        config = getattr(transformers, f"{name}Config")(**options)
        return Of(
            lambda m, *x: [
                each
                for each in torch.utils._pytree.tree_leaves(
                    m.model(**dict(zip(inputs, x, strict=True)), return_dict=False)
                )
                if isinstance(each, torch.Tensor)
            ],
            model=getattr(transformers, of_class)(config),
        )

    case(f"transformers {of_class}", made, *inputs.values())


X: Final = rand(2, 5, 8)
of("text: grouped queries, rotated", grouped, X, q=linear(8, 16), kv=linear(8, 16), o=linear(16, 8))
of(
    "text: a step with a cache",
    cached,
    rand(1, 1, 8),
    rand(1, 2, 6, 4),
    rand(1, 2, 6, 4),
    torch.tensor([3]),
    qkv=linear(8, 24),
)
of("text: linear biases", biased, X, qkv=linear(8, 24))
of(
    "text: mixture of experts",
    routed,
    rand(6, 8),
    router=linear(8, 4),
    experts=lambda: nn.ModuleList([mlp(8, 16, 8)() for _ in range(4)]),
)
of(
    "text: experts of a capacity",
    dispatched,
    rand(6, 8),
    router=linear(8, 4),
    weight=lambda: nn.Parameter(rand(4, 8, 8)),
)
of("text: beam step", beam_step, rand(2, 3, 9), rand(2, 3), ints(9, 2, 3, 4))
of("text: Viterbi", viterbi, rand(2, 5, 4), transitions=lambda: nn.Parameter(rand(4, 4)))
of("text: conditional random field", crf, rand(2, 5, 4), ints(4, 2, 5), transitions=lambda: nn.Parameter(rand(4, 4)))
of("text: linear attention", linear_attention, X, qkv=linear(8, 24))
of("text: nucleus", chosen_tokens, rand(2, 9) * 3)
case("text: translator", lambda: Translator(True), ints(20, 2, 6), ints(20, 2, 4))
case("text: translator that looks at its mask", lambda: Translator(None), ints(20, 2, 6), ints(20, 2, 4))
of(
    "text: convolutions over tokens",
    lambda m, i: torch.cat([each(m.table(i).mT).relu().amax(-1) for each in m.layers], 1),
    ints(20, 2, 9),
    table=lambda: nn.Embedding(20, 6, max_norm=None),
    layers=lambda: nn.ModuleList([nn.Conv1d(6, 4, size) for size in (2, 3, 4)]),
)

IDS: Final = {"input_ids": ints(90, 2, 9) + 3}
SMALL: Final[dict[str, Any]] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
CAUSAL: Final[dict[str, Any]] = {**SMALL, "use_cache": False, "pad_token_id": 0}
transformer("FNet", "FNetForMaskedLM", IDS, **SMALL)
transformer("XLNet", "XLNetLMHeadModel", IDS, vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=64)
transformer("MPNet", "MPNetForTokenClassification", IDS, **SMALL)
transformer(
    "GPTJ", "GPTJForCausalLM", IDS, vocab_size=99, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, use_cache=False
)
transformer(
    "Mpt", "MptForCausalLM", IDS, vocab_size=99, d_model=32, n_layers=2, n_heads=4, max_seq_len=64, use_cache=False
)
transformer(
    "Qwen2Moe",
    "Qwen2MoeForCausalLM",
    IDS,
    **CAUSAL,
    num_key_value_heads=2,
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=16,
    shared_expert_intermediate_size=16,
)
transformer(
    "DeepseekV3",
    "DeepseekV3ForCausalLM",
    IDS,
    **CAUSAL,
    num_key_value_heads=4,
    n_routed_experts=4,
    num_experts_per_tok=2,
    n_group=2,
    topk_group=1,
    moe_intermediate_size=16,
    q_lora_rank=16,
    kv_lora_rank=16,
    qk_rope_head_dim=4,
    qk_nope_head_dim=4,
    v_head_dim=8,
    first_k_dense_replace=1,
)
transformer("Gemma3Text", "Gemma3ForCausalLM", IDS, **CAUSAL, num_key_value_heads=2, head_dim=8, sliding_window=4)
transformer(
    "Mamba2",
    "Mamba2Model",
    IDS,
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=1,
    state_size=8,
    num_heads=8,
    head_dim=8,
    n_groups=2,
    chunk_size=4,
    use_cache=False,
)
transformer("Rwkv", "RwkvModel", IDS, vocab_size=99, hidden_size=32, num_hidden_layers=2, use_cache=False)
transformer(
    "RecurrentGemma",
    "RecurrentGemmaModel",
    IDS,
    **CAUSAL,
    lru_width=32,
    num_key_value_heads=1,
    attention_window_size=8,
    block_types=["recurrent", "attention"],
)
transformer(
    "Pegasus",
    "PegasusForConditionalGeneration",
    {**IDS, "decoder_input_ids": ints(90, 2, 5) + 3},
    vocab_size=99,
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    max_position_embeddings=64,
    use_cache=False,
)
transformer(
    "PatchTST",
    "PatchTSTForPrediction",
    {"past_values": rand(2, 32, 3)},
    num_input_channels=3,
    context_length=32,
    patch_length=8,
    patch_stride=8,
    prediction_length=4,
    d_model=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    ffn_dim=32,
)
transformer(
    "Siglip",
    "SiglipModel",
    {**IDS, "pixel_values": rand(2, 3, 32, 32)},
    text_config={**SMALL, "projection_size": 32},
    vision_config={**SMALL, "image_size": 32, "patch_size": 8},
)
transformer(
    "Yolos",
    "YolosForObjectDetection",
    {"pixel_values": rand(1, 3, 32, 32)},
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=[32, 32],
    patch_size=8,
    num_detection_tokens=5,
)
transformer(
    "AST",
    "ASTForAudioClassification",
    {"input_values": rand(1, 32, 16)},
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    patch_size=8,
    max_length=32,
    num_mel_bins=16,
    frequency_stride=4,
    time_stride=4,
)
transformer(
    "Encodec",
    "EncodecModel",
    {"input_values": rand(1, 1, 320)},
    num_filters=4,
    hidden_size=8,
    codebook_size=16,
    codebook_dim=8,
    upsampling_ratios=[4, 2],
    num_lstm_layers=1,
    kernel_size=3,
    target_bandwidths=[24.0],
)


# Recommenders and graphs


def dlrm(
    m: Any, dense: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    features = torch.stack([m.bottom(dense), m.bag(indices, offsets, weights), m.other(indices[:3])], 1)
    products = features @ features.mT
    rows, columns = torch.tril_indices(3, 3, -1)
    return m.top(torch.cat([features[:, 0], products[:, rows, columns]], 1)).sigmoid()


def factorization(m: Any, i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    v = m.factors(i) * x[..., None]
    return m.bias(i).squeeze(-1).mul(x).sum(1) + 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)


def convolved(m: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    degree = torch.zeros(x.shape[0]).index_add(0, target, torch.ones(target.shape[0])) + 1
    norm = (degree[source] * degree[target]).rsqrt()
    for layer in m.layers:
        h = layer(x)
        x = F.relu(torch.zeros_like(h).index_add(0, target, h[source] * norm[:, None]) + h / degree[:, None])
    return x


def graph_attention(m: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    source, target = edges
    h = m.layer(x)
    scores = F.leaky_relu((torch.cat([h[source], h[target]], -1) * m.attend).sum(-1), 0.2)
    largest = torch.full((x.shape[0],), -math.inf).scatter_reduce(0, target, scores, "amax")
    weights = (scores - largest[target]).exp()
    total = torch.zeros(x.shape[0]).scatter_add(0, target, weights)
    return torch.zeros_like(h).index_add(0, target, h[source] * (weights / total[target])[:, None])


def point_cloud(m: Any, x: torch.Tensor) -> torch.Tensor:
    near = torch.cdist(x, x).topk(4, largest=False).indices
    around = x[torch.arange(x.shape[0])[:, None, None], near]
    return m.edge(torch.cat([x[:, :, None].expand_as(around), around - x[:, :, None]], -1)).amax(2).amax(1)


def equivariant(m: Any, h: torch.Tensor, x: torch.Tensor) -> Any:
    difference = x[:, None] - x[None]
    distance = difference.square().sum(-1, keepdim=True)
    n = h.shape[0]
    message = m.edge(torch.cat([h[:, None].expand(n, n, -1), h[None].expand(n, n, -1), distance], -1))
    message = message * ~torch.eye(n, dtype=torch.bool)[..., None]
    return h + message.sum(1), x + (difference * message.mean(-1, keepdim=True)).mean(1)


EDGES: Final = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 0, 4, 3, 3]])
of(
    "recommender: DLRM",
    dlrm,
    rand(3, 5),
    ints(9, 6),
    torch.tensor([0, 2, 5]),
    rand(6),
    bottom=mlp(5, 8, 4),
    bag=lambda: nn.EmbeddingBag(9, 4, mode="sum"),
    other=lambda: nn.Embedding(9, 4),
    top=mlp(7, 8, 1),
)
of(
    "recommender: factorization machine",
    factorization,
    ints(9, 3, 4),
    rand(3, 4),
    factors=lambda: nn.Embedding(9, 5),
    bias=lambda: nn.Embedding(9, 1),
)
of(
    "recommender: two towers",
    lambda m, a, b: F.cosine_similarity(m.one(a)[:, None], m.two(b)[None], -1),
    rand(3, 5),
    rand(4, 6),
    one=mlp(5, 8, 4),
    two=mlp(6, 8, 4),
)
of(
    "recommender: bag of rows of two dimensions",
    lambda m, i: m.bag(i),
    ints(9, 3, 4),
    bag=lambda: nn.EmbeddingBag(9, 4, mode="max"),
)
of(
    "graph: convolutions",
    convolved,
    rand(5, 6),
    EDGES,
    layers=lambda: nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 3)]),
)
of("graph: attention", graph_attention, rand(5, 6), EDGES, layer=linear(6, 4), attend=lambda: nn.Parameter(rand(8)))
of("graph: points", point_cloud, rand(2, 9, 3), edge=mlp(6, 8, 5))
of("graph: equivariant", equivariant, rand(5, 4), rand(5, 3), edge=mlp(9, 8, 4))
of("graph: sparse matrix", lambda m, x: torch.sparse.mm(m.matrix, x), rand(4, 3), matrix=lambda: rand(4, 4).to_sparse())
