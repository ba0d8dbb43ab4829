"""The passes of StableHLO that conversion is made of, as the pass manager spells them.

Source: ``stablehlo/transforms/Passes.td`` in openxla/stablehlo.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.version import Version

__all__ = ["CHLO_TO_STABLEHLO", "MHLO_TO_STABLEHLO", "expansion", "to_version", "to_vhlo"]

#: Rewrites CHLO into StableHLO.
CHLO_TO_STABLEHLO: Final = "func.func(chlo-legalize-to-stablehlo)"
#: Rewrites MHLO into StableHLO; what has no twin stays, and does not become a custom call to XLA. Source:
#: ``mhlo/transforms/hlo_legalize_to_stablehlo`` in openxla/xla.
MHLO_TO_STABLEHLO: Final = "hlo-legalize-to-stablehlo{allow-xla-features=true}"


def to_vhlo(*, allow_other_dialects: bool) -> str:
    """Return the pass that legalizes StableHLO to VHLO."""
    return f"stablehlo-legalize-to-vhlo{{allow-other-dialects={str(allow_other_dialects).lower()}}}"


def to_version(version: Version) -> str:
    """Return the pass that brings VHLO to ``version``."""
    return f"vhlo-to-version{{target={version}}}"


def expansion(version: Version) -> str:
    """Return the pass that rewrites features newer than ``version`` into older ones, where it can."""
    return f"stablehlo-compatibility-expander{{target={version}}}"
