"""What tests need of the installed library: ``@pytest.mark.needs("async")`` and the like.

A need is the name of a feature of VHLO, which the library must be able to write; a part of jaxlib that came with some
release (``vhlo_tools.bindings.PARTS``); or a version, ``StableHLO 1.17.0``. A test whose needs are not met is skipped:
what is said there instead is tested in ``tests/bindings/test_parts.py``, for every part, on releases that lack it.
"""

from __future__ import annotations

from vhlo_tools.bindings import PARTS, get_provider, missing_part
from vhlo_tools.spec import known_feature
from vhlo_tools.version import Version

STABLEHLO = "StableHLO "


def lacking(need: str) -> str | None:
    """Return what the installed library lacks of a need; ``None`` if it has it.

    Raises:
        KeyError: If nothing has that name.
    """
    provider = get_provider()
    if need in PARTS:
        return missing_part(provider, need)
    is_version = need.startswith(STABLEHLO)
    since = Version(need.removeprefix(STABLEHLO)) if is_version else known_feature(need).introduced
    library = provider.library
    return f"{library.name} has StableHLO {library.current}, not {since}" if library.current < since else None
