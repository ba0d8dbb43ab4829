"""Ops of torch one by one: a sample of the conformance run, its record, and each repair by name."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
import torch
import torch_ops
from torch.nn import functional

import vhlo_tools as vt
from vhlo_tools.integrations.proof import difference, results_of
from vhlo_tools.integrations.torch import export
from vhlo_tools.integrations.torch.graphs import as_numpy

NAN, INF = float("nan"), float("inf")
TOP: Final = 2**63 - 1


class Apply(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def check(importer: Any, function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    expected = torch.utils._pytree.tree_leaves(function(*inputs))
    exported = export(Apply(function), inputs, importer=importer, verify=False)
    found = results_of(exported.artifact, [as_numpy(each, "an input").copy() for each in inputs], 60)
    said = [difference(np.asarray(a), as_numpy(b, "a result")) for a, b in zip(found, expected, strict=True)]
    assert said == [None] * len(said)


def extremes(*shape: int) -> torch.Tensor:
    numbers = [3, NAN, 1, -0.0, 0, NAN, INF, -1, 3, -INF]
    return torch.tensor((numbers * int(np.prod(shape)))[: int(np.prod(shape))]).reshape(shape)


def ramp(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 2, int(np.prod(shape))).reshape(shape).sin()


def scattered(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> Any:
    ways = [(way, included) for way in ("sum", "prod", "amin", "amax", "mean") for included in (True, False)]
    return [x.scatter_reduce(0, index, source, way, include_self=included) for way, included in ways]


def reduced_by_index(x: torch.Tensor, source: torch.Tensor) -> Any:
    index = torch.tensor([0, 2, 0])
    ways = [(way, included) for way in ("prod", "mean", "amax", "amin") for included in (True, False)]
    return [torch.index_reduce(x, 0, index, source, way, include_self=included) for way, included in ways]


def antialiased(x: torch.Tensor) -> Any:
    resize = partial(functional.interpolate, x, antialias=True)
    modes = [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("lanczos", None)]
    return [
        *(resize(size, mode=mode, align_corners=end) for size in ((4, 11), (17, 2)) for mode, end in modes),
        resize(scale_factor=(0.6, 2.1), mode="bicubic"),
    ]


def antialiased_backward(x: torch.Tensor) -> Any:
    backward = torch.ops.aten._upsample_bicubic2d_aa_backward
    return [backward(x, x.shape[2:], [*x.shape[:2], *size], False) for size in ((4, 11), (17, 2))]


def pool_backward(pooled: Any, x: torch.Tensor) -> Any:
    found, places = pooled(x, 2, 1, return_indices=True)
    rank = 2 if pooled is functional.max_pool2d else 3
    backward = getattr(torch.ops.aten, f"max_pool{rank}d_with_indices_backward")
    return backward(found, x, [2] * rank, [1] * rank, [0] * rank, [1] * rank, False, places)


def divided(x: torch.Tensor, y: torch.Tensor) -> Any:
    return (
        *(torch.fmod(x, y), torch.remainder(x, y), torch.floor_divide(x, y)),
        *(torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")),
    )


def bags(weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor) -> Any:
    ways = ("sum", "mean", "max")
    return [functional.embedding_bag(indices, weight, offsets, mode=way, padding_idx=2) for way in ways]


def linear_algebra(a: torch.Tensor, b: torch.Tensor) -> Any:
    solve = torch.linalg.solve
    return solve(a, b), solve(a, b.mT, left=False), torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.cholesky(a)


def searched(bounds: torch.Tensor, values: torch.Tensor) -> Any:
    right = torch.searchsorted(bounds, values, right=True, out_int32=True)
    return torch.searchsorted(bounds, values), right, torch.bucketize(values, bounds[0]), torch.bucketize(2, bounds[0])


def adaptive_pools(x: torch.Tensor) -> Any:
    return [
        *functional.adaptive_max_pool2d(x, (3, None), return_indices=True),
        *functional.adaptive_max_pool2d(x, 1, return_indices=True),
        *functional.adaptive_max_pool1d(x[0], 4, return_indices=True),
        *functional.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True),
    ]


def observed(is_enabled: bool) -> torch.nn.Module:
    layer = torch.ao.quantization.FakeQuantize(quant_min=0, quant_max=255)
    layer.scale.fill_(0.03)
    layer.zero_point.fill_(7)
    layer.enable_fake_quant(is_enabled)
    layer.disable_observer()
    return layer


def sums(x: torch.Tensor) -> Any:
    pooled = functional.avg_pool1d(x[None], 5000), functional.avg_pool2d(x.reshape(1, 50, 100), 50)
    return x.sum(), x.mean(0), x.sum(0, dtype=torch.float32), x.cumsum(0), torch.linalg.vector_norm(x, 3), pooled


def extrema(x: torch.Tensor) -> Any:
    return (x.max(), x.min(), *torch.max(x, 1), *torch.min(x, 0), x.amax(1), x.amin(), x.argmax(1), x.argmin())


BYTES = torch.tensor([[0, 3, 4], [200, 255, 128]], dtype=torch.uint8)
LARGE = torch.tensor([300001, -1, 1, 2, 0, -7])
DIVISORS = torch.tensor([INF, INF, 3, 1, 2, -3, 3, 2, -2, 0])
EYES = torch.eye(3).repeat(2, 1, 1) * 3 + ramp(2, 3, 3) @ ramp(2, 3, 3).mT

#: Of both importers.
REPAIRED: Final[dict[str, tuple[Any, ...]]] = {
    "argmax": (lambda x: (x.argmax(), x.argmin(1, True), x.argmax(0)), extremes(2, 5)),
    "max": (lambda x: (*torch.max(x, 1), *torch.min(x, 0, True)), extremes(2, 5)),
    "sort": (lambda x: (*torch.sort(x), *torch.sort(x, stable=True, descending=True)), extremes(10)),
    "sort_bool": (torch.sort, torch.arange(9) % 2 == 0),
    "topk": (lambda x: (torch.topk(x, 3)[0], torch.topk(x, 3, largest=False)[0]), extremes(10)),
    "topk_uint8": (lambda x: torch.topk(x, 3, largest=False)[0], torch.arange(9).to(torch.uint8)),
    "sign": (lambda x: (torch.sign(x), torch.sign(x > 0)), extremes(10)),
    "pow": (lambda x: (x**3, x**0, torch.pow(2, x.abs().clamp(0, 40))), LARGE),
    "pow_of_tensors": (lambda x: torch.pow(3, x), torch.tensor([TOP, -TOP - 1, 5, 40])),
    "divide": (divided, torch.tensor([1, -4.3, 1e20, NAN, INF, 5, -5, -0.0, 0, 2]), DIVISORS),
    "divide_int": (divided, torch.tensor([TOP, -TOP - 1, 7, -7, 0]), torch.tensor([3, 7, -2, 2, 5])),
    "divide_uint8": (divided, torch.tensor([255, 3, 7]).to(torch.uint8), torch.tensor([3, 7, 2]).to(torch.uint8)),
    "copysign": (torch.copysign, torch.tensor([TOP, -TOP - 1, 7]), torch.tensor([-1, 1, -1])),
    "conv_transpose1d": (
        lambda x, w: functional.conv_transpose1d(x, w, groups=2, stride=2),
        ramp(2, 4, 5),
        ramp(4, 3, 3),
    ),
    "conv_transpose2d": (
        lambda x, w: functional.conv_transpose2d(x, w, groups=2),
        ramp(2, 4, 5, 5),
        ramp(4, 3, 3, 3),
    ),
    "conv_transpose3d": (
        lambda x, w: functional.conv_transpose3d(x, w, groups=3),
        ramp(2, 6, 5, 5, 4),
        ramp(6, 2, 3, 3, 3),
    ),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True), extremes(2, 5, 5)),
    "max_pool2d_int": (
        lambda x: functional.max_pool2d(x, 2, 1, return_indices=True),
        torch.tensor([2**62, 5, 5, TOP, *[-TOP - 1] * 5]).reshape(1, 3, 3),
    ),
    "max_pool2d_backward": (partial(pool_backward, functional.max_pool2d), ramp(2, 3, 5, 6)),
    "max_pool2d_no_stride": (lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2, 2]), ramp(2, 3, 5, 6)),
    "max_pool2d_ceil": (
        lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
        ramp(2, 3, 8, 9),
    ),
    "max_pool3d_ceil": (lambda x: functional.max_pool3d(x, 3, 2, 1, ceil_mode=True), ramp(1, 2, 8, 5, 6)),
    "searchsorted": (
        searched,
        torch.tensor([[1.0, 2, 2, 5], [0, 0, 7, 9]]),
        torch.tensor([[NAN, 2, -INF], [0, 9, 10]]),
    ),
    "nonzero_static": (lambda x: torch.nonzero_static(x, size=4), torch.tensor([[1, 0, 2], [0, 0, 3]])),
    "fake_quantize": (
        lambda x: torch.fake_quantize_per_channel_affine(
            x, torch.tensor([0.1, 0.2]), torch.tensor([3, -1], dtype=torch.int32), 0, -8, 7
        ),
        ramp(2, 9),
    ),
    "antialias": (antialiased, ramp(2, 3, 9, 7)),
    "antialias_double": (antialiased, ramp(2, 3, 9, 7).double()),
    "antialias_uint8": (antialiased, (ramp(2, 3, 9, 7) * 1e4).to(torch.int64).to(torch.uint8)),
    "antialias_backward": (antialiased_backward, ramp(2, 3, 9, 7)),
    "extrema_uint8": (extrema, BYTES),
    "extrema_bool": (lambda x: (*torch.max(x, 1), *torch.min(x, 0)), BYTES > 100),
    "sums_bfloat16": (sums, torch.ones(5000).bfloat16()),
    "sums_float16": (sums, torch.ones(5000).half()),
    "rms_norm_float16": (lambda x: functional.rms_norm(x, [8]), ramp(4, 8).half() * 1000),
    "any_uint8": (lambda x: (x.any(), x.any(0), x.all(1)), BYTES),
    "shift_uint8": (torch.bitwise_right_shift, BYTES, BYTES % 9),
    "clamp_bool": (lambda x, y: (x.clamp(min=y), x.clamp(max=y), torch.clamp_min(x, y)), BYTES > 100, BYTES > 3),
    "ldexp": (lambda x: torch.ldexp(x, torch.tensor([3])), torch.arange(9)),
    "fake_quantize_per_tensor": (
        lambda x: [
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7),
            torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), -8, 7),
            *(observed(enabled)(x) for enabled in (True, False)),
        ],
        ramp(2, 9),
    ),
    "adaptive_max_pool": (adaptive_pools, ramp(2, 4, 7, 10)),
    "adaptive_max_pool_nan": (
        lambda x: [functional.adaptive_max_pool2d(x, size, return_indices=True) for size in ((2, 3), 1)],
        extremes(1, 5, 7),
    ),
    "fftfreq": (
        lambda x: [x[:4] + torch.fft.fftfreq(4), x + torch.fft.fftfreq(9, 0.5), torch.fft.rfftfreq(8)],
        ramp(9),
    ),
}

#: Of torchax; torch-mlir refuses them.
REPAIRED_OF_TORCHAX: Final[dict[str, tuple[Any, ...]]] = {
    "scatter_reduce": (scattered, torch.arange(5), torch.tensor([0, 0, 1, 3]), torch.tensor([-7, -8, 9, 11])),
    "index_reduce": (reduced_by_index, torch.arange(12).reshape(3, 4) - 5, torch.arange(12).reshape(3, 4) * -3),
    "max_pool3d_backward": (partial(pool_backward, functional.max_pool3d), ramp(2, 3, 5, 6)),
    "cummax": (lambda x: (*torch.cummax(x, 1), *torch.cummin(x, 0)), extremes(2, 5)),
    "cumsum": (lambda x: (x.cumsum(0), x.cumprod(0)), torch.tensor([200, 100, 30], dtype=torch.uint8)),
    "kthvalue": (lambda x: torch.kthvalue(x, 4)[0], extremes(10)),
    "cdist": (lambda x: [torch.cdist(x, x, p) for p in (0.0, 1.0, 2.0, 3.0, INF)], ramp(4, 3).double()),
    "complex": (torch.complex, extremes(10), extremes(10).flip(0)),
    "abs_complex": (torch.abs, torch.tensor([3 + 4j, 1e30 + 1e30j, 0])),
    "angle": (torch.angle, extremes(10)),
    "put": (lambda x: x.put(torch.tensor([1, 1, -1]), x[:3], accumulate=True), torch.arange(9)),
    "gamma": (
        lambda x, y: (torch.digamma(x), torch.lgamma(x), torch.igamma(x, y), torch.igammac(x, y)),
        torch.tensor([NAN, INF, 0, -0.0, -1, -INF, 2.5, 0.3]).double(),
        torch.tensor([INF, 2, 0, 1.5, -1, INF, INF, 0.3]).double(),
    ),
    "polygamma": (lambda x: torch.polygamma(1, x), torch.tensor([-8.4784, -1.7, 3, 0.2, INF, NAN])),
    "erfcx": (
        lambda x: (torch.special.erfcx(x), torch.special.log_ndtr(x)),
        torch.tensor([NAN, INF, -3, 8.9, 9.1, 0, 100]),
    ),
    "log_ndtr_far": (torch.special.log_ndtr, torch.tensor([7.4, 8.0, 9.0]).double()),
    "zeta": (
        torch.special.zeta,
        torch.tensor([[127], [1e5], [2**31], [INF], [NAN], [0.5]]),
        torch.tensor([7, -2.0, 1, INF]),
    ),
    "bool_to_float": (lambda x: (torch.special.bessel_j0(x), torch.sin(x), torch.erf(x)), torch.tensor([True, False])),
    "eigvalsh": (lambda x: (torch.linalg.eigvalsh(x), torch.linalg.eigvalsh(x, "U")), ramp(3, 3)),
    "pinv": (lambda x: (torch.linalg.pinv(x), torch.linalg.pinv(x @ x.mT, atol=0.5, hermitian=True)), ramp(3, 4)),
    "linalg": (linear_algebra, EYES, ramp(2, 3, 3)),
    "embedding_bag": (bags, ramp(5, 4), torch.tensor([0, 2, 1, 4, 2, 2]), torch.tensor([0, 2, 2, 4])),
}


@pytest.mark.parametrize("name", REPAIRED)
@pytest.mark.parametrize("importer", ["torchax", "torch-mlir"])
def test_a_repair_of_both_importers(importer: str, name: str) -> None:
    check(importer, *REPAIRED[name])


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", REPAIRED_OF_TORCHAX)
def test_a_repair_of_torchax(name: str) -> None:
    check("torchax", *REPAIRED_OF_TORCHAX[name])


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_an_exponential_of_two_is_rounded_once(kind: str) -> None:
    (group,) = torch_ops.cases("torchax", "^exp2$", samples=1, dtypes=f"^{kind}$")
    assert [each.outcome for each in torch_ops.judge(group)] == ["equal", "equal"]


@pytest.mark.parametrize(
    ("importer", "function", "example", "said"),
    [
        ("torchax", lambda x: functional.avg_pool2d(x, 2), torch.ones(1, 1, 4, 4, dtype=torch.int64), "avg_pool2d"),
        ("torchax", torch.linalg.ldl_factor_ex, torch.eye(3), "linalg_ldl_factor_ex"),
        ("torch-mlir", torch.abs, torch.ones(3, dtype=torch.complex64), "abs"),
        ("torch-mlir", torch.log2, torch.ones(3, dtype=torch.complex64), "log2"),
    ],
)
def test_what_is_listed_is_refused_with_a_remedy(
    importer: Any, function: Any, example: torch.Tensor, said: str
) -> None:
    with pytest.raises(vt.InvalidProgramError, match=rf"aten\.{said}.*test_ops.py:\d+ .*use the importer"):
        export(Apply(function), (example,), importer=importer)


def test_antialiasing_of_a_dynamic_size() -> None:
    resize = partial(functional.interpolate, size=(4, 11), mode="bilinear", antialias=True)
    batch = torch.export.Dim("batch", min=2)
    exported = export(Apply(resize), (ramp(2, 3, 9, 7),), dynamic_shapes=(({0: batch},),))
    (found,) = vt.run(exported.artifact, [ramp(5, 3, 9, 7)])
    assert difference(found, resize(ramp(5, 3, 9, 7)).numpy()) is None
    height = torch.export.Dim("height", min=2)
    with pytest.raises(vt.InvalidProgramError, match=r"antialiased interpolation of a dynamic size.*test_ops\.py:\d+"):
        export(Apply(resize), (ramp(2, 3, 9, 7),), dynamic_shapes=(({2: height},),))


#: A dtype each, which differs.
SAMPLE: Final = (
    *("abs", "add", "addmm", "all", "amax", "any", "argmin", "atan2", "baddbmm", "bitwise_and", "bmm", "cat", "ceil"),
    *("clamp", "clone", "cos", "diag", "dot", "eq", "exp", "expand", "eye", "flip", "floor", "full", "gather", "ge"),
    *(
        "index_put",
        "index_select",
        "isnan",
        "le",
        "log",
        "logical_and",
        "logsumexp",
        "masked_fill",
        "matmul",
        "maximum",
    ),
    *(
        "mean",
        "minimum",
        "mul",
        "narrow",
        "ne",
        "neg",
        "nn.functional.relu",
        "nn.functional.softmin",
        "permute",
        "prod",
    ),
    *("reciprocal", "repeat", "reshape", "roll", "round", "rsqrt", "select", "sigmoid", "sin", "sqrt", "squeeze"),
    *("sub", "sum", "tanh", "tril", "where", "xlogy"),
)


def test_a_sample_of_the_conformance_run() -> None:
    found = []
    for number, name in enumerate(SAMPLE):
        (group,) = torch_ops.cases("torchax", f"^{name}$", samples=1)
        kinds = sorted({each.kind for each in group} - {"complex32"})
        found += torch_ops.judge([each for each in group if each.kind == kinds[number % len(kinds)]])
    assert [each for each in found if each.outcome in ("wrong", "crashed")] == []
    assert sum(each.outcome == "equal" for each in found) > len(SAMPLE)


def test_the_record_has_no_wrong_case() -> None:
    recorded = json.loads(torch_ops.RECORD.read_text())
    for importer in torch_ops.IMPORTERS:
        whole = recorded["counts"][importer]["all"]
        assert whole["equal"] > 0
        assert not {"wrong", "crashed"} & set(whole)
        assert all(why.startswith("refused: ") for reasons in recorded["ops"][importer].values() for why in reasons)
