"""Models that generate, decide, forecast and simulate."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from torch_program_cases.registry import ints, linear, mlp, of, rand

# Diffusion, flows, and others that generate


def denoised(m: Any, x: torch.Tensor, t: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
    frequencies = torch.exp(-math.log(10000) * torch.arange(4) / 4)
    angles = t[:, None].float() * frequencies
    h = m.into(x) + m.time(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None]
    seen = h.flatten(2).mT
    h = h + m.cross(seen, text, text, need_weights=False)[0].mT.unflatten(2, x.shape[2:])
    noise = m.out(F.silu(m.norm(h)))
    alpha, before = m.alphas[t].view(-1, 1, 1, 1), m.alphas[(t - 10).clamp(min=0)].view(-1, 1, 1, 1)
    clean = ((x - (1 - alpha).sqrt() * noise) / alpha.sqrt()).clamp(-1, 1)
    return before.sqrt() * clean + (1 - before).sqrt() * noise


def vae(m: Any, x: torch.Tensor, noise: torch.Tensor) -> Any:
    mean, spread = m.encoder(x).chunk(2, -1)
    posterior = torch.distributions.Normal(mean, F.softplus(spread))
    found = m.decoder(mean + posterior.stddev * noise)
    prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    return found, torch.distributions.kl_divergence(posterior, prior).sum(-1) + F.mse_loss(
        found, x, reduction="none"
    ).sum(-1)


def vector_quantized(m: Any, x: torch.Tensor) -> Any:
    codes = torch.cdist(x, m.book).argmin(-1)
    found = F.embedding(codes, m.book)
    return x + (found - x).detach(), codes, F.mse_loss(found, x)


def coupled(m: Any, x: torch.Tensor) -> Any:
    total = torch.zeros(x.shape[0])
    for number, layer in enumerate(m.layers):
        one, two = x.chunk(2, 1) if number % 2 else x.chunk(2, 1)[::-1]
        scale, shift = layer(one).chunk(2, 1)
        total = total + scale.tanh().sum(1)
        x = torch.cat([one, two * scale.tanh().exp() + shift], 1) @ torch.linalg.qr(m.mix)[0]
    return x, total + torch.linalg.slogdet(m.mix).logabsdet


def spline(m: Any, x: torch.Tensor) -> Any:
    widths = F.pad(m.widths.softmax(-1).cumsum(-1), (1, 0)) * 2 - 1
    heights = F.pad(m.heights.softmax(-1).cumsum(-1), (1, 0)) * 2 - 1
    at = (torch.searchsorted(widths, x) - 1).clamp(0, 3)
    slope = ((heights[1:] - heights[:-1]) / (widths[1:] - widths[:-1]))[at]
    return heights[at] + (x - widths[at]) * slope, slope.log().sum(-1)


of(
    "diffusion: a step with text",
    denoised,
    rand(2, 3, 4, 4),
    torch.tensor([20, 5]),
    rand(2, 5, 6),
    into=lambda: nn.Conv2d(3, 8, 3, padding=1),
    time=mlp(8, 16, 8),
    cross=lambda: nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True),
    norm=lambda: nn.GroupNorm(2, 8),
    out=lambda: nn.Conv2d(8, 3, 3, padding=1),
    alphas=lambda: torch.linspace(0.99, 0.1, 30),
)
of("generative: variational autoencoder", vae, rand(3, 6), rand(3, 2), encoder=mlp(6, 8, 4), decoder=mlp(2, 8, 6))
of(
    "generative: density, with checks",
    lambda _, x: torch.distributions.Normal(0.0, x.exp(), validate_args=True).log_prob(x),
    rand(3),
)
of("generative: vector quantized", vector_quantized, rand(2, 5, 4), book=lambda: nn.Parameter(rand(7, 4)))
of(
    "flow: coupled",
    coupled,
    rand(3, 6),
    mix=lambda: nn.Parameter(rand(6, 6)),
    layers=lambda: nn.ModuleList([mlp(3, 8, 6)() for _ in range(2)]),
)
of("flow: spline", spline, rand(3, 5), widths=lambda: nn.Parameter(rand(4)), heights=lambda: nn.Parameter(rand(4) * 2))
of(
    "flow: masked autoregressive",
    lambda m, x: F.linear(F.linear(x, m.one * m.one.new_ones(6, 6).tril(-1)).relu(), m.two.tril()),
    rand(3, 6),
    one=lambda: nn.Parameter(rand(6, 6)),
    two=lambda: nn.Parameter(rand(6, 6)),
)

# Decisions, and series in time


def actor_critic(m: Any, state: torch.Tensor, mask: torch.Tensor, action: torch.Tensor) -> Any:
    policy = torch.distributions.Categorical(logits=m.actor(state).masked_fill(~mask, -1e9))
    return policy.log_prob(action), policy.entropy(), m.critic(state).squeeze(-1), policy.probs.argmax(-1)


def squashed(m: Any, state: torch.Tensor, noise: torch.Tensor) -> Any:
    mean, spread = m.policy(state).chunk(2, -1)
    spread = spread.clamp(-5, 2).exp()
    raw = mean + spread * noise
    density = torch.distributions.Independent(torch.distributions.Normal(mean, spread), 1).log_prob(raw)
    return raw.tanh(), density - (2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(-1)


def advantages(_: Any, rewards: torch.Tensor, values: torch.Tensor, done: torch.Tensor) -> torch.Tensor:
    last, found = torch.zeros(rewards.shape[1]), list[torch.Tensor]()
    for t in reversed(range(rewards.shape[0])):
        delta = rewards[t] + 0.99 * values[t + 1] * ~done[t] - values[t]
        last = delta + 0.95 * 0.99 * last * ~done[t]
        found.insert(0, last)
    result = torch.stack(found)
    return (result - result.mean()) / (result.std() + 1e-8)


def n_beats(m: Any, x: torch.Tensor) -> torch.Tensor:
    forecast: Any = 0
    for block in m.blocks:
        theta = block(x)
        x, forecast = x - theta[:, :8] @ m.basis, forecast + theta[:, 8:] @ m.basis[:, :4]
    return forecast


def kalman(_: Any, seen: torch.Tensor) -> Any:
    step, look = torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    mean, cov, found = torch.zeros(2), torch.eye(2), []
    for each in seen:
        mean, cov = step @ mean, step @ cov @ step.T + 0.01 * torch.eye(2)
        gain = torch.linalg.solve(look @ cov @ look.T + 0.1 * torch.eye(1), look @ cov).T
        mean, cov = mean + gain @ (each - look @ mean), (torch.eye(2) - gain @ look) @ cov
        found.append(mean)
    return torch.stack(found), cov


def packed(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    given = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(m.layer(given)[0], batch_first=True)[0]


def forecast_loop(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = c = torch.zeros(x.shape[0], 6)
    for each in x.unbind(1):
        h, c = m.cell(each, (h, c))
    found = []
    for _ in range(3):
        found.append(m.out(h))
        h, c = m.cell(found[-1], (h, c))
    return torch.stack(found, 1)


of(
    "decisions: actor and critic",
    actor_critic,
    rand(3, 5),
    rand(3, 4) > -0.5,
    ints(4, 3),
    actor=mlp(5, 8, 4),
    critic=mlp(5, 8, 1),
)
of("decisions: squashed Gaussian", squashed, rand(3, 5), rand(3, 2), policy=mlp(5, 8, 4))
of("decisions: advantages", advantages, rand(5, 3), rand(6, 3), rand(5, 3) > 0.5)
of(
    "decisions: a draw",
    lambda m, x: torch.distributions.Categorical(logits=m.layer(x)).sample(),
    rand(3, 5),
    layer=linear(5, 4),
)
of(
    "series: N-BEATS",
    n_beats,
    rand(3, 8),
    blocks=lambda: nn.ModuleList([mlp(8, 16, 16)() for _ in range(2)]),
    basis=lambda: rand(8, 8),
)
of("series: Kalman filter", kalman, rand(5, 1))
of("series: packed", packed, rand(2, 5, 3), torch.tensor([3, 5]), layer=lambda: nn.GRU(3, 4, batch_first=True))
of("series: forecast by an LSTM cell", forecast_loop, rand(2, 5, 3), cell=lambda: nn.LSTMCell(3, 6), out=linear(6, 3))
of(
    "series: LSTM with projections",
    lambda m, x: m.layer(x),
    rand(2, 5, 3),
    layer=lambda: nn.LSTM(3, 6, 2, batch_first=True, proj_size=2, bidirectional=True),
)
of(
    "series: soft minimum of alignments",
    lambda _, x, y: torch.cdist(x[None], y[None])[0].neg().logcumsumexp(0).logcumsumexp(1),
    rand(5, 2),
    rand(4, 2),
)
of(
    "series: medians and quantiles",
    lambda _, x: (x.median(1), x.quantile(torch.tensor([0.1, 0.5]), dim=1), x.nanmean(0), x.mode(0).values),
    rand(3, 7),
)

# Gaussian processes, physics, and linear algebra


def gaussian_process(m: Any, x: torch.Tensor, y: torch.Tensor, new: torch.Tensor) -> Any:
    def kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.exp(-0.5 * (torch.cdist(a, b) / m.length.exp()).square())

    factor = torch.linalg.cholesky(kernel(x, x) + 0.1 * torch.eye(x.shape[0]))
    weights = torch.cholesky_solve(y[:, None], factor)
    spread = torch.linalg.solve_triangular(factor, kernel(x, new), upper=False)
    evidence = -0.5 * y @ weights[:, 0] - factor.diagonal().log().sum()
    return (kernel(new, x) @ weights)[:, 0], 1 - spread.square().sum(0), evidence


def pendulum(m: Any, state: torch.Tensor) -> torch.Tensor:
    def slope(s: torch.Tensor) -> torch.Tensor:
        return torch.stack([s[..., 1], -s[..., 0].sin() - 0.1 * m.drag(s)[..., 0]], -1)

    for _ in range(4):
        a = slope(state)
        b = slope(state + 0.05 * a)
        c = slope(state + 0.05 * b)
        state = state + 0.1 / 6 * (a + 2 * b + 2 * c + slope(state + 0.1 * c))
    return state


def bodies(_: Any, x: torch.Tensor, v: torch.Tensor, mass: torch.Tensor) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    def pull(x: torch.Tensor) -> torch.Tensor:
        apart = x[None] - x[:, None]
        return (mass[None, :, None] * apart / (apart.square().sum(-1, keepdim=True) + 0.01) ** 1.5).sum(1)

    def step(i: torch.Tensor, x: torch.Tensor, v: torch.Tensor) -> Any:
        half = v + 0.005 * pull(x)
        moved = x + 0.01 * half
        return i + 1, moved, half + 0.005 * pull(moved)

    return while_loop(lambda i, x, v: i < 5, step, (torch.tensor(0), x, v))[1:]


def heat(_: Any, x: torch.Tensor) -> torch.Tensor:
    for _step in range(5):
        x = x + 0.1 * (sum(torch.roll(x, s, d) for s in (1, -1) for d in (0, 1)) - 4 * x)
    wave = torch.fft.fftfreq(x.shape[0])
    return torch.fft.ifft2(torch.fft.fft2(x) * torch.exp(-(wave[:, None] ** 2 + wave[None] ** 2))).real


def sinkhorn(_: Any, cost: torch.Tensor) -> torch.Tensor:
    f, g = torch.zeros(cost.shape[0]), torch.zeros(cost.shape[1])
    for _step in range(5):
        f = -torch.logsumexp((g[None] - cost) / 0.1, 1) * 0.1
        g = -torch.logsumexp((f[:, None] - cost) / 0.1, 0) * 0.1
    return ((f[:, None] + g[None] - cost) / 0.1).exp()


def whitened(_: Any, x: torch.Tensor) -> torch.Tensor:
    centered = (x - x.mean(0)) / 3
    values, vectors = torch.linalg.eigh(centered.T @ centered + 0.1 * torch.eye(x.shape[1]))
    return centered @ (vectors * values.rsqrt()) @ vectors.T


of(
    "Gaussian process",
    gaussian_process,
    rand(5, 2),
    rand(5),
    rand(3, 2),
    length=lambda: nn.Parameter(torch.tensor(0.3)),
)
of("physics: pendulum", pendulum, rand(3, 2), drag=mlp(2, 4, 1))
of("physics: bodies", bodies, rand(4, 3), rand(4, 3), rand(4).abs())
of("physics: heat", heat, rand(6, 6))
of(
    "physics: quaternions",
    lambda _, q, v: v + 2 * torch.linalg.cross(q[:, :3], torch.linalg.cross(q[:, :3], v) + q[:, 3:] * v),
    F.normalize(rand(3, 4)),
    rand(3, 3),
)
of("algebra: transport", sinkhorn, rand(4, 5).abs())
of("algebra: whitened", whitened, rand(9, 4))
of(
    "algebra: matrix exponential",
    lambda _, x: (torch.linalg.matrix_exp(x), torch.linalg.matrix_power(x, 3), torch.trace(x)),
    rand(4, 4),
)
of("algebra: least squares", lambda _, a, b: torch.linalg.lstsq(a, b).solution, rand(6, 3), rand(6, 2))
of("algebra: covariance", lambda _, a: torch.cov(a.T), rand(6, 3))
of(
    "algebra: singular values",
    lambda _, a, b: (torch.linalg.pinv(a) @ b, torch.linalg.svdvals(a), torch.linalg.matrix_norm(a, 2)),
    rand(6, 3),
    rand(6, 2),
)
of(
    "algebra: density of many variables",
    lambda _, x, c: torch.distributions.MultivariateNormal(torch.zeros(3), c).log_prob(x),
    rand(4, 3),
    torch.eye(3) * 2 + 0.1,
)
of(
    "algebra: products in complex numbers",
    lambda m, x: torch.view_as_real((torch.complex(x, x.flip(0)) @ m.w).conj().resolve_conj().mT) * 2,
    rand(3, 4),
    w=lambda: torch.complex(rand(4, 2), rand(4, 2)),
)
