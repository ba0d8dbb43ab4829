"""Export the models of ``torch_models`` with each importer, compare with torch, and print the table in Markdown.

``check_torch_models.py [--importer NAME ...] [--own] [--only WORD ...] [--json FILE]``, in an environment with torch,
its importers, torchvision, timm and transformers, such as `.venv-torch`, which ``scripts/frontends.py torch`` makes.
Each model is tried in a process of its own, with limits. ``--own`` adds the time and memory of the frameworks' own
exporters.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from torch_models.trial import OWN, Trial

IMPORTERS: Final = ("torchax", "torch-mlir", "auto")
_SECONDS: Final = 420
_VERSIONS: Final = ("torch", "torchax", "torch-mlir", "jax", "torchvision", "timm", "transformers")


def try_model(name: str, importer: str) -> Trial:
    """Try a model in a process of its own.

    Args:
        name: The name of the model.
        importer: An importer, or the name of a framework's own exporter.
    """
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "torch_models.trial", name, importer]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Trial(name, importer, ok=False, reason=f"not done within {_SECONDS} s")
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        return Trial(name, importer, ok=False, reason=f"the process ended with {done.returncode}: {last[0]}")
    return Trial(**json.loads(done.stdout.splitlines()[-1]))


def table(trials: Sequence[Trial], importers: Sequence[str]) -> str:
    """Return the outcomes as a table in Markdown, with what is not equal and why below."""
    found = {(each.name, each.importer): each for each in trials}
    names = list(dict.fromkeys(each.name for each in trials))
    lines = [f"| model | {' | '.join(importers)} |", "|---" * (len(importers) + 1) + "|"]
    reasons: dict[str, int] = {}
    for name in names:
        cells = []
        for importer in importers:
            each = found[name, importer]
            number = "" if each.ok else f"[{reasons.setdefault(each.reason, len(reasons) + 1)}]"
            cells.append("equal" if each.ok else f"no {number}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    counts = [sum(found[name, importer].ok for name in names) for importer in importers]
    lines.append(f"| **of {len(names)}** | {' | '.join(f'**{count}**' for count in counts)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for reason, number in reasons.items())])


def comparison(trials: Sequence[Trial]) -> str:
    """Return the exports beside the frameworks' own as a table in Markdown: seconds, and memory beyond the start."""
    found = {(each.name, each.importer): each for each in trials}
    lines = ["| model | importer | seconds | own | ratio | MB | own | ratio |", "|---" * 8 + "|"]
    for name in dict.fromkeys(each.name for each in trials):
        for importer, own in OWN.items():
            ours, theirs = found.get((name, importer)), found.get((name, own))
            if ours is None or theirs is None:
                continue
            if not (ours.ok and theirs.ok):
                refused = " and ".join(each for each, one in (("here", ours), ("its own", theirs)) if not one.ok)
                lines.append(f"| {name} | {importer} | refused: {refused} | | | | | |")
                continue
            memory = [max(each.peak - each.before + each.child, 1 << 20) / (1 << 20) for each in (ours, theirs)]
            numbers = [
                *(f"{each:.2f}" for each in (ours.seconds, theirs.seconds, ours.seconds / theirs.seconds)),
                *(f"{memory[0]:.0f}", f"{memory[1]:.0f}", f"{memory[0] / memory[1]:.2f}"),
            ]
            lines.append(f"| {name} | {importer} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def main() -> int:
    """Try the models, and print the tables; return 1 if fewer than 57 of 60 are equal with the last importer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--importer", action="append", choices=IMPORTERS, help="by default all")
    parser.add_argument("--own", action="store_true", help="measure the frameworks' own exporters too")
    parser.add_argument("--only", action="append", help="the models whose names contain this")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file")
    options = parser.parse_args()
    from torch_models.table import CASES

    importers = options.importer or list(IMPORTERS)
    tried = [*importers, *(OWN.values() if options.own else ())]
    trials: list[Trial] = []
    for name in (each for each in CASES if not options.only or any(word in each for word in options.only)):
        for importer in tried:
            before = next((each for each in trials if (each.name, each.importer) == (name, "torchax")), None)
            # `auto` does nothing else where torchax succeeds.
            known = importer == "auto" and before is not None and before.ok
            each = replace(before, importer="auto") if known and before else try_model(name, importer)
            trials.append(each)
            print(f"{name} {importer}: {'ok' if each.ok else each.reason} {each.error} {each.seconds:.1f} s "
                  f"{each.peak >> 20} + {each.child >> 20} MB", file=sys.stderr, flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in trials], indent=1))
    print(", ".join(f"{package} {_version(package)}" for package in _VERSIONS), "\n")
    print(table([each for each in trials if each.importer in importers], importers))
    if options.own:
        print("\n" + comparison(trials))
    wanted = [each for each in trials if each.importer == importers[-1]]
    return 0 if sum(each.ok for each in wanted) >= 0.95 * len(wanted) else 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(none)"


if __name__ == "__main__":
    sys.exit(main())
