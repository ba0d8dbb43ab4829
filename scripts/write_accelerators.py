"""Make the tables of docs/accelerators.md: `write_accelerators.py [matrix] [aliases] [write]`.

`matrix` lets releases of jaxlib write the programs of the matrix, and plugins of TPUs and GPUs read and compile them;
`aliases` asks XLA for the CPU, a TPU and a GPU what became of the aliases of the examples and of twenty training steps,
and needs jax. Both keep what came out in tests/releases/accelerators.json; `write` makes the tables of it, and fails if
the specification was wrong where nothing explains it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from typing import Any, Final

import write_matrix
from write_matrix import ROOT, kept, programs, restored

import vhlo_tools as vt
from vhlo_tools.spec import known_releases

KEPT: Final = ROOT / "tests" / "releases" / "accelerators.json"
PAGE: Final = ROOT / "docs" / "accelerators.md"
BEGIN, END = "<!-- table: accelerators -->", "<!-- table: end -->"
PRODUCERS: Final = ("jaxlib==0.4.31", "jaxlib==0.7.0", "jaxlib==0.12.0.1")
#: Each plugin with a device.
PLUGINS: Final = {
    **{f"libtpu=={each}": "v5e" for each in ("0.0.2", "0.0.13", "0.0.24", "0.0.43.2", "0.0.52")},
    **{f"jax-cuda12-pjrt=={each}": "h100" for each in ("0.6.2", "0.8.3", "0.10.2")},
    "jax-cuda13-pjrt==0.12.0.1": "h100",
}
#: A donor that no output has room for, and one that an output of a TPU's tile has room for.
OWN: Final = {
    "donor without an output": """func.func @main(%a: tensor<4096xi32> {jax.buffer_donor = true}, %b: tensor<8xf32>)
        -> tensor<8xf32> { %0 = stablehlo.add %b, %b : tensor<8xf32> return %0 : tensor<8xf32> }""",
    "donor of half the bytes": """func.func @main(%a: tensor<4xi32> {jax.buffer_donor = true}, %b: tensor<8xf32>)
        -> tensor<8xf32> { %0 = stablehlo.add %b, %b : tensor<8xf32> return %0 : tensor<8xf32> }""",
}
#: Where aliases are compiled for.
DEVICES: Final = ("libtpu==0.0.52@v5e", "jax-cuda13-pjrt==0.12.0.1@h100")


def say(line: str) -> None:
    print(line, file=sys.stderr)


def run_matrix() -> dict[str, Any]:
    """Return what plugins read, and what they compile of what is written for them."""
    read = vt.matrix(programs(), producers=PRODUCERS, consumers=[*PLUGINS], run=False, jobs=2, say=say)
    compiled: dict[str, dict[str, str]] = {}
    for release, device in PLUGINS.items():
        said = compiled[release] = {}
        for name, path in programs().items():
            try:
                vt.compile_for(path, f"{release}@{device}", say=say)
                said[name] = ""
            except vt.DowngradeError:
                said[name] = "newer"
            except vt.VhloToolsError as error:
                said[name] = str(error).partition(f"{path}: ")[2].partition("\n")[0][:160] or str(error)[:160]
    return {"read": kept(read), "compiled": compiled}


def _kept_here(artifact: vt.Artifact) -> int:
    """Return how many aliases XLA gives its program for the CPU."""
    import jax
    from jaxlib import _jax

    from vhlo_tools.files import read_hlo_module, view

    client = jax.devices("cpu")[0].client
    devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
    compiled = client.compile_and_load(str(vt.deserialize(artifact)).encode(), devices, _jax.CompileOptions())
    return len(read_hlo_module(view(compiled.hlo_modules()[0].as_serialized_hlo_module_proto())).aliases)


def run_aliases() -> list[dict[str, Any]]:
    """Return for each program how many aliases and donors it has, how many each compiler kept, and what lint says."""
    from training_steps import steps

    rows = []
    lowered = dict(steps())
    texts = {**OWN, **{path.stem: path.read_text() for path in sorted((ROOT / "examples").glob("*.mlir"))}}
    for name, program in (texts | lowered).items():
        artifact = vt.serialize(program if name in texts else program.compiler_ir("stablehlo"))
        declared = artifact.aliases()
        found: dict[str, Any] = {"program": name, "declared": len(declared.aliases) + len(declared.donors)}
        found["lint"] = sorted({each.feature for each in vt.check(artifact, "current") if each.kind == "alias"})
        if found["declared"]:
            found["cpu"] = _kept_here(artifact)
        for release in DEVICES:
            try:
                found[release] = sum(each.kept for each in vt.compile_for(artifact, release, say=say).aliases or ())
            except vt.VhloToolsError as error:
                found[release] = str(error).partition(": ")[2].partition("\n")[0][:100]
        say(str(found))
        rows.append(found)
    return rows


def tables(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the page.

    Raises:
        SystemExit: If something is not explained.
    """
    yield "### Versions"
    yield ""
    names = list(dict.fromkeys(name.partition("==")[0] for name in PLUGINS))
    plugins = [each for each in known_releases() if each.package in names]
    yield f"All {len(plugins)} releases that say a version, by the newest that they read, and the first day. Each"
    yield f"reads from {' or '.join(sorted({str(each.minimum) for each in plugins}))} on:"
    yield ""
    yield f"| StableHLO | {' | '.join(names)} | since |"
    yield f"|---|{'---|' * len(names)}---|"
    for version in sorted({each.stablehlo for each in plugins}):
        of_it = [each for each in plugins if each.stablehlo == version]
        columns = (", ".join(each.release for each in of_it if each.package == name) or "-" for name in names)
        yield f"| {version} | {' | '.join(columns)} | {min(each.date for each in of_it)} |"
    matrix = restored(found["read"])
    predicted = [cell for cell in matrix.cells if cell.predicted is not None]
    wrong = [cell for cell in predicted if not cell.confirmed]
    unexplained = [cell for cell in wrong if write_matrix.explanation_of(cell) is None]
    if unexplained:
        raise SystemExit(f"write_accelerators: nothing explains: {unexplained[0]} and {len(unexplained) - 1} others")
    yield ""
    yield "### What plugins read and compile"
    yield ""
    yield (
        f"Run on {found['read']['date']}: {len(matrix.programs)} programs, as {len(matrix.producers)} releases of "
        f"jaxlib write them, are {len(matrix.cells):,} cells in {len(matrix.consumers)} plugins. The specification "
        f"says something of {len(predicted):,}, and {len(predicted) - len(wrong):,} times that is what happened. What "
        "can be written for a plugin was then compiled for a device; what a compiler refuses is no matter of versions."
    )
    yield ""
    yield "| plugin | StableHLO | read | written for it | compiled | refused by the compiler |"
    yield "|---|---|---:|---:|---:|---|"
    for consumer in matrix.consumers:
        said = found["compiled"][consumer.name]
        refused = sorted(name for name, words in said.items() if words not in ("", "newer"))
        written = sum(words != "newer" for words in said.values())
        counts = Counter(cell.was_read for cell in matrix.cells if cell.consumer == consumer.name)
        yield (
            f"| {consumer.name}@{PLUGINS[consumer.name]} | {consumer.stablehlo} | {counts[True]} of {counts.total()} | "
            f"{written} | {written - len(refused)} | {', '.join(refused) or '-'} |"
        )
    yield ""
    yield "### Aliases"
    yield ""
    yield "Aliases and donors of the examples, of twenty training steps of JAX and of two programs of our own, and how"
    yield "many of them each compiler kept:"
    yield ""
    yield "| programs | declared | XLA for the CPU | " + " | ".join(DEVICES) + " | lint |"
    yield "|---|---:|---:|" + "---:|" * len(DEVICES) + "---|"
    rows = [row for row in found["aliases"] if row["declared"]]
    for model, group in groupby(rows, lambda row: str(row["program"]).partition(",")[0]):
        held = [*group]
        sums = [sum(row[key] for row in held) for key in ("declared", "cpu", *DEVICES)]
        optimizers = ", ".join(name for row in held if (name := row["program"].partition(", ")[2]))
        lint = sorted({f"`{each}`" for row in held for each in row["lint"]})
        name = f"{model}: {optimizers}" if optimizers else model
        yield f"| {name} | {' | '.join(map(str, sums))} | {', '.join(lint) or '-'} |"


def main() -> None:
    """Run the plugins, and write the page."""
    parser = argparse.ArgumentParser(description="make the tables of docs/accelerators.md")
    parser.add_argument("steps", nargs="+", choices=["matrix", "aliases", "write"])
    chosen = parser.parse_args().steps
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if "matrix" in chosen:
        found |= run_matrix()
    if "aliases" in chosen:
        found |= {"aliases": run_aliases(), "aliases_date": str(date.today())}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    if "write" in chosen:
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text("\n".join([before + BEGIN, "", *tables(found), "", END + rest.partition(END)[2]]))


if __name__ == "__main__":
    main()
