"""The campaign: hands blocks of inputs to workers, keeps a journal from which it continues, and counts."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fuzz.cases import Seeds
from fuzz.seeds import collect, load
from fuzz.worker import COLUMNS, PROGRESS, case_of, layer_of

#: The memory of a worker at the most.
_PEAK: Final = "MiB"
_HEADS: Final = ("inputs", "answered", "refused", "deaths", *COLUMNS[2:], _PEAK)
#: Inputs in a block: what is lost if the campaign is interrupted.
_BLOCKS: Final = {"reader": 500, "containers": 500, "mlir": 50, "self-test": 40}
_BLOCK: Final = 20
#: When a process that does not get on is ended: far behind the limit of a case, on a machine with other work too.
_STUCK: Final = 300.0
#: Of problems that look the same, how many inputs are kept.
_KEPT: Final = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that must not be."""

    layer: str  # the layer of the input
    index: int  # its number
    kind: str  # the column in which it counts
    what: str  # a description: for exceptions the traceback

    @property
    def signature(self) -> str:
        """What problems of the same cause have in common."""
        frames = re.findall(r'File ".*?/(vhlo_tools/[^"]+)", line (\d+)', self.what)
        last = self.what.strip().splitlines()[-1] if self.what.strip() else ""
        return f"{self.layer} {self.kind} {frames[-1:]} {re.sub(r'[^A-Za-z: ]+', '*', last)[:60]}"


@dataclass(slots=True)
class _Worker:
    """A process of the campaign."""

    number: int
    process: subprocess.Popen[bytes]
    block: tuple[int, int] | None = None
    received: bytes = b""
    problems: list[Any] = field(default_factory=list)
    index: int = -1
    since: float = field(default_factory=time.monotonic)


def table(counts: Mapping[str, Counter[str]]) -> str:
    rows = [["layer", *_HEADS], ["---", *["---:"] * len(_HEADS)]]
    rows += [[layer, *(f"{found[head]:,}" for head in _HEADS)] for layer, found in counts.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class Campaign:
    """A campaign in a folder: its seeds, its journal, and the inputs with problems.

    Args:
        folder: The folder.
        seed: The seed of all inputs.
        step: Of the programs, every how many becomes a seed.
        resume: Whether to continue with what the journal has; otherwise it is begun anew.

    Attributes:
        counts: The counts of each layer.
        problems: All problems.

    Raises:
        ValueError: If the journal is that of another seed.
    """

    def __init__(self, folder: Path, seed: int, *, resume: bool = False, step: int = 1) -> None:
        self.folder, self.seed = folder.resolve(), seed
        self.counts: dict[str, Counter[str]] = {}
        self.problems: list[Problem] = []
        self._done: dict[str, list[tuple[int, int]]] = {}
        self._seen: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)
        collect(self.folder / "seeds", step)
        journal = self.folder / "journal.jsonl"
        if resume and journal.exists():
            self._read(journal)
        else:
            journal.write_text(json.dumps({"seed": seed}) + "\n")
        # Behind a line that is cut short.
        whole = journal.read_text().endswith("\n")
        self._journal = journal.open("a")
        self._journal.write("" if whole else "\n")

    def _read(self, journal: Path) -> None:
        lines = journal.read_text().splitlines()
        if json.loads(lines[0])["seed"] != self.seed:
            raise ValueError(f"the journal in {self.folder} is that of the seed {json.loads(lines[0])['seed']}")
        for line in lines[1:]:
            # The last line is cut short if the campaign was killed.
            if line.endswith("}"):
                self._count(json.loads(line))

    def _count(self, block: dict[str, Any]) -> None:
        layer, start, stop = block["layer"], block["start"], block["stop"]
        counts = self.counts.setdefault(layer, Counter())
        counts.update(inputs=stop - start, **block["counts"])
        # A process that died said nothing of its memory.
        counts[_PEAK] = max(counts[_PEAK], block.get("peak", 0))
        self._done.setdefault(layer, []).append((start, stop))
        for index, kind, what in block["problems"]:
            self.problems.append(Problem(layer, index, kind, what))
            self._seen[self.problems[-1].signature] += 1

    def _note(self, block: dict[str, Any]) -> None:
        known = len(self.problems)
        self._count(block)
        self._journal.write(json.dumps(block) + "\n")
        self._journal.flush()
        for problem in self.problems[known:]:
            if self._seen[problem.signature] <= _KEPT:
                self._keep(problem)

    def _keep(self, problem: Problem) -> None:
        """Keep the input of a problem, and what is known of it."""
        seeds: Seeds = load(self.folder / "seeds")
        case = case_of(layer_of(problem.layer), self.seed, problem.index, seeds)
        folder = self.folder / "problems" / f"{problem.layer}-{problem.index}-{problem.kind}"
        for name, data in case.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "PROBLEM").write_text(f"{case.name}\n{problem.what}\n", errors="backslashreplace")

    def _gaps(self, layer: str, inputs: int) -> Iterator[tuple[int, int]]:
        size, at = _BLOCKS.get(layer, _BLOCK), 0
        for start, stop in [*sorted(self._done.get(layer, [])), (inputs, inputs)]:
            while at < min(start, inputs):
                end = min(at + size, start, inputs)
                yield at, end
                at = end
            at = max(at, stop)

    def run(self, layer: str, inputs: int, *, workers: int = 1, seconds: float | None = None) -> None:
        """Run a layer up to a number of inputs, or for a time."""
        until = time.monotonic() + seconds if seconds is not None else None
        blocks = self._gaps(layer, inputs)
        self.counts.setdefault(layer, Counter())
        running = [self._start(layer, number) for number in range(workers)]
        left: list[tuple[int, int]] = []
        try:
            while running:
                for worker in [each for each in running if each.block is None]:
                    late = until is not None and time.monotonic() > until
                    worker.block = left.pop() if left else None if late else next(blocks, None)
                    if worker.block is None:
                        running.remove(worker)
                        self._end(worker)
                        continue
                    worker.since = time.monotonic()
                    assert worker.process.stdin is not None
                    worker.process.stdin.write(b"%d %d\n" % worker.block)
                    worker.process.stdin.flush()
                readable, _, _ = select.select(
                    [each.process.stdout for each in running if each.process.stdout], [], [], 1.0
                )
                for worker in list(running):
                    if worker.process.stdout in readable or self._is_stuck(worker):
                        rest = self._reply(layer, worker)
                        left += [rest] if rest else []
                        if rest or (worker.block is None and worker.process.poll() is not None):
                            # It died, or ended because of the memory that it has.
                            running[running.index(worker)] = self._start(layer, worker.number)
                            self._end(worker)
        finally:
            for worker in running:
                self._end(worker)

    def _start(self, layer: str, number: int) -> _Worker:
        (self.folder / f"progress-{number}").write_bytes(PROGRESS.pack(-1, *[0] * len(COLUMNS)))
        command = [sys.executable, str(Path(__file__).parent), "--worker", layer, str(number)]
        command += ["--seed", str(self.seed), "--folder", str(self.folder)]
        # Hashes too: sets have the same order in every run.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        pipe = subprocess.PIPE
        return _Worker(number, subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment))

    def _end(self, worker: _Worker) -> None:
        process = worker.process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _progress(self, worker: _Worker) -> tuple[int, dict[str, int]]:
        index, *counts = PROGRESS.unpack((self.folder / f"progress-{worker.number}").read_bytes())
        return index, dict(zip(COLUMNS, counts, strict=True))

    def _is_stuck(self, worker: _Worker) -> bool:
        index, _ = self._progress(worker)
        if index != worker.index:
            worker.index, worker.since = index, time.monotonic()
        if time.monotonic() - worker.since < _STUCK:
            return False
        worker.process.kill()
        return True

    def _reply(self, layer: str, worker: _Worker) -> tuple[int, int] | None:
        """Note what a worker has done; return what is left of its block if it died."""
        assert worker.block is not None
        assert worker.process.stdout is not None
        start, stop = worker.block
        while data := os.read(worker.process.stdout.fileno(), 1 << 16):
            worker.received += data
            *lines, worker.received = worker.received.split(b"\n")
            for line in lines:
                said = json.loads(line)
                if "problem" in said:
                    worker.problems.append(said["problem"])
                    continue
                self._note({"layer": layer, "start": start, **said, "problems": worker.problems})
                worker.block, worker.problems = None, []
                if said["counts"]["memory"]:
                    worker.process.wait()
                return (said["stop"], stop) if said["stop"] < stop else None
            if not lines:
                continue
            return None
        code = worker.process.wait()
        index, counts = self._progress(worker)
        if index < start:
            raise RuntimeError(f"a worker of {layer} ended before its first input, with {code}")
        stuck = time.monotonic() - worker.since >= _STUCK
        kind = "hangs" if stuck else "deaths"
        counts[kind] = counts.get(kind, 0) + 1
        problems = [*worker.problems, (index, kind, f"no end within {_STUCK} s" if stuck else f"it ended with {code}")]
        self._note({"layer": layer, "start": start, "stop": index + 1, "counts": counts, "problems": problems})
        worker.block, worker.problems = None, []
        return (index + 1, stop) if index + 1 < stop else None

    def report(self) -> str:
        """Return the table, and problems by what they have in common."""
        lines = [table(self.counts), ""]
        first: dict[str, Problem] = {}
        for problem in self.problems:
            first.setdefault(problem.signature, problem)
        for signature, number in sorted(self._seen.items(), key=lambda each: -each[1]):
            lines.append(f"{number} x {signature}: first {first[signature].layer}:{first[signature].index}")
        return "\n".join(lines)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
