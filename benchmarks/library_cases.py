"""This package beside the bare library in one process: writing, reading, describing and checking programs."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pairs import MEGABYTE, Case
from shapes import chain_of_ops
from support.processes import run_measured
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.api import prepare_check
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings import get_provider
from vhlo_tools.bytecode import File, decode, encode
from vhlo_tools.files import read_bytes
from vhlo_tools.spec import known_versions, minimum_version


def module_with_constant(raw: RawLibrary, size: int) -> Any:
    """Return a module that holds one f32 constant of ``size`` bytes."""
    tensor = f"tensor<{size // 4}xf32>"
    module = raw.parse(
        f"func.func @main() -> {tensor} {{ %0 = stablehlo.constant dense<0.0> : {tensor} return %0 : {tensor} }}"
    )
    weights = np.random.default_rng(0).standard_normal(size // 4, dtype=np.float32)
    constant = module.body.operations[0].regions[0].blocks[0].operations[0]
    constant.attributes["value"] = raw.ir.DenseElementsAttr.get(weights, context=module.context)
    return module


def serialize_cases() -> Iterator[Case]:
    """Yield serialization and deserialization of a program of many ops and of one with a large constant."""
    raw = RawLibrary(get_provider())
    current = str(get_provider().library.current)
    text = chain_of_ops(100_000)
    modules: dict[str, Callable[[], Any]] = {
        "100,000 ops": lambda: raw.parse(text),
        "64 MB constant": lambda: module_with_constant(raw, 64 * MEGABYTE),
    }
    for name, module in modules.items():
        for target in (current, "1.9.0", "1.0.0"):
            yield Case(f"module, {target}, {name}", to(target), partial(raw_to, raw, target), module)
        artifact = raw.serialize(module(), current)
        yield Case(f"deserialize, {name}", vt.deserialize, raw.deserialize, partial(bytes, artifact))
    yield Case("text, 100,000 ops", to(current), lambda given: raw_to(raw, current, raw.parse(given)), lambda: text)


def to(target: str) -> Callable[[Any], object]:
    """Return our serialization at ``target``."""
    return lambda given: vt.serialize(given, target)


def raw_to(raw: RawLibrary, target: str, module: Any) -> object:
    """Serialize ``module`` at ``target`` with the library's call."""
    return raw.serialize(module, target)


def bytecode_cases() -> Iterator[Case]:
    """Yield what is read from bytes alone, beside the library's reading of the same bytes."""
    raw = RawLibrary(get_provider())
    current = str(get_provider().library.current)
    vhlo = [sys.executable, "-m", "vhlo_tools.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        large, many = Path(folder) / "large.mlirbc", Path(folder) / "many.mlirbc"
        large.write_bytes(raw.serialize(module_with_constant(raw, 512 * MEGABYTE), current) or b"")
        many.write_bytes(raw.serialize(raw.parse(chain_of_ops(100_000)), current) or b"")
        for name, path in (("512 MB constant", large), ("100,000 ops", many)):
            yield Case(
                f"inspect, {name}", inspected, lambda given: raw.deserialize(given.read_bytes()), partial(Path, path)
            )
        yield Case("all parts decoded, 100,000 ops", loaded, raw.deserialize, many.read_bytes)
        yield Case(
            "all parts encoded, 100,000 ops", encode, raw_to_current(raw, current), partial(loaded, many.read_bytes())
        )
        yield Case(
            "vhlo inspect as a process, 512 MB constant; raw: python -c pass",
            lambda given: run_measured([*vhlo, "inspect", str(given)]),
            lambda _: run_measured([sys.executable, "-c", "pass"]),
            partial(Path, large),
        )


def check_cases() -> Iterator[Case]:
    """Yield the questions of who can read what, beside the library's reading or writing of the same program."""
    raw = RawLibrary(get_provider())
    current = str(get_provider().library.current)
    text = chain_of_ops(100_000)
    looks = program_with_looks(100_000)
    plain, tanh = (raw.serialize(raw.parse(each), current) or b"" for each in (text, looks))
    for name, data in (("no op needs a look", plain), ("one op in four does", tanh)):
        yield Case(f"versions of 100,000 ops, {name}", versions, raw.deserialize, partial(bytes, data))
        yield Case(f"findings for 0.9.0, {name}", findings, raw.deserialize, partial(bytes, data))
    for name, program in (("no op needs a look", text), ("one op in four does", looks)):
        yield Case(
            f"a module of 100,000 ops against all versions, {name}; raw: one serialize",
            against_all,
            partial(raw_to, raw, current),
            partial(raw.parse, program),
        )
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.mlirbc"
        large.write_bytes(raw.serialize(module_with_constant(raw, 512 * MEGABYTE), current) or b"")
        yield Case(
            "require, 512 MB constant",
            lambda given: vt.require(given, current),
            lambda given: raw.deserialize(given.read_bytes()),
            partial(Path, large),
        )


def program_with_looks(number: int) -> str:
    """Return a program of so many ops, of which every fourth must be looked at to know the versions it can be at."""
    text = chain_of_ops(number).replace("stablehlo.maximum", "stablehlo.add")
    return re.sub(r"stablehlo.multiply (%\w+), %\w+", r"stablehlo.tanh \1", text)


def versions(data: bytes) -> object:
    """Return the versions that an artifact requires."""
    requirements = vt.open_artifact(data).requirements()
    return requirements.readable_since, requirements.downgradable_to


def findings(data: bytes) -> object:
    """Return what stands in the way of the oldest version."""
    return vt.open_artifact(data).requirements().findings(minimum_version())


def against_all(module: Any) -> object:
    """Check a program against every version."""
    checked = prepare_check(module)
    return [checked.findings(entry.version) for entry in known_versions()]


def inspected(path: Path) -> object:
    """Describe a file as `vhlo inspect` does."""
    return inspect_bytes(read_bytes(path), str(path))


def inspected_bytes(data: bytes) -> object:
    """Describe an artifact as `vhlo inspect` does."""
    return inspect_bytes(data, "the artifact")


def loaded(data: bytes) -> File:
    """Return a file with every part decoded."""
    file = decode(data)
    file.load()
    return file


def raw_to_current(raw: RawLibrary, current: str) -> Callable[[Any], object]:
    """Return the library's writing of a program of many ops, to compare with our encoding of one."""
    text = chain_of_ops(100_000)
    return lambda given: raw.serialize(raw.parse(text), current)
