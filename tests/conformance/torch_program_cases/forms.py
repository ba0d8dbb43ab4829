"""Models that are quantized, of open sizes, and steps of training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F  # noqa: N812

from torch_program_cases.language import EDGES, X, biased, convolved, factorization, grouped
from torch_program_cases.registry import case, ints, linear, mlp, of, rand

# Quantized


def int4(m: Any, x: torch.Tensor) -> torch.Tensor:
    low, high = (m.packed & 15).to(torch.int8) - 8, (m.packed >> 4).to(torch.int8) - 8
    weight = torch.stack([low, high], -1).flatten(1).float().view(6, 2, 4) * m.scales[..., None]
    return F.linear(x, weight.flatten(1))


def dynamic_int8(m: Any, x: torch.Tensor) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True) / 127
    rounded = (x / scale).round().clamp(-128, 127).to(torch.int8)
    total = torch._int_mm(rounded, m.weight) if x.shape[0] > 16 else rounded.int() @ m.weight.int()
    return total.float() * scale * m.scales


of("quantized: four bits", int4, rand(3, 8), packed=lambda: ints(256, 6, 4).to(torch.uint8), scales=lambda: rand(6, 2))
of(
    "quantized: rows of int8",
    dynamic_int8,
    rand(18, 8),
    weight=lambda: (rand(8, 8) * 127).to(torch.int8),
    scales=lambda: rand(8),
)
of(
    "quantized: fake, of a tensor",
    lambda m, x: torch.fake_quantize_per_tensor_affine(
        F.linear(x, torch.fake_quantize_per_tensor_affine(m.w, 0.02, 3, -128, 127)), m.s, m.z, 0, 255
    ),
    rand(3, 6),
    w=lambda: nn.Parameter(rand(4, 6)),
    s=lambda: torch.tensor(0.05),
    z=lambda: torch.tensor(7, dtype=torch.int32),
)
of(
    "quantized: dynamic, of torch.ao",
    lambda m, x: m.layer(x),
    rand(3, 6),
    layer=lambda: torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(6, 4)), {nn.Linear}),
)
of(
    "quantized: ternary",
    lambda m, x: F.linear(x, (m.w / m.w.abs().mean()).round().clamp(-1, 1)) * m.w.abs().mean(),
    rand(3, 6),
    w=lambda: nn.Parameter(rand(4, 6)),
)
of("quantized: in half precision", lambda m, x: m.net(x.half()).float(), rand(3, 6), net=lambda: mlp(6, 8, 4)().half())
of("quantized: under autocast", lambda m, x: _autocast(m, x), rand(3, 6), net=mlp(6, 8, 4))

# Of open sizes


def _autocast(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return m.net(x).float().softmax(-1)


def masked_mean(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return (m.layer(x) * mask[..., None]).sum(1) / lengths[:, None]


BATCH, LENGTH = torch.export.Dim("batch", min=2, max=32), torch.export.Dim("length", min=4, max=64)
HEIGHT, WIDTH = (torch.export.Dim(each, min=4, max=16) for each in ("height", "width"))
of(
    "open batch and length: grouped queries",
    grouped,
    X,
    q=linear(8, 16),
    kv=linear(8, 16),
    o=linear(16, 8),
    shapes=({0: BATCH, 1: LENGTH},),
    others=[(rand(3, 7, 8),)],
)
of(
    "open batch and length: masked mean",
    masked_mean,
    X,
    torch.tensor([3, 5]),
    layer=linear(8, 3),
    shapes=({0: BATCH, 1: LENGTH}, {0: BATCH}),
    others=[(rand(3, 9, 8), torch.tensor([1, 9, 4]))],
)
of(
    "open image: convolutions, doubled",
    lambda m, x: F.interpolate(m.layers(x), scale_factor=2, mode="nearest"),
    rand(1, 3, 8, 6),
    layers=lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1)),
    shapes=({2: HEIGHT, 3: WIDTH},),
    others=[(rand(1, 3, 5, 9),)],
)
of(
    "open image: pooled to a class",
    lambda m, x: m.head(F.adaptive_avg_pool2d(m.layer(x).relu(), 1).flatten(1)),
    rand(2, 3, 8, 6),
    layer=lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1),
    head=linear(4, 5),
    shapes=({0: BATCH, 2: HEIGHT, 3: WIDTH},),
    others=[(rand(3, 3, 9, 7),)],
)
of("open length: biased attention", biased, X, qkv=linear(8, 24), shapes=({1: LENGTH},), others=[(rand(2, 9, 8),)])
of(
    "open length: two sequences joined",
    lambda m, a, b: m.layer(torch.cat([a, b], 1)).cumsum(1).flip(1),
    rand(2, 5, 3),
    rand(2, 4, 3),
    layer=linear(3, 2),
    shapes=({1: LENGTH}, {1: torch.export.Dim("other", min=2, max=16)}),
    others=[(rand(2, 4, 3), rand(2, 7, 3))],
)
of(
    "open length: LSTM",
    lambda m, x: m.layer(x)[0],
    X,
    layer=lambda: nn.LSTM(8, 4, batch_first=True),
    shapes=({1: LENGTH},),
    others=[(rand(2, 7, 8),)],
)
of(
    "open batch: LSTM",
    lambda m, x: m.layer(x)[0][:, -1],
    X,
    layer=lambda: nn.LSTM(8, 4, batch_first=True),
    shapes=({0: BATCH},),
    others=[(rand(3, 5, 8),)],
)
of(
    "open batch: sorted, ranked and normalized",
    lambda _, x: (x.sort(0).values, x.topk(2, 0).values, F.normalize(x, dim=0), x.argmax(0)),
    rand(5, 3),
    shapes=({0: BATCH},),
    others=[(rand(7, 3),)],
)
of(
    "open batch: contrasted",
    lambda _, a, b: F.cross_entropy(F.normalize(a) @ F.normalize(b).T / 0.1, torch.arange(a.shape[0])),
    rand(4, 6),
    rand(4, 6),
    shapes=({0: BATCH}, {0: BATCH}),
    others=[(rand(5, 6), rand(5, 6))],
)
of(
    "open batch: factorization machine",
    factorization,
    ints(9, 3, 4),
    rand(3, 4),
    factors=lambda: nn.Embedding(9, 5),
    bias=lambda: nn.Embedding(9, 1),
    shapes=({0: BATCH}, {0: BATCH}),
    others=[(ints(9, 5, 4), rand(5, 4))],
)
of(
    "open edges: graph convolutions",
    convolved,
    rand(5, 6),
    EDGES,
    layers=lambda: nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 3)]),
    shapes=({0: torch.export.Dim("nodes", min=5, max=64)}, {1: torch.export.Dim("edges", min=2, max=64)}),
    others=[(rand(7, 6), ints(7, 2, 9))],
)

# Derivatives and steps of training


class Traced(nn.Module):
    """A function with derivatives, traced to ops of ATen first."""

    def __init__(self, function: Callable[..., Any], *inputs: Any) -> None:
        super().__init__()
        self.traced = make_fx(function, tracing_mode="real")(*inputs)

    def forward(self, *inputs: Any) -> Any:
        return self.traced(*inputs)


def traced(
    name: str, make: Callable[[nn.Module], Callable[..., Any]], model: Callable[[], nn.Module], *inputs: Any
) -> None:
    case(name, lambda: Traced(make(model()), *inputs), *inputs)


def adam(model: nn.Module) -> Callable[..., Any]:
    def step(params: Any, m: Any, v: Any, t: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Any:
        g, loss = grad_and_value(lambda p: F.cross_entropy(functional_call(model, p, (x,)), y, label_smoothing=0.1))(
            params
        )
        norm = torch.stack([each.square().sum() for each in g.values()]).sum().sqrt()
        g = {k: each * (1 / (norm + 1e-6)).clamp(max=1) for k, each in g.items()}
        t = t + 1
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in g}
        v = {k: 0.999 * v[k] + 0.001 * g[k].square() for k in g}
        params = {
            k: params[k] * 0.999 - 0.01 * (m[k] / (1 - 0.9**t)) / ((v[k] / (1 - 0.999**t)).sqrt() + 1e-8) for k in g
        }
        return params, m, v, t, loss

    return step


def penalty(model: nn.Module) -> Callable[..., Any]:
    params = _detached(model)

    def loss(p: Any, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        def critic(x: torch.Tensor) -> torch.Tensor:
            return functional_call(model, p, (x,)).sum()

        norms = grad(critic)(0.3 * real + 0.7 * fake).norm(dim=1)
        return critic(fake) - critic(real) + 10 * (norms - 1).square().mean()

    return lambda real, fake: grad(loss)(params, real, fake)


def per_sample(model: nn.Module) -> Callable[..., Any]:
    params = _detached(model)

    def loss(p: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.huber_loss(functional_call(model, p, (x,)), y)

    return lambda x, y: vmap(grad(loss), (None, 0, 0))(params, x, y)


def wave_equation(model: nn.Module) -> Callable[..., Any]:
    params = _detached(model)

    def residual(x: torch.Tensor) -> torch.Tensor:
        def second(at: int) -> torch.Tensor:
            first = grad(lambda x: functional_call(model, params, (x,)).sin().sum())
            return grad(lambda x: first(x)[at])(x)[at]

        return second(0) - 4 * second(1)

    whole: Callable[..., Any] = vmap(residual)
    return whole


def _detached(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.detach() for name, each in model.named_parameters()}


def _zeros(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.zeros_like(each) for name, each in model.named_parameters()}


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer, self.last = nn.Embedding(9, 8), nn.Linear(8, 24, bias=False), nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        q, k, v = self.layer(F.rms_norm(x, (8,))).chunk(3, -1)
        return self.last((x + (q @ k.mT / 3).softmax(-1) @ v).amax(1))


NET: Final = mlp(4, 8, 3)()
for _name, _model, _x in (("of a perceptron", NET, rand(5, 4)), ("of attention", Attentive(), ints(9, 5, 6))):
    _params = _detached(_model)
    traced(
        f"training: Adam, {_name}",
        adam,
        partial(lambda model: model, _model),
        _params,
        _zeros(_model),
        _zeros(_model),
        torch.tensor(0.0),
        _x,
        ints(3, 5),
    )
traced("training: gradient penalty", penalty, mlp(4, 8, 1), rand(5, 4), rand(5, 4) * 2)
traced("training: gradients of each sample", per_sample, mlp(4, 8, 3), rand(5, 4), rand(5, 3))
traced("physics: wave equation", wave_equation, mlp(2, 8, 1), rand(5, 2))
of("loss of a Gaussian", lambda _, x, y: F.gaussian_nll_loss(x, y, y.exp()), rand(4, 5), rand(4, 5) * 2)
of(
    "losses",
    lambda _, x, y, t: (
        F.triplet_margin_loss(x, y, x.flip(0)),
        F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        F.multi_margin_loss(x, t),
        F.poisson_nll_loss(x, y.exp()),
        F.soft_margin_loss(x, y.sign()),
        F.cosine_embedding_loss(x, y, t.sign() * 2 - 1),
        F.smooth_l1_loss(x, y, beta=0.3),
        F.nll_loss(x.log_softmax(-1), t, ignore_index=1),
    ),
    rand(4, 5),
    rand(4, 5) * 0.9,
    ints(5, 4),
)
