"""Count how many artifacts of the archive can be written for old releases, without and with expansions.

`expansion_reach.py` prints a line for each release: how many artifacts reach it as they are, with the exact expansions,
with all of them, and with other signatures too. `--blockers` prints which features keep the others away, with the
number of artifacts of each.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1]))

from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

RELEASES: Final = ("jaxlib==0.4.26", "jaxlib==0.4.31", "jaxlib==0.5.3", "jaxlib==0.8.3")
#: What is allowed.
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "as they are": {},
    "--expand": {"expand": True},
    "--expand --allow-relaxed all": {"expand": True, "allow_relaxed": "all"},
    "the same and --allow-signature-change": {
        "expand": True,
        "allow_relaxed": "all",
        "allow_signature_change": True,
    },
}


@dataclass
class Reach:
    """What became of the artifacts for one release and one policy."""

    reached: int = 0  # how many can be written
    blockers: Counter[str] = field(default_factory=Counter)  # how many artifacts each feature, or error, keeps away


def reach(artifacts: Iterator[tuple[str, bytes]]) -> dict[tuple[str, str], Reach]:
    counts = {(release, policy): Reach() for release in RELEASES for policy in POLICIES}
    for _, data in artifacts:
        for release in RELEASES:
            blockers: set[str] = {"all"}
            for policy, options in POLICIES.items():
                # What reaches a release as it is does so with every policy.
                blockers = blockers and blockers_of(data, release, options)
                counted = counts[release, policy]
                counted.reached += not blockers
                counted.blockers.update(blockers)
    return counts


def blockers_of(data: bytes, release: str, options: Mapping[str, Any]) -> set[str]:
    """Return the features that keep an artifact from a release."""
    try:
        vt.retarget(data, release, **options)
    except (vt.DowngradeError, vt.UnsupportedFeatureError) as error:
        return {each.feature for each in error.findings}
    except vt.VhloToolsError as error:
        return {type(error).__name__}
    return set()


def main() -> int:
    """Count, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blockers", action="store_true", help="print the features that keep artifacts away")
    arguments = parser.parse_args()
    artifacts = list(corpus_files(ordinary=False))
    counts = reach(iter(artifacts))
    print(f"of {len(artifacts)} artifacts, {get_provider().library.name}")
    for release in RELEASES:
        print(f"{release}: " + ", ".join(f"{counts[release, policy].reached} {policy}" for policy in POLICIES))
        for policy in POLICIES if arguments.blockers else ():
            kept = ", ".join(f"{number} {name}" for name, number in counts[release, policy].blockers.most_common())
            print(f"  {policy}: kept away by {kept or 'nothing'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
