"""Calls of this package beside those of the bare library, in one process: `aim_pairs.py CASE --pairs 5`.

It prints the seconds of both as JSON. `bench.py aims` runs it once with this package, and once with that of another
revision, for the same cases.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from library_cases import against_all, inspected_bytes, loaded, module_with_constant, program_with_looks, to, versions
from pairs import MEGABYTE, Case, measure_pairs
from shapes import chain_of_ops
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.bytecode import encode

_OPS: Final = 100_000
OLD: Final = "1.4.0"

Make = Callable[[RawLibrary, str], Case]


def _artifact(raw: RawLibrary, current: str, *, looks: bool = False) -> bytes:
    return raw.serialize(raw.parse(program_with_looks(_OPS) if looks else chain_of_ops(_OPS)), current) or b""


def _on_bytes(ours: Callable[[bytes], object], times: int, target: str | None, *, looks: bool = False) -> Make:
    """Return a case on the bytes of an artifact.

    Args:
        ours: What we do.
        times: How often the library reads them.
        target: The version that it writes them for then; ``None`` if it does not.
        looks: Whether one op in four must be looked at to know which versions the program can be at.
    """

    def make(raw: RawLibrary, current: str) -> Case:
        def theirs(data: bytes) -> object:
            modules = [raw.deserialize(data) for _ in range(times)]
            return raw.serialize(modules[0], target) if target else modules

        data = _artifact(raw, current, looks=looks)
        return Case("", ours, theirs, lambda: data)

    return make


def _encode(raw: RawLibrary, current: str) -> Case:
    text = chain_of_ops(_OPS)
    data = _artifact(raw, current)
    return Case(
        "",
        lambda given: encode(given[0]),
        lambda given: raw.serialize(given[1], current),
        lambda: (loaded(data), raw.parse(text)),
    )


def _on_module(ours: Callable[[Any], object], target: str | None, *, looks: bool = False) -> Make:
    """Return a case on a module, which the library writes for a version, by default the current one."""

    def make(raw: RawLibrary, current: str) -> Case:
        text = program_with_looks(_OPS) if looks else chain_of_ops(_OPS)
        return Case("", ours, lambda given: raw.serialize(given, target or current), lambda: raw.parse(text))

    return make


def _deserialize(size: int, *, trusted: bool = False, again: bool = False) -> Make:
    """Return a case of deserialization.

    Args:
        size: The bytes of a constant; 0 for a program of ops.
        trusted: Whether it is read in this process alone.
        again: Whether a process of the user has read it before, which is remembered.
    """

    def make(raw: RawLibrary, current: str) -> Case:
        module = module_with_constant(raw, size) if size else raw.parse(chain_of_ops(_OPS))
        data = raw.serialize(module, current) or b""
        if again:
            del os.environ["VHLO_TOOLS_NO_CACHE"]
            vt.deserialize(data)
        return Case("", lambda given: vt.deserialize(given, trusted=trusted), raw.deserialize, lambda: data)

    return make


#: By the names that aims have for them.
CASES: Final[dict[str, Make]] = {
    "decode": _on_bytes(loaded, 1, None),
    "encode": _encode,
    "inspect": _on_bytes(inspected_bytes, 1, None),
    "retarget": _on_bytes(lambda data: bytes(vt.retarget(data, OLD)), 1, OLD),
    "strip": _on_bytes(lambda data: bytes(vt.strip(data)), 1, "1.9.0"),
    "diff": _on_bytes(lambda data: vt.diff(data, bytes(bytearray(data))), 2, None),
    "requirements, one op in four looked at": _on_bytes(versions, 1, None, looks=True),
    "a module against all versions": _on_module(against_all, None),
    "a module against all versions, one op in four looked at": _on_module(against_all, None, looks=True),
    "serialize at the current version": _on_module(lambda given: to(str(get_provider().library.current))(given), None),
    "serialize below 1.9.0": _on_module(to("1.0.0"), "1.0.0"),
    "deserialize, trusted, 64 MB": _deserialize(64 * MEGABYTE, trusted=True),
    "deserialize, trusted, 100,000 ops": _deserialize(0, trusted=True),
    "deserialize from elsewhere, 64 MB": _deserialize(64 * MEGABYTE),
    "deserialize from elsewhere, 100,000 ops": _deserialize(0),
    "deserialize again, 64 MB": _deserialize(64 * MEGABYTE, again=True),
    "deserialize again, 100,000 ops": _deserialize(0, again=True),
}


def main() -> None:
    """Measure a case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    provider = get_provider()
    with TemporaryDirectory() as folder:
        os.environ.update(VHLO_TOOLS_CACHE=folder, VHLO_TOOLS_NO_CACHE="1")
        case = CASES[given.case](RawLibrary(provider), str(provider.library.current))
        ours, raw = measure_pairs(case, given.pairs)
    print(json.dumps({"ours": [each.seconds for each in ours], "raw": [each.seconds for each in raw]}))


if __name__ == "__main__":
    main()
