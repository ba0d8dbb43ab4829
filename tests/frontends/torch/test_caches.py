"""Caches of a static size, which a model writes at a position that it is given: their new values are results."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_models.vision import torchvision

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export

STEPS, SIZE = 4, 6


class Held:
    """An object beside the module, which holds the tensors of its buffers."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values


class Attention(nn.Module):
    def __init__(self, write: Callable[..., Any], *, is_held: bool = False) -> None:
        super().__init__()
        self.write, self.layer = write, nn.Linear(8, 24)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, SIZE, 8), persistent=name == "keys")
        self.held = Held(self.keys, self.values) if is_held else None

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        query, key, value = self.layer(x).split(8, -1)
        cache: Any = self.held or self
        self.write(cache.keys, position, key)
        self.write(cache.values, position, value)
        mask = torch.arange(SIZE) <= position.reshape(-1, 1)
        return nn.functional.scaled_dot_product_attention(query, cache.keys, cache.values, attn_mask=mask)


def by_index(cache: torch.Tensor, position: torch.Tensor, value: torch.Tensor) -> None:
    cache[:, position] = value


def by_slice(cache: torch.Tensor, position: torch.Tensor, value: torch.Tensor) -> None:
    start: Any = position.item()
    torch._check(start >= 0)
    torch._check(start + 1 <= SIZE)
    cache[:, start : start + 1] = value


def by_copy(cache: torch.Tensor, position: torch.Tensor, value: torch.Tensor) -> None:
    cache.index_copy_(1, position, value)


def decode(model: nn.Module, exported: Any, steps: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Run an export step by step with the state that it returns, beside the model."""
    state = dict(exported.weights)
    for step in steps:
        results = vt.run(exported.artifact, [*step, *state.values()])
        found = dict(zip(exported.outputs, results, strict=True))
        state.update({name: value for name, value in found.items() if name in state})
        with torch.no_grad():
            expected = model(*step)
        np.testing.assert_allclose(found["output0"], expected.numpy(), rtol=1e-4, atol=1e-6)
        for name, buffer in model.named_buffers():
            np.testing.assert_allclose(state.get(name, buffer.detach()), buffer.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])
@pytest.mark.parametrize(("write", "is_held"), [(by_index, False), (by_copy, False), (by_copy, True)])
def test_a_cache_is_state(write: Callable[..., Any], is_held: bool, importer: Any) -> None:
    torch.manual_seed(0)
    model = Attention(write, is_held=is_held)
    steps = [(torch.randn(1, 1, 8), torch.tensor([number])) for number in range(STEPS)]
    exported = export(model, steps[0], weights="arguments", importer=importer, verify=True)
    assert exported.outputs == ("output0", "keys", "values")
    assert [*exported.weights][2:] == ["keys", "values"]
    decode(model, exported, steps)


@pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])
def test_a_position_that_python_takes_is_refused(importer: Any) -> None:
    with pytest.raises(vt.InvalidProgramError, match=r"aten\.(_local_scalar_dense\.default|Int\.Tensor) at .*\.py:\d+"):
        export(Attention(by_slice), (torch.randn(1, 1, 8), torch.tensor([0])), weights="arguments", importer=importer)


@pytest.mark.parametrize("importer", ["torchax", "torch-mlir", "auto"])
def test_the_static_cache_of_transformers(importer: Any) -> None:
    torchvision()
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_key_value_heads": 2}
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=32, num_attention_heads=4, max_position_embeddings=32, **sizes))
    cache = {"batch_size": 1, "max_cache_len": SIZE, "device": "cpu"}
    llama.eval().generation_config = GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=SIZE, cache_config=cache
    )

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = TorchExportableModuleWithStaticCache(llama)

        def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=tokens, cache_position=position)

    tokens = torch.randint(0, 32, (1, STEPS))
    steps = [(tokens[:, number : number + 1], torch.tensor([number])) for number in range(STEPS)]
    exported = export(Decoder(), steps[0], weights="arguments", importer=importer, verify=True)
    decode(Decoder(), exported, steps)
