"""Check that what compilers of accelerators make of random programs can be read, and computes what the programs do.

`check_optimized_hlo.py RELEASE` draws the programs of the sweep of the engines, of which numpy knows the results, has
them compiled for a device, such as `libtpu==0.0.52@v5e`, which need not be there, reads the optimized HLO, and runs it
on XLA for the CPU. Prints each that cannot be read or computes something else, and counts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, Final

import numpy as np
from engine_sweep import draw_program
from sweep_programs import Drawn, Value

import vhlo_tools as vt
from vhlo_tools.releases import ReleaseProcess

#: Relative to the greatest expected value: TPUs multiply matrices in bf16.
_CLOSE: Final = 2.0**-6


def like(expected: Value, seen: Any) -> bool:
    """Return whether integers are equal, and other numbers close."""
    if seen.dtype != expected.array.dtype or seen.shape != expected.shape:
        return False
    wanted, found = expected.wide, Value("", expected.element, expected.shape, seen).wide
    if wanted.dtype.kind in "iub":
        return bool(np.array_equal(wanted, found))
    with np.errstate(all="ignore"):
        known = np.isfinite(wanted)
        most = float(np.max(np.abs(wanted), initial=0, where=known))
        close = np.abs(wanted - found) <= _CLOSE * most + expected.error
        return bool(np.all(close | ~known))


def ended(drawn: Drawn, process: ReleaseProcess) -> tuple[str, str]:
    """Return how it ended, and why."""
    try:
        artifact = vt.serialize(drawn.text, str(process.release).partition("@")[0])
    except vt.VhloToolsError as error:
        return "not written", str(error)
    answer = process.compile(bytes(artifact), optimized=True)
    if not answer.succeeded:
        return "refused", answer.words
    hlo = bytes(answer.parts[0])
    try:
        read = vt.serialize(hlo)
    except vt.VhloToolsError as error:
        return "unread", str(error)
    try:
        seen = vt.run(read, drawn.inputs, engine="xla")
    except vt.VhloToolsError as error:
        return "not run", str(error)
    return ("equal", "") if all(map(like, drawn.results, seen)) else ("different", "")


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+")
    given = parser.parse_args()
    counts = Counter[str]()
    with ReleaseProcess(given.release) as process:
        for number in given.only or range(given.first, given.first + given.count):
            drawn = draw_program(given.seed, number)
            how, why = ended(drawn, process)
            counts[how] += 1
            if how != "equal":
                print(f"--seed {given.seed} --only {number}: {how} {why[:300]}", flush=True)
    print(", ".join(f"{how} {count}" for how, count in sorted(counts.items())))
    return 1 if counts["unread"] or counts["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
