"""Mixed work in one process from several threads, while its child processes are killed: nothing may leak or be wrong.

    python tests/conformance/soak.py --seconds 600

Each thread runs programs on both engines, trains with donated buffers, calls handlers, reads damaged artifacts, and
moves and compares whole ones. Once a second one of the child processes is killed. Every answer is checked; what a call
may raise is an error of the toolkit about a crash. Memory, descriptors and processes are measured throughout, of this
process and of its children. The script prints a table, and ends with 1 if an answer was wrong, a call raised anything
else, or a figure of the last third exceeds that of the second by more than a tenth.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

import vhlo_tools as vt
from vhlo_tools.printable import printable

F32: Final = "tensor<64xf32>"
STEP: Final = f"""func.func @main(%x: {F32} {{tf.aliasing_output = 0 : i32}}, %g: {F32}) -> {F32} {{
  %0 = stablehlo.add %x, %g : {F32}
  return %0 : {F32}
}}"""
CALL: Final = f"""func.func @main(%a: {F32}) -> {F32} {{
  %0 = stablehlo.custom_call @twice(%a) : ({F32}) -> {F32}
  %1 = stablehlo.add %0, %a : {F32}
  return %1 : {F32}
}}"""
SUM: Final = f"""func.func @main(%a: {F32}) -> {F32} {{
  %0 = "stablehlo.all_reduce"(%a) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32> }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({F32}) -> {F32}
  return %0 : {F32}
}}"""
#: Errors of crashes: the one that names it, that of buffers that were lost, and those of bytes tried in a child.
CRASHES: Final = (vt.EngineCrashError, vt.BufferDeletedError, vt.EngineStartError)
#: The growth of a figure that is no leak: its ratio, and in MiB or numbers.
GROWTH: Final = (1.1, 8)


@dataclass(frozen=True, slots=True)
class Sample:
    """What this process and its children take at one time."""

    seconds: float  # the time since the start
    memory: float  # the resident private memory of this process, in MiB
    children: float  # the resident private memory of all its children, in MiB
    descriptors: float  # the open descriptors of this process
    processes: float  # the number of its children
    shared: float  # the files in memory that this process has mapped or open, in MiB


@dataclass
class Soak:
    """The work, and what came of it."""

    seconds: float  # how long to work
    threads: int = 4  # the number of threads
    seed: int = 0  # the seed of their choices
    done: Counter[str] = field(default_factory=Counter)  # the number of calls by kind of work
    #: the number of calls that ended with the error of a crash, by its class
    crashed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # wrong answers and errors that are none of a crash
    killed: int = 0  # the number of children killed
    samples: list[Sample] = field(default_factory=list)  # the measurements

    def run(self) -> None:
        """Do the work."""
        self._end = time.monotonic() + self.seconds
        begun = time.monotonic()
        workers = [threading.Thread(target=self._work, args=(number,)) for number in range(self.threads)]
        for each in workers:
            each.start()
        draw = random.Random(self.seed)
        while time.monotonic() < self._end:
            time.sleep(1.0)
            if children := [each for each in _children() if _ends_in_worker(each)]:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(children), signal.SIGKILL)
                    self.killed += 1
            self.samples.append(_sample(time.monotonic() - begun))
        for each in workers:
            each.join()

    def _work(self, number: int) -> None:
        draw = random.Random(self.seed * 1000 + number)
        work = _Work(draw)
        kinds: dict[str, Callable[[], bool]] = {
            name: getattr(work, name) for name in dir(work) if not name.startswith("_")
        }
        while time.monotonic() < self._end:
            name = draw.choice(list(kinds))
            try:
                right = kinds[name]()
            except CRASHES as error:
                self.crashed[type(error).__name__] += 1
                continue
            except vt.VhloToolsError as error:
                # A child that reads bytes was killed: they seem to crash the library.
                if "SIGKILL" in str(error) or "crashed" in str(error):
                    self.crashed[type(error).__name__] += 1
                    continue
                self.wrong.append(f"{name}: {type(error).__name__}: {printable(str(error))[:300]}")
                continue
            except BaseException as error:
                self.wrong.append(f"{name}: {type(error).__name__}: {printable(str(error))[:300]}")
                continue
            self.done[name] += 1
            if not right:
                self.wrong.append(f"{name}: a wrong answer")


class _Work:
    """What a thread does: each method returns whether the answer is right."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._step = vt.load_executable(STEP, engine="xla")
        self._artifact = vt.serialize(STEP, "1.0.0")

    def interpret(self) -> bool:
        array = self._numbers()
        (result,) = vt.run(STEP, [array, array], engine="reference")
        return np.array_equal(result, array + array)

    def compile_and_run(self) -> bool:
        array = self._numbers()
        (result,) = vt.run(STEP, [array, array], engine="xla")
        return np.array_equal(result, array + array)

    def run_large(self) -> bool:
        size = self._draw.choice([1 << 16, 1 << 18, 1 << 20])
        array = np.full(size, self._draw.randrange(100), np.float32)
        (result,) = vt.run(STEP.replace("64", str(size)), [array, array], engine="xla")
        return np.array_equal(result, array + array)

    def train(self) -> bool:
        array = self._numbers()
        buffer: Any = vt.Buffer(array.copy())
        for _ in range(10):
            (buffer,) = self._step.execute([buffer, array], donate=(0,)).buffers
        return np.array_equal(np.asarray(buffer), array * 11)

    def call_back(self) -> bool:
        array = self._numbers()
        engine: Any = self._draw.choice(["reference", "xla"])
        (result,) = vt.run(CALL, [array], engine=engine, handlers={"twice": lambda call, taken: taken * 2})
        return np.array_equal(result, array * 3)

    def run_in_parallel(self) -> bool:
        one, other = self._numbers(), self._numbers()
        results = vt.run_parallel(SUM, [[one], [other]], replicas=2)
        return all(np.array_equal(result, one + other) for (result,) in results)

    def read_whole(self) -> bool:
        data = bytes(vt.open_artifact(bytes(self._artifact)))
        return bool(vt.deserialize(data).operation.verify())

    def read_damaged(self) -> bool:
        data = bytearray(bytes(self._artifact))
        data[self._draw.randrange(len(data))] ^= 1 << self._draw.randrange(8)
        try:
            vt.deserialize(bytes(data))
        except vt.VhloToolsError as error:
            return bool(str(error))
        return True

    def move(self) -> bool:
        moved = vt.retarget(vt.retarget(self._artifact, "current"), "1.0.0")
        return bytes(moved) == bytes(self._artifact) and not vt.diff(moved, self._artifact)

    def verify(self) -> bool:
        return vt.verify(STEP, self._artifact, rounds=1).passed

    def _numbers(self) -> np.ndarray[Any, Any]:
        return np.array([self._draw.randrange(1000) for _ in range(64)], np.float32)


def _children(process: int | None = None) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{process or os.getpid()}/task").glob("*/children"):
        with suppress(OSError):
            for each in map(int, task.read_text().split()):
                found += [each, *_children(each)]
    return found


def _ends_in_worker(process: int) -> bool:
    """Return whether a process is a child that computes, and not the server that starts these."""
    with suppress(OSError):
        return not _children(process) and int(_field(process, "PPid")) != os.getpid()
    return False


def _field(process: int, name: str) -> str:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split()[1]
    return "0"


def _sample(seconds: float) -> Sample:
    children = _children()
    private = 0.0
    for each in children:
        with suppress(OSError):
            private += int(_field(each, "RssAnon")) / 1024
    descriptors = list(Path("/proc/self/fd").iterdir())
    shared = 0
    for path in descriptors:
        with suppress(OSError):
            if "memfd:" in str(path.readlink()):
                shared += path.stat().st_blocks * 512
    memory = int(_field(os.getpid(), "RssAnon")) / 1024
    return Sample(seconds, memory, private, len(descriptors), len(children), shared / (1 << 20))


def grown(samples: list[Sample]) -> list[str]:
    """Return the figures whose median of the last third exceeds that of the second by more than :data:`GROWTH`."""
    third = len(samples) // 3
    found = []
    for name in ("memory", "children", "descriptors", "processes", "shared"):
        before = median(getattr(each, name) for each in samples[third : 2 * third])
        after = median(getattr(each, name) for each in samples[2 * third :])
        if after > GROWTH[0] * before and after > GROWTH[1] + before:
            found.append(f"{name}: {before:.0f} to {after:.0f}")
    return found


def table(soak: Soak) -> list[str]:
    lines = ["| | first third | second | last | most |", "|---|---|---|---|---|"]
    third = max(1, len(soak.samples) // 3)
    titles = {
        "memory": "private memory of the caller, MiB",
        "children": "private memory of the children, MiB",
        "descriptors": "descriptors of the caller",
        "processes": "children",
        "shared": "shared memory, MiB",
    }
    for name, title in titles.items():
        values = [getattr(each, name) for each in soak.samples]
        parts = [values[:third], values[third : 2 * third], values[2 * third :]]
        cells = [f"{median(part):.0f}" if part else "-" for part in parts]
        lines.append(f"| {title} | {' | '.join(cells)} | {max(values, default=0):.0f} |")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Work, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    soak = Soak(options.seconds, options.threads, options.seed)
    soak.run()
    print(*table(soak), sep="\n")
    print(f"calls: {sum(soak.done.values())} ({', '.join(f'{name} {count}' for name, count in soak.done.items())})")
    print(f"killed: {soak.killed}; calls that a crash ended: {dict(soak.crashed)}")
    leaks = grown(soak.samples)
    print(*(f"grown: {each}" for each in leaks), *(f"wrong: {each}" for each in soak.wrong[:50]), sep="\n")
    print(f"wrong: {len(soak.wrong)}, grown: {len(leaks)}")
    return 1 if soak.wrong or leaks else 0


if __name__ == "__main__":
    sys.exit(main())
