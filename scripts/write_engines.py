"""Writes the tables of ``docs/engines.md``: known faults, options, and what the numerical suite and the sweep recorded.

python scripts/write_engines.py            writes them
python scripts/write_engines.py --check    exits with 1 if they are not what is there

The records are ``numerical_suite.json``, ``engine_sweep.json`` and ``element_values.json`` in ``tests/conformance``,
which ``--record`` of the scripts of their names makes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from vhlo_tools.bindings.xla_client import JUDGE_OPTIONS
from vhlo_tools.execution import KNOWN_FAULTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "engines.md"
RECORD = ROOT / "tests" / "conformance" / "numerical_suite.json"
SWEEP = RECORD.with_name("engine_sweep.json")
VALUES = RECORD.with_name("element_values.json")
#: The outcomes, in the order of the columns, and what they are called.
OUTCOMES: Final = {
    "agrees": "agree with JAX",
    "differs": "differ",
    "refused": "refused",
    "died": "crash",
    "too-long": "take too long",
    "raised": "other errors",
}
#: The causes of fewer programs are counted together.
SHOWN: Final = 5


def outcomes(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of how many programs end how on each engine."""
    counted = record["engines"]
    seen = [word for word in OUTCOMES if any(word in each for each in counted.values())]
    yield f"| {record['programs']:,} programs on | with | {' | '.join(OUTCOMES[word] for word in seen)} |"
    yield "|---" * (len(seen) + 2) + "|"
    for engine, numbers in counted.items():
        row = [f"`{engine}`", record["with"][engine], *(f"{numbers.get(word, 0):,}" for word in seen)]
        yield f"| {' | '.join(row)} |"


def causes(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of what all others than those that agree end of."""
    yield "| engine | programs | outcome | cause |"
    yield "|---|---|---|---|"
    order = list(OUTCOMES)
    found = sorted(record["causes"], key=lambda each: (order.index(each["outcome"]), each["engine"], -each["programs"]))
    few = [each for each in found if each["programs"] < SHOWN]
    for each in found:
        if each not in few:
            row = [f"`{each['engine']}`", str(each["programs"]), OUTCOMES[each["outcome"]], each["reason"]]
            yield f"| {' | '.join(row)} |"
    programs = sum(each["programs"] for each in few)
    yield f"| | {programs} | | {len(few)} other causes, of fewer than {SHOWN} programs each |"


def faults(_: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of known faults."""
    yield "| fault | in | what goes wrong | avoided | right from jaxlib |"
    yield "|---|---|---|---|---|"
    for each in KNOWN_FAULTS:
        link = f"[{each.id}](upstream-findings.md#{each.id.lower()})"
        ops = ", ".join(f"`{name}`" for name in each.ops[:3]) + (" and others" if len(each.ops) > 3 else "")
        yield f"| {link} | {ops or 'all ops'} | {each.title} | {each.remedy} | {each.mended or '-'} |"


def judge_options(_: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of options with which XLA is compiled."""
    yield "| option | value | reason |"
    yield "|---|---|---|"
    for name, each in JUDGE_OPTIONS.items():
        yield f"| `{name}` | `{each.value!r}` | {each.reason} |"


def sweep(_: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of random programs."""
    yield "| jaxlib | programs | equal | refused | different | crashed |"
    yield "|---|---|---|---|---|---|"
    for release, counts in json.loads(SWEEP.read_text()).items():
        yield f"| {release} | {' | '.join(f'{count:,}' for count in counts.values())} |"


def values(_: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of the table of ops on all values of narrow types, and special ones of wide types."""
    record = json.loads(VALUES.read_text())
    yield "| engine | with | ops of types | right | refused | wrong | results |"
    yield "|---|---|---|---|---|---|---|"
    for engine, counted in record["engines"].items():
        numbers = [counted[word] for word in ("ops", "right", "refused", "wrong", "values")]
        yield f"| `{engine}` | {record['with'][engine]} | {' | '.join(f'{each:,}' for each in numbers)} |"


TABLES: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "outcomes": outcomes,
    "causes": causes,
    "faults": faults,
    "options": judge_options,
    "sweep": sweep,
    "values": values,
}


def main(check: bool) -> int:
    """Write the tables, or check them, and return the exit code."""
    record = json.loads(RECORD.read_text())
    before = PAGE.read_text()

    def table(found: re.Match[str]) -> str:
        return f"<!-- table: {found[1]} -->\n" + "".join(f"{row}\n" for row in TABLES[found[1]](record))

    after = re.sub(r"<!-- table: (\w+) -->\n(?:\|.*\n)*", table, before)
    if check:
        return int(before != after)
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
