"""What files of nothing but one kind of thing cost: memory and time, by command, as the files grow.

    python tests/conformance/hostile_growth.py --size 500000 --parts 1,2,4,8

Each file is made in as many sizes as there are parts, and each command runs on each, in a process of its own. Printed
are the seconds of processor time and the memory at the most, as a multiple of the file, of the largest, and the
exponents of time and memory: linear is 1. A row is marked with ! above the limits of `tests/bytecode/test_growth.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.forked_measures import COMMANDS, Cost, cost, import_commands  # noqa: E402
from support.hostile_shapes import SHAPES  # noqa: E402
from support.hostile_texts import TEXTS  # noqa: E402

_ALL = SHAPES | TEXTS
#: More than this, as a power of the size of the file, is not linear; and where it takes less than so many seconds, the
#: time that a process takes to begin is a part of it.
_LINEAR = 1.35
_SECONDS = 0.2
#: The limit on memory as a multiple of the file.
_MULTIPLE = 40


def _measured(shape: str, command: str, sizes: list[int], folder: Path) -> list[tuple[int, Cost]]:
    found = []
    for size in sizes:
        path = folder / f"{size}.mlirbc"
        if not path.exists():
            path.write_bytes(_ALL[shape](size))
        found.append((path.stat().st_size, cost(COMMANDS[command](path))))
    return found


def _power(points: list[tuple[int, float]]) -> float:
    (least, first), (most, last) = points[0], points[-1]
    return math.log(max(last, 1e-9) / max(first, 1e-9)) / math.log(most / least) if most > least and first else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=500_000, help="bytes of the smallest files")
    parser.add_argument("--parts", default="1", help="how many times as large the others are")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--shapes", default="", help="parts of the names of those to measure, by default of all")
    given = parser.parse_args()
    import_commands()
    sizes = [given.size * int(each) for each in given.parts.split(",")]
    print(f"{'shape':44} {'command':9} {'bytes':>9} {'s':>6} {'memory':>7} {'s^':>5} {'mem^':>5}  ends with")
    for shape in _ALL:
        if given.shapes and not any(each in shape for each in given.shapes.split(",")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for command in given.commands.split(","):
                found = _measured(shape, command, sizes, Path(folder))
                size, last = found[-1]
                time = _power([(each, one.seconds) for each, one in found]) if last.seconds > _SECONDS else 0
                memory = _power([(each, one.memory) for each, one in found])
                marks = "!" if time > _LINEAR or last.memory > _MULTIPLE * size or last.code < 0 else ""
                numbers = f"{size:9} {last.seconds:6.2f} {last.memory / size:6.1f}x {time:5.2f} {memory:5.2f}"
                print(f"{shape:44} {command:9} {numbers} {marks:1} {last.code} {last.said[:90]}", flush=True)


if __name__ == "__main__":
    main()
