"""Small models of many kinds: exported, read back, run by XLA, and equal to what torch computes."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.xla_cpu import run_on_xla
from torch import nn
from torch.nn import functional

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export

#: How far results may be from those of torch, relatively and absolutely: sums are taken in another order, and
#: torch-mlir writes erf and the like as polynomials.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


class Apply(nn.Module):
    """A function as a module, with modules, parameters and buffers that it finds as attributes."""

    def __init__(self, function: Callable[..., Any], **attributes: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(len(shape))) * 2 - 1


def ints(*values: Any) -> torch.Tensor:
    return torch.tensor(values)


def convolutional() -> nn.Module:
    layers = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, groups=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4), nn.Softmax(-1)),
    )
    layers[1].running_mean.uniform_(-1, 1)
    layers[1].running_var.uniform_(0.5, 2)
    return layers


def norms() -> nn.Module:
    return nn.Sequential(
        *(nn.GroupNorm(2, 4), nn.LayerNorm(5), nn.InstanceNorm1d(4)),
        *(nn.GELU(), nn.SiLU(), nn.Hardswish(), nn.ELU(), nn.Mish()),
    )


def statistics(_: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        *(x.std(), x.var(0), x.norm(), x.logsumexp(0), x.log_softmax(0), x.prod(), x.sum(1), x.mean((0, 1))),
        *(x.amin(0), x.amax(1), (x > 0).any(), (x > 0).all(), x.argmax(0), x.argmin(1)),
    )


def functions(_: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        *(x.erf(), x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.tan(), x.asinh(), (x / 2).atanh(), x.tanh()),
        *(x.exp2(), x.expm1(), x.square(), x.ceil(), x.trunc(), x.frac(), x.sign(), x.sigmoid(), x.round()),
        *(x.abs().log1p(), x.abs().log2(), x.abs().rsqrt(), x.isnan(), x.isinf(), x.isfinite(), x.logical_not()),
        *(x.abs().pow(2.5), torch.atan2(x, x.exp()), x.clamp(-0.5, 0.5), (x > 0) > (x > 0.5), (x > 0) == (x < 0.5)),
    )


#: Each with its inputs: a module, or a function of a module and them, with what the module holds.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...]]] = {
    "convolutional": (convolutional, (rand(2, 3, 16, 16),)),
    "transposed convolution": (
        lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
        (rand(1, 2, 4, 4),),
    ),
    "attention": (
        lambda: Apply(lambda m, x: m.attention(x, x, x), attention=nn.MultiheadAttention(8, 2, batch_first=True)),
        (rand(2, 5, 8),),
    ),
    "causal attention": (
        lambda: Apply(lambda _, q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True)),
        (rand(1, 2, 4, 8), rand(1, 2, 4, 8) + 1, rand(1, 2, 4, 8) * 2),
    ),
    "masked attention": (
        lambda: Apply(lambda _, q, mask: functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)),
        (rand(1, 2, 4, 8), torch.ones(4, 4, dtype=torch.bool).tril()),
    ),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (rand(2, 5, 8),)),
    "lstm": (lambda: Apply(lambda m, x: m.lstm(x), lstm=nn.LSTM(4, 6, batch_first=True)), (rand(2, 5, 4),)),
    "gru": (lambda: Apply(lambda m, x: m.gru(x)[0], gru=nn.GRU(4, 6)), (rand(5, 2, 4),)),
    "embedding": (
        lambda: Apply(lambda m, i: m.table(i).sum(1), table=nn.Embedding(10, 4, padding_idx=0)),
        (ints([1, 2, 0]),),
    ),
    "norms and activations": (norms, (rand(2, 4, 5),)),
    "statistics": (lambda: Apply(statistics), (rand(3, 4),)),
    "functions": (lambda: Apply(functions), (rand(3, 4),)),
    "topk": (lambda: Apply(lambda _, x: torch.topk(x, 2)), (rand(3, 7),)),
    "sort": (lambda: Apply(lambda _, x: torch.sort(x, -1, descending=True)), (rand(3, 7),)),
    "cumsum": (lambda: Apply(lambda _, x: x.cumsum(1)), (rand(3, 7),)),
    "gather": (lambda: Apply(lambda _, x, i: x.gather(1, i)), (rand(3, 7), ints([0, 1], [2, 3], [3, 1]))),
    "scatter": (
        lambda: Apply(lambda _, x, i, u: (x.scatter(1, i, u), x.scatter_add(1, i, u))),
        (rand(3, 7), ints([0, 1], [2, 3], [3, 1]), rand(3, 2)),
    ),
    "index_put": (
        lambda: Apply(lambda _, x, i, u: (x.index_put((i,), u), x.index_put((i,), u, accumulate=True))),
        (rand(3, 7), ints(0, 2), rand(2, 7)),
    ),
    "indexing": (
        lambda: Apply(lambda _, x, i, j: (x[i], x[i, :, j], x[:, 1:], torch.roll(x, 1, 0).flip(2), x.select(1, 2))),
        (rand(3, 7, 4), ints(0, 2), ints(1, 2)),
    ),
    "resized": (
        lambda: Apply(
            lambda _, x: (
                functional.interpolate(x, scale_factor=2, mode="bilinear"),
                functional.interpolate(x, scale_factor=2, mode="nearest"),
                functional.interpolate(x, size=(3, 6), mode="nearest"),
            )
        ),
        (rand(1, 2, 4, 4),),
    ),
    "pooling and padding": (
        lambda: Apply(
            lambda _, x: (
                functional.avg_pool2d(x, 2),
                functional.adaptive_avg_pool2d(x, 2),
                functional.pad(x, (1, 1, 1, 1), mode="reflect"),
                functional.unfold(x, 2),
                functional.pixel_shuffle(x, 2),
            )
        ),
        (rand(1, 4, 4, 4),),
    ),
    "where": (
        lambda: Apply(lambda _, x, mask: torch.where(mask, x, x * 2).masked_fill(mask, -1.0)),
        (rand(3, 4), rand(3, 4) > 0),
    ),
    "boolean buffer": (
        lambda: Apply(
            lambda m, x: x.masked_fill(m.mask, float("-inf")), mask=torch.ones(4, 4, dtype=torch.bool).triu(1)
        ),
        (rand(4, 4),),
    ),
    "loss": (lambda: Apply(lambda _, x, t: functional.cross_entropy(x, t)), (rand(3, 4), ints(1, 2, 0))),
    "one-hot": (lambda: Apply(lambda _, i: functional.one_hot(i, 4)), (ints(1, 2),)),
    "constants": (
        lambda: Apply(lambda _, x: (x + torch.ones(3), torch.arange(3), torch.eye(3), x * torch.tensor([1.0, 2, 3]))),
        (rand(3),),
    ),
    "integers": (
        lambda: Apply(lambda _, i, j: (i // j, i % j, i & j, ~i, i.max(), i.float() / 7)),
        (ints(7, -9), ints(2, 4)),
    ),
    "remainders": (
        lambda: Apply(
            lambda _, i, j, x: (
                *(i % j, i % 4, i % -4, 9 % i, torch.fmod(i, j), torch.fmod(i, 4)),
                *(x % j, x % 0.3, x % -0.3, 1.5 % x, torch.fmod(x, 0.3), i % 2.5, i // j, i // -4),
            )
        ),
        (ints(7, -9, 7, -9), ints(4, 4, -4, -4), rand(4)),
    ),
    "bytes": (lambda: Apply(lambda _, x: x.float() / 255), (torch.arange(3, dtype=torch.uint8) * 100,)),
    "int8 weights": (
        lambda: Apply(lambda m, x: x @ m.w.float(), w=torch.arange(-6, 6, dtype=torch.int8).reshape(4, 3)),
        (rand(2, 4),),
    ),
    "float8 weights": (
        lambda: Apply(lambda m, x: x @ m.w.float(), w=rand(4, 3).to(torch.float8_e4m3fn)),
        (rand(2, 4),),
    ),
    "bf16": (lambda: nn.Linear(4, 3).bfloat16(), (rand(2, 4).bfloat16(),)),
    "f16": (lambda: nn.Linear(4, 3).half(), (rand(2, 4).half(),)),
    "f64": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh()).double(), (rand(2, 4).double(),)),
    "einsum": (lambda: Apply(lambda _, x, y: torch.einsum("bij,bjk->bik", x, y)), (rand(2, 3, 4), rand(2, 4, 5))),
}


def numpy_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    from vhlo_tools.integrations.torch.graphs import as_numpy

    return as_numpy(tensor, "an input")


def compare(results: Any, expected: Any) -> None:
    """Compare what an engine gave with what torch gave."""
    wanted = [each for each in torch.utils._pytree.tree_leaves(expected) if isinstance(each, torch.Tensor)]
    assert len(results) == len(wanted) > 0
    for result, tensor in zip(results, wanted, strict=True):
        array = numpy_of(tensor)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        allowed = TOLERANCE.get(tensor.dtype, 0)
        kind = np.float64 if tensor.dtype in TOLERANCE else result.dtype
        np.testing.assert_allclose(result.astype(kind), array.astype(kind), rtol=allowed, atol=allowed)


both_importers = pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])


# Of torch.export, about what an LSTM does itself.
@pytest.mark.filterwarnings("ignore:The tensor attributes? .*_flat_weights")
@both_importers
@pytest.mark.parametrize("name", MODELS)
def test_a_model(name: str, importer: Any) -> None:
    torch.manual_seed(7)
    build, inputs = MODELS[name]
    model = build().eval()
    expected = model(*inputs)
    program = torch.export.export(model, inputs)
    newest = export(program, importer=importer)
    values = [numpy_of(each) for each in inputs]
    compare(run_on_xla(bytes(newest.artifact), values), expected)

    oldest = newest.artifact.requirements().downgradable_to
    old = export(program, target=oldest, importer=importer)
    assert old.artifact.version == oldest
    assert vt.require(old.artifact, oldest)
    compare(run_on_xla(bytes(old.artifact), values), expected)

    if model.state_dict():
        apart = export(program, weights="arguments", target=oldest, importer=importer)
        assert {*apart.weights} <= {*model.state_dict()}
        assert apart.artifact.version == oldest
        compare(run_on_xla(bytes(apart.artifact), [*values, *apart.weights.values()]), expected)


def dynamic() -> dict[str, tuple[nn.Module, tuple[Any, ...], Any, tuple[Any, ...]]]:
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=32)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    positions = Apply(
        lambda m, i: m.table(i) + m.places(torch.arange(i.shape[1])),
        table=nn.Embedding(10, 4),
        places=nn.Embedding(32, 4),
    )
    return {
        "perceptron": (
            nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.GELU()), (rand(2, 4),), ({0: batch},), (rand(5, 4),)
        ),
        "convolutional": (convolutional(), (rand(2, 3, 16, 16),), ({0: batch},), (rand(3, 3, 16, 16),)),
        "transformer layer": (layer, (rand(2, 5, 8),), ({0: batch, 1: length},), (rand(3, 4, 8),)),
        "positions": (positions, (ints([0] * 5, [1] * 5),), (({1: length},),), (ints([1, 2, 3], [4, 5, 6]),)),
        "reshaped": (
            Apply(lambda _, x: (x.reshape(x.shape[0], -1).flatten(), x.sum(0), x.mean(0), x + x.shape[0])),
            (rand(2, 4, 3),),
            (({0: batch},),),
            (rand(5, 4, 3),),
        ),
        "where": (
            Apply(lambda _, x, mask: torch.where(mask, x, 0.0)),
            (rand(3, 7), rand(3, 7) > 0),
            (({0: batch}, {0: batch}),),
            (rand(4, 7), rand(4, 7) > 0),
        ),
        "concatenated": (
            Apply(lambda _, x: torch.cat([torch.zeros(x.shape[0], 1), x], 1)),
            (rand(3, 7),),
            (({0: batch},),),
            (rand(4, 7),),
        ),
    }  # fmt: skip


@both_importers
@pytest.mark.parametrize("name", dynamic())
def test_dynamic_shapes(name: str, importer: Any) -> None:
    """XLA takes static shapes only, so the reference interpreter runs these, with other sizes than the example's."""
    torch.manual_seed(7)
    model, inputs, shapes, others = dynamic()[name]
    model.eval()
    program = torch.export.export(model, inputs, dynamic_shapes=shapes)
    newest = export(program, importer=importer)
    oldest = newest.artifact.requirements().downgradable_to
    old = export(program, target=oldest, importer=importer)
    assert old.artifact.version == oldest
    for each in (inputs, others):
        for exported in (newest, old):
            compare(vt.run(exported.artifact, [*map(numpy_of, each)]), model(*each))


def test_an_open_image_is_doubled() -> None:
    """torch-mlir has no sizes as floats."""
    model = Apply(lambda _, x: functional.interpolate(x, scale_factor=2, mode="nearest"))
    sizes = {2: torch.export.Dim("height", min=2, max=32), 3: torch.export.Dim("width", min=2, max=32)}
    exported = export(model, (rand(1, 2, 5, 4),), dynamic_shapes=((sizes,),))
    for each in (rand(1, 2, 5, 4), rand(1, 2, 3, 7)):
        compare(vt.run(exported.artifact, [numpy_of(each)]), model(each))
