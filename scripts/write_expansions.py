"""Writes the table of expansions in ``docs/expansions.md`` from ``dialect_specs/``.

python scripts/write_expansions.py            writes it
python scripts/write_expansions.py --check    exits with 1 if it is not what is there
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from vhlo_tools.spec import Effect, Feature, known_confirmations, known_features, minimum_version

PAGE = Path(__file__).resolve().parents[1] / "docs" / "expansions.md"
COLUMNS = (
    "feature",
    "since",
    "effect",
    "oldest version reached",
    "does not apply to",
    "read and run by jaxlib",
)
#: A text of so many characters is not said twice.
LONG = 100
#: The paragraphs around the table.
BEGIN, END = "from `dialect_specs/vhlo/`.\n\n", "\n## Shardy\n"


def rows() -> Iterator[str]:
    """Yield the lines of the table, the newest features first."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    said: dict[str, str] = {}
    for feature in reversed(known_features()):
        yield from _rows(feature, said)


def _rows(feature: Feature, said: dict[str, str]) -> Iterator[str]:
    named = f"`{feature.id}`: {feature.title} | {feature.introduced}"
    if feature.unasked:
        yield f"| {named} | exact, without being asked | {minimum_version()} | {feature.unasked} | |"
    elif not feature.expansions:
        yield f"| {named} | none | | {feature.inexpressible or 'no expansion yet'} | |"
    for number, each in enumerate(feature.expansions):
        effect = f"relaxed: gives up {each.gives_up}" if each.gives_up else each.effect
        limits = _once(each.limits or "", f"`{feature.id}`, {each.effect}", said)
        cells = [limits, _releases(feature, each.effect)]
        yield f"| {f'`{feature.id}` | ' if number else named} | {effect} | {each.to} | {' | '.join(cells)} |"


def _once(text: str, where: str, said: dict[str, str]) -> str:
    """Return a text or, if it is long and stands in a row above, which row that is."""
    first = said.setdefault(text, where)
    return text if len(text) < LONG or first == where else f"as {first}"


def _releases(feature: Feature, effect: Effect) -> str:
    """Return the releases that read an expanded program; what they could not run has the reason behind them."""
    known = [each for each in known_confirmations() if (each.feature, each.effect) == (feature.id, effect)]
    known.sort(key=lambda each: tuple(map(int, each.release.split("."))))
    return ", ".join(each.release + (f" (read only: {each.not_run})" if each.not_run else "") for each in known)


def main(check: bool) -> int:
    """Write the table, or check it, and return the exit code."""
    before = PAGE.read_text()
    head, _, rest = before.partition(BEGIN)
    _, _, tail = rest.partition(END)
    after = "".join([head, BEGIN, *(f"{row}\n" for row in rows()), END, tail])
    if check:
        return int(before != after)
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
