"""A process that runs blocks of inputs: it reads their bounds, and answers in lines of JSON."""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Final

from fuzz.cases import Case, Layer, Seeds
from fuzz.layers import LAYERS
from fuzz.seeds import load
from fuzz.self_test import SELF_TEST
from fuzz.watch import Watch

#: What is counted, beside inputs and deaths; of each input one of the first two, or problems.
COLUMNS: Final = ("answered", "refused", "hangs", "memory", "files", "untyped", "output")
#: The number of the input in progress, and the counts of the block so far: what is left of a process that died.
PROGRESS: Final = struct.Struct(f"<q{len(COLUMNS)}q")
_LONGEST: Final = 6000
#: The seconds of processor time that a mutator may take: one that copies copies makes a message of 30 MB in 22.
_MUTATING: Final = 120


def layer_of(name: str) -> Layer:
    return SELF_TEST if name == SELF_TEST.name else LAYERS[name]


def case_of(layer: Layer, seed: int, index: int, seeds: Seeds) -> Case:
    """Return an input: the same for the same layer, seed, number, and seeds."""
    case: Case = layer.draw(random.Random(f"{layer.name} {seed} {index}"), seeds)
    return case


def work(name: str, seed: int, folder: Path, worker: int) -> None:
    """Run the blocks that come on stdin, each a line with its first number and the number behind its last.

    Args:
        name: The name of the layer.
        seed: The seed of the campaign.
        folder: The folder of the campaign.
        worker: The number of this worker.
    """
    replies = os.fdopen(os.dup(1), "w")
    layer, seeds = layer_of(name), load(folder / "seeds")
    with (folder / f"progress-{worker}").open("r+b") as file:
        progress = mmap.mmap(file.fileno(), PROGRESS.size)
    watch = Watch(folder / f"worker-{worker}", layer)
    for line in sys.stdin:
        start, stop = map(int, line.split())
        counts = dict.fromkeys(COLUMNS, 0)
        for index in range(start, stop):
            PROGRESS.pack_into(progress, 0, index, *counts.values())
            # A mutator that does not end is a defect of the campaign.
            signal.setitimer(signal.ITIMER_PROF, _MUTATING)
            case = case_of(layer, seed, index, seeds)
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcome = watch.run(case)
            for kind, what in outcome.problems:
                counts[kind] += 1
                # At once, for this process may die of the next one.
                print(json.dumps({"problem": (index, kind, what[-_LONGEST:])}), file=replies, flush=True)
            if not outcome.problems:
                counts["answered" if outcome.answered else "refused"] += 1
            if any(kind == "memory" for kind, _ in outcome.problems):
                # The most that a process had does not sink; the next one begins anew.
                stop = index + 1
                break
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(json.dumps({"stop": stop, "counts": counts, "peak": peak}), file=replies, flush=True)
        if counts["memory"]:
            return
