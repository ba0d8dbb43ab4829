"""The table of all models."""

from __future__ import annotations

from typing import Final

from torch_models.case import Case
from torch_models.language import TRANSFORMERS
from torch_models.small import SMALL
from torch_models.vision import TIMM, TORCHVISION

CASES: Final[dict[str, Case]] = {**TORCHVISION, **TRANSFORMERS, **TIMM, **SMALL}
