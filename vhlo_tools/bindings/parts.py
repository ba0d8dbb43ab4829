"""Parts of jaxlib that came with some release, and the messages where an older one is installed.

What depends on the version of StableHLO alone is not here: ``dialect_specs/releases.toml`` has the version of each. Nor
is what every release can do, each in its own way: HLO, booleans, locations.

Source: each release of jaxlib from 0.8.1 on, tried; ``tests/bindings/test_parts.py`` tries the installed one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from vhlo_tools.bindings.provider import Provider

#: The part of XLA that passes several elements in one byte to functions of Python, and gets them back, as they are.
NARROW_ELEMENTS: Final = "elements of less than a byte in handlers"

#: The first release of jaxlib that has each part: an op of CHLO that the library lowers, the target of a custom call of
#: LAPACK, an op of StableHLO that the reference interpreter evaluates, or what a name here says.
PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NARROW_ELEMENTS: "0.10.2",
        "chlo.conj": "0.9.2",
        "chlo.scan": "0.9.1",
        "lapack_cunmqr_ffi": "0.10.0",
        "lapack_dormqr_ffi": "0.10.0",
        "lapack_sormqr_ffi": "0.10.0",
        "lapack_zunmqr_ffi": "0.10.0",
        "stablehlo.fft": "0.9.2",
        "stablehlo.triangular_solve": "0.10.2",
        "tridiagonal_solve_perturbed_ffi": "0.10.0",
    }
)

_UNKNOWN: Final = re.compile(
    r"custom op '(?P<custom>[\w.]+)' is unknown|unregistered operation '(?P<generic>[\w.]+)'"
    r"|unknown (?:stablehlo|vhlo) (?:attribute|type)\b",
    re.IGNORECASE,
)


def missing_part(provider: Provider, part: str) -> str | None:
    """Return a message if the installed jaxlib lacks a part, with the release that has it.

    Other providers, and parts that are not in :data:`PARTS`, are assumed to have everything.
    """
    since, release = PARTS.get(part), provider.release
    if since is None or release is None or provider.distribution != "jaxlib":
        return None
    # Imported here so that child processes that only parse do not import it.
    from packaging.version import Version

    # A build before a release is taken for it.
    if Version(release).release >= Version(since).release:
        return None
    return f"jaxlib {release} does not have it: install jaxlib {since} or newer"


def explain_unknown(provider: Provider, said: str) -> str | None:
    """Return which release may know an op that is unknown to MLIR by its message ``said``; ``None`` if none does."""
    found = _UNKNOWN.search(said)
    if found is None:
        return None
    op = found["custom"] or found["generic"] or ""
    if (missing := missing_part(provider, op)) is not None:
        return f"{op}: {missing}"
    if op and op.partition(".")[0] not in ("stablehlo", "vhlo"):
        return None
    from vhlo_tools.spec import first_release, newest_version

    library, newest = provider.library, newest_version()
    release = first_release(provider.distribution, newest)
    if release is None or library.current.minor_release >= newest:
        return None
    return (
        f"{library.name} has StableHLO {library.current}: if the program is of a newer version, install a newer "
        f"{provider.distribution}, up to {release.release}, the first with StableHLO {newest} "
        f"(for Python {release.python})"
    )
