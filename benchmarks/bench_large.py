"""How time and memory grow with the size of an artifact: ours, the bare library and ``cp``, each as a process.

``bench.py large`` runs it. Peak memory is what the kernel says of a process, without that of an idle interpreter.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from large_artifacts import write_artifact_of_constants, write_artifact_of_ops
from processes import Run, run_measured
from rich.console import Console
from rich.table import Table

__all__ = ["run"]

MEGABYTE = 1 << 20
SIZES = (1, 64, 512, 4096)
NUMBERS = (1, 1000)
OPS = (1_000, 10_000, 100_000, 300_000)
#: Beyond this the library needs more memory than machines of developers have.
LARGEST_FOR_LIBRARY = 512
OLD, NEW = "1.4.0", "1.9.0"

IDLE = [sys.executable, "-c", "pass"]
VHLO = [sys.executable, "-m", "vhlo_tools.cli.main"]
# As one would write it with nothing but jaxlib.
LIBRARY = """
import sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo
source, target, path = sys.argv[1:]
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
stablehlo.register_dialect(context)
context.load_all_available_dialects()
with open(source, "rb") as file:
    module = stablehlo.deserialize_portable_artifact(context, file.read())
with open(path, "wb") as file:
    file.write(stablehlo.serialize_portable_artifact(module, target))
"""

#: What is done to an artifact, with how it is done; ``{from}``, ``{copy}`` and ``{to}`` are files.
COMMANDS: dict[str, list[str]] = {
    "cp": ["cp", "{from}", "{to}"],
    "retarget": [*VHLO, "retarget", "{from}", "--target", OLD, "-o", "{to}"],
    "library": [sys.executable, "-c", LIBRARY, "{from}", OLD, "{to}"],
    "inspect": [*VHLO, "inspect", "{from}"],
    "check": [*VHLO, "check", "{from}", "--target", OLD],
    "strip": [*VHLO, "strip", "{from}", "-o", "{to}"],
    "diff": [*VHLO, "diff", "{from}", "{copy}"],
}


@dataclass(frozen=True)
class Subject:
    """An artifact.

    Attributes:
        family: What else is alike: ``1 constant``, ``1000 constants`` or ``ops``.
        size: Megabytes, or the number of ops.
        path: Where it is.
    """

    family: str
    size: int
    path: Path


def subjects(folder: Path, sizes: Sequence[int], ops: Sequence[int]) -> Iterator[Subject]:
    """Make the artifacts, one at a time; each is deleted when the next is asked for."""
    kinds = [(f"{number} constant{'s' * (number > 1)}", size) for number in NUMBERS for size in sizes]
    for family, size in [*kinds, *(("ops", number) for number in ops)]:
        path = folder / f"{family.replace(' ', '_')}_{size}.mlirbc"
        if family == "ops":
            write_artifact_of_ops(path, size, NEW)
        else:
            write_artifact_of_constants(path, size * MEGABYTE, int(family.split()[0]), NEW)
        yield Subject(family, size, path)
        path.unlink()


def measure(subject: Subject, name: str, turns: int) -> Run:
    """Return the medians of ``turns`` runs of a command, after one that warms the memory up."""
    to, copy = subject.path.with_suffix(".out"), subject.path.with_suffix(".copy")
    files = {"from": str(subject.path), "to": str(to), "copy": str(copy)}
    if name == "diff":
        run_measured(["cp", files["from"], files["copy"]])
    runs = []
    for turn in range(turns + 1):
        taken = run_measured([part.format(**files) if part.startswith("{") else part for part in COMMANDS[name]])
        if turn:
            runs.append(taken)
        to.unlink(missing_ok=True)
    copy.unlink(missing_ok=True)
    return Run(statistics.median(each.seconds for each in runs), int(statistics.median(each.peak for each in runs)))


def growth(points: Sequence[tuple[int, float]]) -> str:
    """Return the power of the size that the last step of ``points`` grows with."""
    if len(points) < 2:
        return ""
    (size, before), (larger, after) = points[-2:]
    return f"{math.log(after / before) / math.log(larger / size):.2f}"


def plot(results: dict[tuple[str, str], list[tuple[int, Run]]], path: Path) -> None:
    """Draw time and memory over size, a column for each family."""
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(family for family, _ in results))
    figure = Figure(figsize=(5 * len(families), 8), layout="constrained")
    axes = figure.subplots(2, len(families), squeeze=False)
    for column, family in enumerate(families):
        for (each, name), points in results.items():
            if each != family:
                continue
            sizes = [size for size, _ in points]
            axes[0][column].plot(sizes, [run.seconds for _, run in points], marker="o", label=name)
            axes[1][column].plot(sizes, [max(run.peak / MEGABYTE, 0.1) for _, run in points], marker="o", label=name)
        for row, what in enumerate(("seconds", "peak memory, MB above an idle interpreter")):
            axes[row][column].set(
                xscale="log", yscale="log", ylabel=what, xlabel="ops" if family == "ops" else "MB", title=family
            )
            axes[row][column].grid(visible=True, alpha=0.3)
    axes[0][0].legend()
    figure.savefig(path, dpi=100)


def run(turns: int, image: Path | None, *, quick: bool) -> None:
    """Measure, and print a table.

    Args:
        turns: How often each command is run.
        image: Where to draw the same.
        quick: Whether to leave out what takes minutes: 4 GB and 300,000 ops.
    """
    sizes, ops = (SIZES[:-1], OPS[:-1]) if quick else (SIZES, OPS)
    idle = min(run_measured(IDLE).peak for _ in range(3))
    results: dict[tuple[str, str], list[tuple[int, Run]]] = {}
    table = Table(box=None, pad_edge=False)
    for column in ("artifact", "command", "s", "to cp", "to library", "peak MB", "growth"):
        table.add_column(column, justify="left" if column in ("artifact", "command") else "right")
    with tempfile.TemporaryDirectory() as folder:
        for subject in subjects(Path(folder), sizes, ops):
            unit = "" if subject.family == "ops" else "MB, "
            label = f"{subject.size:,} {unit}{subject.family}"
            taken: dict[str, Run] = {}
            for name in COMMANDS:
                if name == "library" and unit and subject.size > LARGEST_FOR_LIBRARY:
                    continue
                found = measure(subject, name, turns)
                taken[name] = Run(found.seconds, max(0, found.peak - idle))
                points = results.setdefault((subject.family, name), [])
                points.append((subject.size, taken[name]))
                seconds = found.seconds
                table.add_row(
                    label,
                    name,
                    f"{seconds:.3f}",
                    *(f"{seconds / taken[each].seconds:.2f}" if each in taken else "" for each in ("cp", "library")),
                    f"{taken[name].peak / MEGABYTE:.0f}",
                    growth([(size, each.seconds) for size, each in points]),
                )
                label = ""
    console = Console()
    console.print(table)
    console.print(
        f"\nMedians of {turns} runs, whole processes. Memory is above an idle interpreter ({idle / MEGABYTE:.0f} MB). "
        "Growth is the power of the size, in the last step. The library is deserialize and serialize; above "
        f"{LARGEST_FOR_LIBRARY} MB it is left out."
    )
    if image is not None:
        plot(results, image)
        console.print(f"Drawn in {image}.")
