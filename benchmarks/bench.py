"""Measure this package against the bare library: `bench.py serialize`, `bench.py large --plot growth.png`.

Both run in one process and by turns, so that a machine that gets slower gets slower for both. Printed are the medians,
the median of the ratios pair by pair, and how far the memory of the process peaked above where it stood before.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import bench_expand
import bench_frameworks
import bench_gate
import bench_large
import bench_migrate
import bench_opt
import bench_reference
import bench_start
import bench_torch
import bench_xla
import numpy as np
from processes import Run, run_measured
from raw import RawLibrary
from rich.console import Console
from rich.table import Table

import vhlo_tools as vt
from vhlo_tools.api import prepare_check
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings import get_provider
from vhlo_tools.bytecode import File, decode, encode
from vhlo_tools.dialect import known_versions, minimum_version
from vhlo_tools.formats import read_bytes

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Case:
    """Something measured twice, with this package and without.

    Attributes:
        name: What it is.
        ours: Does it with this package, on what ``prepare`` gave.
        raw: Does it with the bare library, on what ``prepare`` gave.
        prepare: Gives the input afresh, outside of what is measured.
    """

    name: str
    ours: Callable[[Any], object]
    raw: Callable[[Any], object]
    prepare: Callable[[], Any]


@dataclass(frozen=True)
class Measurement:
    """What one run took.

    Attributes:
        seconds: Wall time.
        peak: Bytes of memory above what the process held before; of a process of its own, all that it held.
    """

    seconds: float
    peak: int


def measure(function: Callable[[Any], object], prepare: Callable[[], Any]) -> Measurement:
    """Run ``function`` once on a fresh input; if it measures a process of its own, that counts."""
    given = prepare()
    gc.collect()
    reset_peak()
    before = memory("VmRSS")
    started = time.perf_counter()
    result = function(given)
    seconds = time.perf_counter() - started
    peak = memory("VmHWM") - before
    taken = Measurement(result.seconds, result.peak) if isinstance(result, Run) else Measurement(seconds, peak)
    del result, given
    return taken


def reset_peak() -> None:
    """Make the kernel forget the peak of this process's memory (Linux, `man 5 proc`)."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> int:
    """Return a line of the kernel's account of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def program_of_ops(number: int) -> str:
    """Return a program of ``number`` elementwise ops, as MLIR text."""
    ops = ("add", "multiply", "subtract", "maximum")
    lines = ["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {"]
    lines += [f"  %{i + 1} = stablehlo.{ops[i % 4]} %{i}, %{max(0, i - 3)} : tensor<4xf32>" for i in range(number)]
    return "\n".join([*lines, f"  return %{number} : tensor<4xf32>", "}"])


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
    text = program_of_ops(100_000)
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
        many.write_bytes(raw.serialize(raw.parse(program_of_ops(100_000)), current) or b"")
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
    text = program_of_ops(100_000)
    looks = text.replace("stablehlo.maximum", "stablehlo.add")
    looks = re.sub(r"stablehlo.multiply (%\w+), %\w+", r"stablehlo.tanh \1", looks)
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


def loaded(data: bytes) -> File:
    """Return a file with every part decoded."""
    file = decode(data)
    file.load()
    return file


def raw_to_current(raw: RawLibrary, current: str) -> Callable[[Any], object]:
    """Return the library's writing of a program of many ops, to compare with our encoding of one."""
    text = program_of_ops(100_000)
    return lambda given: raw.serialize(raw.parse(text), current)


def run_cases() -> Iterator[Case]:
    """Yield runs of compiled programs."""
    for case in bench_xla.cases():
        yield Case(*case)


def expand_cases() -> Iterator[Case]:
    """Yield programs that are expanded."""
    for case in bench_expand.cases():
        yield Case(*case)


def opt_cases() -> Iterator[Case]:
    """Yield whole runs of `vhlo opt`."""
    for case in bench_opt.cases():
        yield Case(*case)


SUITES: dict[str, Callable[[], Iterator[Case]]] = {
    "bytecode": bytecode_cases,
    "check": check_cases,
    "expand": expand_cases,
    "opt": opt_cases,
    "run": run_cases,
    "serialize": serialize_cases,
}
NOTES = {
    "bytecode": "Raw is the library's deserialization of the same file, but where it says otherwise; it parses and "
    "serializes where ours encodes.",
    "check": "Raw is the library's deserialization of the same file, but where it says otherwise.",
    "expand": "Ours expands 1,000 `tan` of 100,000 ops; raw writes the program as it is, for its own version.",
    "opt": "Raw is `python -c 'import jaxlib.mlir.ir'`.",
    "run": "Both go from an array of numpy to an array of numpy, with a program that was compiled before.",
    "serialize": "Ours includes the copy that leaves the caller's module as it is; the library's call rewrites it to "
    "VHLO. Below 1.9.0 ours also makes range locations plain, without which such readers refuse the file.",
}


def main() -> None:
    """Run a suite and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "suite", choices=[*SUITES, "frameworks", "gate", "large", "migrate", "reference", "start", "torch"]
    )
    parser.add_argument("--pairs", type=int, default=9, help="how often each is run (default 9)")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw `large` too (needs matplotlib)")
    parser.add_argument("--quick", action="store_true", help="leave the largest out of `gate`, `large` and `migrate`")
    arguments = parser.parse_args()
    if arguments.suite == "large":
        bench_large.run(arguments.pairs, arguments.plot, quick=arguments.quick)
        return
    if arguments.suite == "gate":
        bench_gate.run(arguments.pairs, quick=arguments.quick)
        return
    if arguments.suite == "migrate":
        bench_migrate.run(arguments.pairs, quick=arguments.quick)
        return
    if arguments.suite == "frameworks":
        bench_frameworks.run(arguments.pairs)
        return
    if arguments.suite == "start":
        bench_start.run(arguments.pairs)
        return
    if arguments.suite == "reference":
        bench_reference.run(arguments.pairs)
        return
    if arguments.suite == "torch":
        sys.exit(0 if bench_torch.run(arguments.pairs) else 1)
    table = Table(box=None, pad_edge=False)
    table.add_column("case")
    for column in ("ours, s", "raw, s", "ratio", "ours, peak MB", "raw, peak MB"):
        table.add_column(column, justify="right")
    for case in SUITES[arguments.suite]():
        measure(case.raw, case.prepare)
        measure(case.ours, case.prepare)
        ours: list[Measurement] = []
        raw: list[Measurement] = []
        for turn in range(arguments.pairs):
            # Whoever comes second finds warm memory, so they take turns at that too.
            for mine, function in ((ours, case.ours), (raw, case.raw))[:: 1 if turn % 2 else -1]:
                mine.append(measure(function, case.prepare))
        ratios = [a.seconds / b.seconds for a, b in zip(ours, raw, strict=True)]
        table.add_row(
            case.name,
            *(f"{statistics.median(each.seconds for each in runs):.3f}" for runs in (ours, raw)),
            f"{statistics.median(ratios):.2f}",
            *(f"{statistics.median(each.peak for each in runs) / MEGABYTE:.0f}" for runs in (ours, raw)),
        )
    console = Console()
    console.print(table)
    console.print(f"\nMedians of {arguments.pairs} pairs, {get_provider().library.name}. {NOTES[arguments.suite]}")


if __name__ == "__main__":
    main()
