"""Let released jaxlibs read and run expanded programs, and record which of them did.

python scripts/confirm_expansions.py             writes ``dialect_specs/vhlo/expansions_confirmed.toml``
python scripts/confirm_expansions.py tan async   confirms these features anew, and keeps the other entries

Run it with the newest provider, which has all features; then ``scripts/write_expansions.py`` for the table of
``docs/expansions.md``. Each release is installed once in an environment of its own, which takes 0.4 GB of disk space
(``scripts/environments.py``). A release that does not read what was written for it, or computes something else, is an
error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.corpus import ROOT
from support.expansion_confirmations import cases, confirm

from vhlo_tools.spec import ExpansionConfirmation, known_confirmations, known_feature, known_features

DATA = ROOT / "dialect_specs" / "vhlo" / "expansions_confirmed.toml"
HEAD = """\
# Expanded programs that releases of jaxlib have read and run which are older than what was expanded; written by
# scripts/confirm_expansions.py.
#
# feature  the id of the feature; its program is tests/programs/expansion/<feature>.mlir.
# effect   the effect of the expansion.
# release  the release of jaxlib: the newest without the feature, and two of the oldest.
# written  the version that the program was written for: the newest without the feature, and the oldest of all.
# not_run  the step at which the release failed, and what it said, if it read the program but did not run it. Without it
#          the release ran the program with the results of the newest release, the same bits or within the bound of
#          tests/support/expansion_confirmations.py; for collectives on two devices.
"""


def lines(confirmations: Iterable[ExpansionConfirmation]) -> Iterator[str]:
    """Yield the contents of the file."""
    yield HEAD
    for each in confirmations:
        yield "[[confirmation]]"
        yield from (f'{key} = "{getattr(each, key)}"' for key in ("feature", "effect", "release", "written"))
        if each.not_run:
            # TOML has the escapes of JSON.
            yield f"not_run = {json.dumps(each.not_run)}"
        yield ""


def main(names: list[str]) -> int:
    """Confirm the expansions of features, by default of all, and return the exit code."""
    features = [known_feature(each) for each in names]
    found = [confirm(case) for case in cases(features)]
    kept = [each for each in known_confirmations() if each.feature not in names] if names else []
    order = [each.id for each in known_features()]
    DATA.write_text("\n".join(lines(sorted([*kept, *found], key=lambda each: order.index(each.feature)))))
    print(f"{len(found)} confirmed, of which {sum(each.not_run is not None for each in found)} were read only")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
