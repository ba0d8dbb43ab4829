"""What becomes of a framework's programs: moved to the oldest version that they allow, run, and compared."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import vhlo_tools as vt
from vhlo_tools.integrations.proof import coarsest, differences

#: What became of a program, and what there is to say of it.
Outcome = tuple[str, str]
#: What becomes of a program that the framework itself does not export.
NO_EXPORT: Final = "no export by the framework"
_PLACE: Final = re.compile(r"\.py:\d+")


def became(artifact: vt.Artifact, runs: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> Outcome:
    """Move an artifact, run it on each of ``runs``, inputs with what the framework computes, and compare."""
    oldest = artifact.requirements().downgradable_to
    moved = vt.retarget(artifact, oldest)
    # The interpreter is chosen where it takes no time, but never for open sizes, of which there are several runs.
    is_small = len(runs) > 1 or vt.load_executable(moved).engine == "reference"
    engines = [vt.load_executable(moved, engine="xla")]
    engines += [vt.load_executable(moved, engine="reference")] if is_small else []
    precision = coarsest(artifact)
    for inputs, expected in runs:
        for each in engines:
            found = each.run(inputs)
            names = [f"result {number}" for number in range(len(expected))]
            kinds = [[(one.dtype, one.shape) for one in arrays] for arrays in (found, expected)]
            said = next(differences(found, expected, names, precision), None) if kinds[0] == kinds[1] else f"{kinds}"
            if said is not None:
                return "different", f"at {oldest} by {each.engine}: {said}"
    return "equal", f"at {oldest} by {' and '.join(each.engine for each in engines)}"


def main(
    cases: Mapping[str, Callable[[], Outcome]],
    refused: Mapping[str, str],
    doc: str | None,
    lineless: Collection[str] = (),
) -> int:
    """Print what becomes of each, and return 1 if one differs, is refused without being listed or without a line.

    Args:
        cases: What exports a program, and returns what :func:`became` does; a refusal is an error of this package.
        refused: The programs that are refused, with why: the message has this, and names an op with its line.
        doc: What it is all for.
        lineless: Those that are refused without a line.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--only", default="", help="a regular expression that names contain")
    only = parser.parse_args().only
    counts = Counter[str]()
    failed = []
    for name, make in cases.items():
        if not re.search(only, name):
            continue
        try:
            what, said = make()
        except vt.VhloToolsError as error:
            what, said = "refused", " ".join(str(error).split())[:600]
            if refused.get(name, " ") not in said:
                what = "refused, and why is not listed"
            elif not _PLACE.search(said) and name not in lineless:
                what = "refused without a line"
        except Exception as error:  # a fault of the program here, or of this package
            what, said = "fault", f"{type(error).__name__}: {error}"[:600].replace("\n", " ")
        print(f"{what:10} {name}: {said}", flush=True)
        counts[what] += 1
        if what not in (("refused",) if name in refused else ("equal", NO_EXPORT)):
            failed.append(name)
    print("\n".join(f"{count:5} {what}" for what, count in counts.most_common()))
    print(*([f"not as expected: {', '.join(failed)}"] if failed else []))
    return int(bool(failed))
