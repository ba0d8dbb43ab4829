"""The choice of an importer, its limits, and what each takes that the other, or torch itself, trips over."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.xla_cpu import run_on_xla
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export, importing, lifting, torchax as torchax_loading

both_importers = pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])


class Apply(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def ramp(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def check(function: Callable[..., Any], *inputs: torch.Tensor, importer: Any, **options: Any) -> Any:
    """Export a function, compare its results with those of torch, and return what was exported."""
    exported = export(Apply(function), inputs, importer=importer, **options)
    expected = [each.numpy() for each in torch.utils._pytree.tree_leaves(function(*inputs))]
    results = run_on_xla(bytes(exported.artifact), [each.numpy() for each in inputs])
    assert [(each.dtype, each.shape) for each in results] == [(each.dtype, each.shape) for each in expected]
    for result, each in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, each, rtol=2e-5, atol=2e-6)
    return exported


class Attention(nn.Module):
    """Attention as in GPT-2: what torch decomposes it into has other strides, with which the last view is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(12, 36)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.view(2, 5, 3, 4).transpose(1, 2) for each in self.projection(x).split(12, 2))
        mask = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril().expand(2, 1, 5, 5)
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return found.reshape(2, -1, 5, 4).transpose(1, 2).reshape(2, 5, -1).view(-1, 12)


def test_torch_refuses_a_view_after_attention() -> None:
    """If it no longer does, views need not become reshapes."""
    with pytest.raises(ValueError, match="Cannot view a tensor"):
        torch.export.export(Attention(), (ramp(2, 5, 12),)).run_decompositions()


@both_importers
def test_a_view_after_attention(importer: Any) -> None:
    model, x = Attention(), ramp(2, 5, 12)
    exported = export(model, (x,), importer=importer)
    (result,) = run_on_xla(bytes(exported.artifact), [x.numpy()])
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=2e-5, atol=1e-6)


def slices(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, -2:] = 0
    y[-3:-1] = y[:2] * 2
    y[:, :, -1] += 1
    y[1:100, -100:2] = 3
    return y


@both_importers
def test_slices_with_bounds_from_the_end(importer: Any) -> None:
    check(slices, ramp(4, 5, 6), importer=importer)


@both_importers
def test_indices_from_the_end(importer: Any) -> None:
    def counted(x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> Any:
        return x[:, [-2]], x[places], x[:, places - 1], x[places, :, [0, -1]], x.index_put((places,), values)

    check(counted, ramp(4, 5, 3), torch.tensor([-1, 2]), ramp(2, 5, 3) + 7, importer=importer)


@both_importers
def test_indices_from_the_end_of_a_dynamic_size(importer: Any) -> None:
    shapes = (({0: torch.export.Dim("rows", min=3, max=64)}, None),)
    places = torch.tensor([-1, 1, -3])
    exported = export(Apply(lambda x, i: x[i] * 2), (ramp(4, 2), places), dynamic_shapes=shapes, importer=importer)
    for rows in (4, 9):
        (result,) = vt.run(exported.artifact, [ramp(rows, 2).numpy(), places.numpy()])
        np.testing.assert_allclose(result, ramp(rows, 2)[places].numpy() * 2)


class Growing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        y[:, -2:] = 0
        y[-3:-1] = y[:2] * 2
        y[:, :, -1] += 1
        return y


def test_the_limits_of_torch_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifting, "count_from_the_start", lambda graph: None)
    line = Growing.forward.__code__.co_firstlineno
    said = r"torch-mlir cannot convert Growing to StableHLO: "
    place = said + rf"aten\.\w+ at .*test_importers\.py:({line + 2}|{line + 3}): the child process "
    raised = r"; raise the limit, import_{}= \(--import-{}\), or install and use the importer torchax$"
    for options, how in (
        ({"import_memory": 2 << 30}, r"ran out of memory; .* 2\.0 GiB .*" + raised.format("memory", "memory")),
        (
            {"import_timeout": 1.0, "import_memory": 6 << 30},
            r"was terminated after 1 s .*" + raised.format("timeout", "timeout"),
        ),
    ):
        with pytest.raises(vt.InvalidProgramError, match=place + how):
            export(Growing(), (ramp(4, 5, 6),), importer="torch-mlir", **options)


def branches(x: torch.Tensor) -> torch.Tensor:
    inner = torch.cond(x.sum() > 0, lambda y: y.view(-1).sin(), lambda y: y.reshape(-1).cos(), (x,))
    return torch.cond(x.max() > 5, lambda y: y + 1, lambda y: y * 2, (inner,))


def repeated(x: torch.Tensor) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, y: (y.abs().sum() > 1) & (i < 50), lambda i, y: (i + 1, y / 2), (start, x))


def scanned(x: torch.Tensor) -> Any:
    from torch._higher_order_ops.scan import scan

    return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(x.shape[1]), x, dim=0)


def mapped(x: torch.Tensor) -> Any:
    from torch._higher_order_ops.map import map as map_over

    return map_over(lambda rows, y: (rows[0] @ y.T, {"sum": rows[1] + y.sum()}), (x, x.cos()), x.exp())


@pytest.mark.parametrize("function", [branches, repeated, scanned, mapped])
@pytest.mark.parametrize("sign", [1, -1])
def test_control_flow(function: Any, sign: int) -> None:
    check(function, (ramp(3, 4) + 0.5) * sign, importer="torchax")
    check(function, (ramp(3, 4) + 0.5) * sign, importer="auto")


def causal(batch: Any, head: Any, row: Any, column: Any) -> Any:
    return row >= column


def falling(score: Any, batch: Any, head: Any, row: Any, column: Any) -> Any:
    return torch.tanh(score / 3) * 3 - (row - column) * 0.1 * (head + 1)


BLOCKS = create_block_mask(causal, None, None, 5, 5, device="cpu")


@both_importers
@pytest.mark.parametrize(
    ("heads", "options"),
    [
        (4, {}),
        (4, {"score_mod": falling, "return_lse": True}),
        (4, {"block_mask": create_block_mask(lambda b, h, i, j: (i > 0) & (j < i), None, None, 5, 5, device="cpu")}),
        (2, {"score_mod": falling, "block_mask": BLOCKS, "enable_gqa": True, "scale": 0.3}),
    ],
)
def test_flexible_attention(heads: int, options: dict[str, Any], importer: Any) -> None:
    torch.manual_seed(0)
    args = torch.randn(2, 4, 5, 8), torch.randn(2, heads, 5, 8), torch.randn(2, heads, 5, 8)
    check(lambda q, k, v: flex_attention(q, k, v, **options), *args, importer=importer)


@both_importers
def test_flexible_attention_reads_tensors(importer: Any) -> None:
    torch.manual_seed(0)

    def biased(q: torch.Tensor, bias: torch.Tensor, lengths: torch.Tensor) -> Any:
        mask = create_block_mask(lambda b, h, i, j: j < lengths[b], 2, None, 5, 5, device="cpu")
        return flex_attention(q, q.cos(), q.sin(), score_mod=lambda s, b, h, i, j: s + bias[h, j - i], block_mask=mask)

    check(biased, torch.randn(2, 4, 5, 8), torch.randn(4, 5), torch.tensor([2, 5]), importer=importer)


def frequencies(x: torch.Tensor) -> Any:
    found = torch.fft.rfft(x)
    return found.real, found.imag, found, torch.fft.irfft(found * 2j, n=x.shape[-1])


def test_complex_numbers() -> None:
    check(frequencies, ramp(3, 8), importer="torchax")

    class Rotation(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.angles = nn.Parameter(torch.polar(torch.ones(4), torch.arange(4.0)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x) * self.angles)

    model, x = Rotation(), ramp(3, 4, 2)
    exported = export(model, (x,), importer="torchax")
    (result,) = run_on_xla(bytes(exported.artifact), [x.numpy()])
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-6)


def windows(x: torch.Tensor) -> torch.Tensor:
    size = x.shape[1]
    return torch.as_strided(x * 2, (x.shape[0], size - 3, 4), (size, 1, 1)).mean(-1)


@both_importers
def test_strides_of_a_dynamic_batch(importer: Any) -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = export(Apply(windows), (ramp(3, 9),), dynamic_shapes=(({0: batch},),), importer=importer)
    for rows in (3, 7):
        (result,) = vt.run(exported.artifact, [ramp(rows, 9).numpy()])
        np.testing.assert_allclose(result, windows(ramp(rows, 9)).numpy(), rtol=1e-5)


@both_importers
def test_strides_are_those_of_the_memory(importer: Any) -> None:
    def strided(x: torch.Tensor) -> Any:
        y = x * 2
        return y.t().as_strided((2, 3), (1, 2)), y[1:].as_strided((2, 2), (3, 1)), y.as_strided((3,), (2,), 1)

    check(strided, ramp(4, 5), importer=importer)
    message = r"as_strided of a slice, or of another tensor that is not all of its memory"
    for function in (
        lambda x: (x * 2)[:, :2].as_strided((2, 2), (3, 1)),
        lambda x: (x + 1)[1:].as_strided((2,), (1,), 0),
    ):
        with pytest.raises(vt.InvalidProgramError, match=message):
            check(function, ramp(4, 5), importer=importer)


def test_two_dynamic_sizes_that_depend_on_each_other() -> None:
    half = torch.export.Dim("half", min=2, max=8)
    rows = torch.export.Dim("rows")
    shapes = (({0: rows, 1: 2 * half},),)

    def folded(x: torch.Tensor) -> torch.Tensor:
        pairs = x.reshape(x.shape[0] * (x.shape[1] // 2), 2)
        return pairs.sum(0) / x.shape[1] + x.shape[0]

    exported = export(Apply(folded), (ramp(3, 6),), dynamic_shapes=shapes, importer="torchax")
    # One row as well: torch only did not assume that there is one.
    for shape in ((3, 6), (5, 10), (1, 8)):
        (result,) = vt.run(exported.artifact, [ramp(*shape).numpy()])
        np.testing.assert_allclose(result, folded(ramp(*shape)).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(vt.EngineError, match=r"Input shapes do not match the symbolic shape constraint s\d+ <= 8"):
        vt.run(exported.artifact, [ramp(3, 40).numpy()])


@both_importers
def test_locations_are_lines_of_the_module(importer: Any) -> None:
    exported = export(Apply(lambda x: x.sin() + x.cos().sum()), (ramp(4),), importer=importer)
    text = exported.artifact.text(debug_info=True)
    assert '"' + __file__ + '":' in text
    assert "torchax/ops" not in text
    assert "integrations/torch" not in text


def test_both_importers_give_the_same_names_and_findings() -> None:
    made = [
        export(nn.BatchNorm1d(4), (ramp(3, 4),), weights="arguments", importer=each)
        for each in ("torchax", "torch-mlir")
    ]
    one, other = made
    assert (one.inputs, one.outputs, [*one.weights]) == (other.inputs, other.outputs, [*other.weights])
    assert one.findings == other.findings == ()
    assert one.artifact.version == other.artifact.version
    names = [[each.name for each in model.artifact.declared_aliases().parameters] for model in made]
    assert names[0] == names[1] == [*one.inputs, *one.weights]


def test_an_importer_that_does_not_exist() -> None:
    with pytest.raises(vt.InvalidInputError, match="importer is 'onnx': expected one of auto, torchax, torch-mlir"):
        export(nn.Linear(2, 2), (ramp(1, 2),), importer="onnx")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("importer", "message"),
    [
        ("torchax", r"needs torchax and jax, which is not installed: pip install '.\[torchax\]' in a clone"),
        (
            "auto",
            r"needs torchax and jax or torch_mlir, which is not installed: .*\[torchax\]' .* or .*\[torch\]' in a",
        ),
    ],
)
def test_importers_that_are_not_installed(importer: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "find_spec", lambda name: None)
    with pytest.raises(vt.MissingExtraError, match=message):
        export(nn.Linear(2, 2), (ramp(1, 2),), importer=importer)


def test_torchax_that_does_not_fit_this_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchax_loading, "_load", lambda: "AttributeError: no such overload")
    message = (
        rf"torchax \S+ beside torch {torch.__version__.replace('+', '.')} and jax \S+ cannot be imported: "
        r"AttributeError: no such overload; torchax 0\.0\.13 fits torch 2\.12\.0"
    )
    with pytest.raises(vt.ProviderError, match=message):
        export(nn.Linear(2, 2), (ramp(1, 2),), importer="torchax")
    # `auto` goes on with the other one.
    assert export(nn.Linear(2, 2), (ramp(1, 2),)).inputs == ("input",)


def test_importing_torchax_leaves_torch_as_it_is() -> None:
    from torch._decomp import global_decomposition_table

    fast, table = torch.backends.mha.get_fastpath_enabled(), dict(global_decomposition_table["post_autograd"])
    torchax_loading._load.cache_clear()
    torchax_loading.load_torchax()
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert global_decomposition_table["post_autograd"] == table
    assert "ENABLE_RUNTIME_UPTIME_TELEMETRY" not in os.environ
    with pytest.raises(AttributeError):
        torch.ops.aten.prod.dim_of_no_name  # noqa: B018


def test_exporting_leaves_the_settings_of_jax() -> None:
    import jax
    import jax.numpy as jnp

    whole = jax.config.jax_include_full_tracebacks_in_locations
    export(Apply(lambda x: x.double() * 2), (ramp(3),), importer="torchax")
    assert jnp.arange(3.0).dtype == jnp.float32
    assert jax.config.jax_include_full_tracebacks_in_locations == whole
