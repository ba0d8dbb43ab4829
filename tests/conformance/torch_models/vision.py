"""Models of torchvision and timm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from torch_models.case import Case, Tensors, image, rand


def torchvision() -> Any:
    """Return torchvision, also where its C++ ops do not load, because they were built for another build of torch."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                   "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):  # fmt: skip
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            library.define(schema)
    import torchvision as package

    # Without a reference to it the library is removed, and the ops with it.
    package._ops_for_suite = library
    return package


def classifier(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model: nn.Module = torchvision().models.get_model(name, weights=None, **options)
        return model

    return build


def vision_transformer() -> nn.Module:
    model: nn.Module = torchvision().models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64, num_classes=10
    )
    return model


def swin(version: int) -> nn.Module:
    """Return a small Swin transformer of torchvision, of version 1 or 2."""
    models = torchvision().models.swin_transformer
    extra = {} if version == 1 else {"block": models.SwinTransformerBlockV2, "downsample_layer": models.PatchMergingV2}
    model: nn.Module = models.SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=10, **extra
    )
    return model


class Detector(nn.Module):
    """A detector up to its scores and boxes for each anchor; what follows keeps some, a number that depends on them."""

    def __init__(self) -> None:
        super().__init__()
        model = torchvision().models.detection.fcos_resnet50_fpn(weights=None, weights_backbone=None, num_classes=4)
        self.backbone, self.head = model.backbone, model.head

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        outputs: dict[str, torch.Tensor] = self.head(list(self.backbone(images).values()))
        return outputs


def flow() -> nn.Module:
    return Tensors(torchvision().models.optical_flow.raft_small(weights=None), num_flow_updates=2)


def timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        torchvision()
        import timm as package

        model: nn.Module = package.create_model(name, pretrained=False, num_classes=10, **options)
        return model

    return build


TORCHVISION: Final = {
    "torchvision/resnet18": Case(classifier("resnet18"), image(64)),
    "torchvision/mobilenet_v2": Case(classifier("mobilenet_v2"), image(64)),
    "torchvision/mobilenet_v3_small": Case(classifier("mobilenet_v3_small"), image(64)),
    "torchvision/efficientnet_b0": Case(classifier("efficientnet_b0"), image(64)),
    "torchvision/efficientnet_v2_s": Case(classifier("efficientnet_v2_s"), image(64), tolerance=1e-4),
    "torchvision/convnext_tiny": Case(classifier("convnext_tiny"), image(64)),
    "torchvision/vit": Case(vision_transformer, image(32)),
    "torchvision/swin_v1": Case(lambda: swin(1), image(32)),
    "torchvision/swin_v2": Case(lambda: swin(2), image(32)),
    "torchvision/deeplabv3": Case(
        lambda: torchvision().models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None),
        image(64),
    ),
    "torchvision/fcos": Case(Detector, image(64), tolerance=5e-4),
    "torchvision/raft_small": Case(flow, lambda: (rand(1, 3, 128, 128), rand(1, 3, 128, 128)), tolerance=1e-3),
    "torchvision/densenet121": Case(classifier("densenet121"), image(64)),
    "torchvision/shufflenet_v2": Case(classifier("shufflenet_v2_x0_5"), image(64)),
    "torchvision/regnet_y_400mf": Case(classifier("regnet_y_400mf"), image(64)),
    "torchvision/r3d_18": Case(classifier("r3d_18"), lambda: (rand(1, 3, 4, 32, 32),)),
}  # fmt: skip

TIMM: Final = {
    "timm/mixer": Case(timm("mixer_s32_224", img_size=64), image(64)),
    "timm/vit_tiny": Case(timm("vit_tiny_patch16_224", img_size=64, depth=2), image(64)),
    "timm/eva02_tiny": Case(timm("eva02_tiny_patch14_224", img_size=56, depth=2), image(56)),
    "timm/levit_128s": Case(timm("levit_128s"), image(224), tolerance=1e-4),
    "timm/edgenext_xx_small": Case(timm("edgenext_xx_small"), image(64)),
    "timm/ghostnet_100": Case(timm("ghostnet_100"), image(64)),
    "timm/hrnet_w18_small": Case(timm("hrnet_w18_small"), image(64)),
    "timm/coat_lite_tiny": Case(timm("coat_lite_tiny", img_size=64), image(64)),
}
