"""Cache key of everything but the program: the digest of whatever else findings depend on."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import vhlo_tools

if TYPE_CHECKING:
    from vhlo_tools.gate.examination import Examiner
    from vhlo_tools.reporting import Question

#: The distributions that read programs: bindings, and the frameworks of exported programs.
_LIBRARIES: Final = (
    "flatbuffers",
    "jax",
    "jaxlib",
    "ml_dtypes",
    "numpy",
    "stablehlo",
    "tensorflow",
    "tensorflow-cpu",
    "torch",
    "torch-mlir",
    "torchax",
)
_PROVIDER: Final = "VHLO_TOOLS_PROVIDER"
_READ: Final = (".py", ".toml")


def context_digest(examiner: Examiner, questions: Sequence[Question], *, facts: bool = False) -> bytes:
    """Digest everything that an examination depends on, except the program and its name.

    Questions count by what they resolve to: ``12w`` changes once another version is the newest of the window.
    """
    asked = [
        (each.reading, str(each.target.version), each.target.consumers if each.reading else ()) for each in questions
    ]
    return hashlib.sha256(repr((_environment(), examiner, asked, facts)).encode("utf-8", "surrogatepass")).digest()


@cache
def _environment() -> tuple[object, ...]:
    provider = os.environ.get(_PROVIDER)
    return (_toolkit(), platform.python_version(), provider, [(each, _installed(each)) for each in _LIBRARIES])


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _toolkit() -> str:
    """Digest the sources: the version stays the same while somebody edits a checkout or mends an installed package."""
    package = Path(vhlo_tools.__file__).parent
    digest = hashlib.sha256()
    for top in (package, package.parent / "dialect_specs"):
        for path in sorted(_sources(top)):
            data = Path(path).read_bytes()
            digest.update(f"{os.path.relpath(path, top)}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


def _sources(top: Path) -> Iterator[str]:
    for folder, _, names in os.walk(top):
        yield from (f"{folder}/{name}" for name in names if name.endswith(_READ))
