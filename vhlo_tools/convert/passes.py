"""The passes of StableHLO used for conversion, in the syntax of the pass manager.

Source: ``stablehlo/transforms/Passes.td`` in openxla/stablehlo.
"""

from __future__ import annotations

from vhlo_tools.version import Version


def to_vhlo(*, allow_other_dialects: bool) -> str:
    return f"stablehlo-legalize-to-vhlo{{allow-other-dialects={str(allow_other_dialects).lower()}}}"


def to_version(version: Version) -> str:
    return f"vhlo-to-version{{target={version}}}"


def expansion(version: Version) -> str:
    return f"stablehlo-compatibility-expander{{target={version}}}"
