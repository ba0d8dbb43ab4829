"""Models of images and of sound, and those of torchvision and timm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch_models.vision import torchvision

from torch_program_cases.registry import case, ints, linear, mlp, of, rand

# Vision


def conv(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle, self.up = conv(3, 8), conv(8, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Sequential(conv(16, 8), nn.Conv2d(8, 2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.down(x)
        up = self.up(self.middle(F.max_pool2d(skip, 2)))
        return self.last(torch.cat([skip, F.interpolate(up, skip.shape[-2:], mode="bilinear")], 1))


def atrous(m: Any, x: torch.Tensor) -> torch.Tensor:
    found = [each(x) for each in m.branches]
    pooled = F.interpolate(x.mean((2, 3), keepdim=True), size=x.shape[-2:], mode="bilinear", align_corners=True)
    return F.interpolate(torch.cat([*found, pooled], 1), scale_factor=2.0, mode="bicubic")


def yolo(m: Any, x: torch.Tensor) -> Any:
    y = m.head(x).unflatten(1, (3, 7)).permute(0, 1, 3, 4, 2).sigmoid()
    rows, columns = torch.meshgrid(torch.arange(y.shape[2]), torch.arange(y.shape[3]), indexing="ij")
    centers = (y[..., :2] * 2 - 0.5 + torch.stack([columns, rows], -1)) * 8
    sizes = (y[..., 2:4] * 2) ** 2 * m.anchors.view(1, 3, 1, 1, 2)
    boxes = torch.cat([centers - sizes / 2, centers + sizes / 2], -1).flatten(1, 3)
    return boxes, y[..., 4:].flatten(1, 3)


def centers(_: Any, heat: torch.Tensor, offset: torch.Tensor) -> Any:
    peaks = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
    scores, places = peaks.flatten(1).topk(5)
    kind, place = places // 64, places % 64
    found = offset.flatten(2).gather(2, place[:, None].expand(-1, 2, -1))
    return scores, kind, (place % 8 + found[:, 0]), torch.div(place, 8, rounding_mode="floor") + found[:, 1]


def matrix_nms(_: Any, boxes: torch.Tensor, scores: torch.Tensor) -> Any:
    scores, order = scores.sort(descending=True)
    overlap = torchvision().ops.box_iou(boxes[order], boxes[order]).triu(1)
    return scores * torch.exp(-2 * overlap**2).amin(0), order


def transformed(m: Any, x: torch.Tensor) -> torch.Tensor:
    theta = m.locate(F.adaptive_avg_pool2d(x, 4).flatten(1)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
    return F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=False), "bicubic", "border", False)


def deformed(m: Any, x: torch.Tensor) -> torch.Tensor:
    offsets = m.offsets(x).permute(0, 2, 3, 1)
    lines = [torch.linspace(-1, 1, size) for size in x.shape[-2:]]
    grid = torch.stack(torch.meshgrid(*lines, indexing="ij")[::-1], -1)
    return F.grid_sample(x, grid + 0.1 * offsets.tanh(), align_corners=True, padding_mode="reflection")


def shifted_windows(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = torch.roll(x, (-2, -2), (1, 2)).unfold(1, 4, 4).unfold(2, 4, 4).permute(0, 1, 2, 4, 5, 3)
    windows = x.reshape(-1, 16, 8)
    windows = windows + m.attention(windows, windows, windows, need_weights=False)[0]
    return windows.view(2, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(2, 8, 8, 8)


def capsules(m: Any, x: torch.Tensor) -> torch.Tensor:
    votes = torch.einsum("bni,ncio->bnco", x, m.weight)
    logits = torch.zeros(votes.shape[:3])
    for _ in range(3):
        s = (logits.softmax(2)[..., None] * votes).sum(1)
        norm = s.square().sum(-1, keepdim=True)
        v = norm / (1 + norm) * s / (norm + 1e-8).sqrt()
        logits = logits + torch.einsum("bnco,bco->bnc", votes, v)
    return v


def equalized(_: Any, x: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(x.flatten(), minlength=16).float()
    curve = counts.cumsum(0) / counts.sum()
    return (curve[x] * 15).round().to(torch.uint8)


def torchvision_model(name: str, **options: Any) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        model = torchvision().models.get_model(name, weights=None, **options)
        assert isinstance(model, nn.Module)
        return model

    return made


def timm_model(name: str, **options: Any) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        torchvision()
        import timm

        model = timm.create_model(name, num_classes=5, **options)
        assert isinstance(model, nn.Module)
        return model

    return made


IMAGE: Final = rand(1, 3, 64, 64)
case("vision: U-Net", UNet, rand(1, 3, 18, 18))
of(
    "vision: atrous pyramid",
    atrous,
    rand(1, 4, 9, 9),
    branches=lambda: nn.ModuleList([nn.Conv2d(4, 3, 3, padding=rate, dilation=rate, groups=1) for rate in (1, 2, 4)]),
)
of("vision: YOLO head", yolo, rand(1, 8, 4, 4), head=lambda: nn.Conv2d(8, 21, 1), anchors=lambda: rand(3, 2).abs() * 9)
of("vision: peaks of a heat map", centers, rand(2, 3, 8, 8).sigmoid(), rand(2, 2, 8, 8))
of("vision: matrix NMS", matrix_nms, rand(6, 4).cumsum(1).abs().cumsum(1), rand(6))
of("vision: spatial transformer", transformed, rand(2, 3, 8, 8), locate=mlp(48, 8, 6))
of("vision: deformed sampling", deformed, rand(1, 3, 7, 7), offsets=lambda: nn.Conv2d(3, 2, 3, padding=1))
of(
    "vision: shifted windows",
    shifted_windows,
    rand(2, 8, 8, 8),
    attention=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
)
of("vision: capsules", capsules, rand(2, 6, 4), weight=lambda: nn.Parameter(rand(6, 3, 4, 5)))
of("vision: equalized histogram", equalized, ints(16, 6, 6))
of(
    "vision: regions",
    lambda _, x, boxes: torchvision().ops.roi_align(x, [boxes], 3, 0.5, 2),
    rand(1, 2, 9, 9),
    rand(3, 4).abs().cumsum(1) * 5,
)
of(
    "vision: upscaled by shuffling",
    lambda m, x: F.pixel_unshuffle(F.pixel_shuffle(m.layer(x), 3), 2),
    rand(1, 3, 4, 4),
    layer=lambda: nn.Conv2d(3, 18, 5, padding="same", padding_mode="circular"),
)
case(
    "vision: pools of all kinds",
    lambda: nn.Sequential(
        nn.LPPool2d(2, 2),
        nn.AdaptiveMaxPool2d((5, None)),
        nn.LocalResponseNorm(2),
        nn.ReflectionPad2d(1),
        nn.ReplicationPad2d(1),
        nn.Softmax2d(),
    ),
    rand(1, 3, 14, 12),
)
of(
    "vision: folded patches",
    lambda m, x: F.fold(m.mix(F.unfold(x, 4, stride=2, padding=1)), (8, 8), 4, stride=2, padding=1),
    rand(1, 3, 8, 8),
    mix=linear(16, 16),
)
for _name in ("squeezenet1_1", "mnasnet0_5", "resnext50_32x4d", "shufflenet_v2_x2_0"):
    case(f"torchvision {_name}", torchvision_model(_name), IMAGE)
case(
    "torchvision maxvit",
    lambda: torchvision().models.MaxVit((64, 64), 8, 2, [8, 16], [1, 1], 8, 0.0, num_classes=5),
    IMAGE,
)
for _name, _options in {
    "convnextv2_atto": {},
    "mobilevit_xxs": {},
    "poolformer_s12": {},
    "pvt_v2_b0": {},
    "repvgg_a0": {},
    "fastvit_t8": {},
    "efficientvit_b0": {},
    "resnest14d": {},
    "mambaout_femto": {},
    "starnet_s1": {},
    "botnet26t_256": {"img_size": 64},
    "xcit_nano_12_p16_224": {"img_size": 64, "depth": 2},
    "cait_xxs24_224": {"img_size": 64, "depth": 2},
    "beit_base_patch16_224": {"img_size": 64, "depth": 1, "embed_dim": 48, "num_heads": 3},
    "tnt_s_legacy_patch16_224": {"img_size": 64, "depth": 2},
}.items():
    case(f"timm {_name}", timm_model(_name, **_options), IMAGE)


# Audio


def log_mel(m: Any, x: torch.Tensor) -> torch.Tensor:
    frames = torch.stft(x, 32, 8, window=m.window, center=True, return_complex=True)
    return (m.filters @ frames.abs().square()).clamp(1e-6).log10()


def restored(m: Any, x: torch.Tensor) -> torch.Tensor:
    frames = torch.stft(x, 16, 4, window=m.window, return_complex=True)
    mask = (frames.abs() > 0.5).to(frames.dtype)
    return torch.istft(frames * mask, 16, 4, window=m.window, length=x.shape[-1])


def wavenet(m: Any, x: torch.Tensor) -> torch.Tensor:
    skips: Any = 0
    for number, layer in enumerate(m.layers):
        gate, value = layer(F.pad(x, (2**number, 0))).chunk(2, 1)
        x = x + gate.sigmoid() * value.tanh()
        skips = skips + x
    return F.glu(skips, 1)


def greedy(_: Any, logits: torch.Tensor) -> Any:
    return torch.unique_consecutive(logits.argmax(-1))


of(
    "audio: log-mel spectrogram",
    log_mel,
    rand(2, 160),
    window=lambda: torch.hann_window(32),
    filters=lambda: rand(6, 17).abs(),
)
of("audio: masked and restored", restored, rand(2, 64), window=lambda: torch.hann_window(16))
of(
    "audio: WaveNet",
    wavenet,
    rand(1, 6, 20),
    layers=lambda: nn.ModuleList([nn.Conv1d(6, 12, 2, dilation=2**i) for i in range(3)]),
)
case(
    "audio: vocoder",
    lambda: nn.Sequential(
        torch.nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 6, 8, 4, 2)),
        nn.LeakyReLU(0.1),
        torch.nn.utils.parametrizations.spectral_norm(nn.Conv1d(6, 1, 7, padding=3)),
        nn.Tanh(),
    ),
    rand(1, 4, 6),
)
of(
    "audio: CTC loss",
    lambda m, x, t: F.ctc_loss(m.head(x).log_softmax(-1), t, torch.tensor([6, 6]), torch.tensor([3, 2])),
    rand(6, 2, 5),
    ints(4, 2, 3) + 1,
    head=linear(5, 6),
)
of("audio: CTC, greedy", greedy, rand(6, 5))
of(
    "audio: cepstrum",
    lambda m, x: torch.fft.irfft(torch.fft.rfft(x * m.w).abs().clamp(1e-5).log()),
    rand(2, 32),
    w=lambda: torch.hamming_window(32),
)
