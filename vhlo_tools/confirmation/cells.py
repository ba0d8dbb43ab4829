"""Cells of a matrix: a program that one release wrote, and the outcome on another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from vhlo_tools.records import dataclass
from vhlo_tools.stores import Column, ListOf, Table
from vhlo_tools.version import Version

#: ``equal``: it ran, and its results are within the tolerance of the expected ones; ``differs``: they are not;
#: ``read``: it was read and not run; ``refused``: it was not read; ``crash`` and ``timeout``: the release died of it,
#: or did not end, when it read or ran it; ``unwritten``: there was nothing to read, for it was not written.
Outcome = Literal["equal", "differs", "read", "refused", "crash", "timeout", "unwritten"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_PHRASES: Final[Mapping[Outcome, str]] = {
    "equal": "reads it, and computes the same",
    "read": "reads it",
    "differs": "computes other results",
    "refused": "refuses it",
    "crash": "died of it",
    "timeout": "does not end",
}


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """A release in a matrix.

    Attributes:
        name: The release, such as ``jaxlib==0.4.31``.
        stablehlo: Its StableHLO version: as the specification has it, otherwise as it says; ``None`` if neither does.
        said: The version that it says itself, if it does.
        packages: The versions of the packages in its environment.
    """

    name: str
    stablehlo: Version | None
    said: Version | None
    packages: Mapping[str, str]

    @property
    def contradicted(self) -> bool:
        """Whether the release says another version than the specification has of it."""
        return self.said is not None and self.stablehlo != self.said

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Cell:
    """What a consumer made of a program as a producer wrote it.

    Attributes:
        program: The program.
        producer: The release that wrote it.
        consumer: The release that read it.
        version: The StableHLO version that it was written for; ``None`` if it was not written.
        predicted: Whether the specification says that the consumer reads it, or, of what was not written, that the
            producer can write it; ``None`` if it cannot say.
        reasons: Why the specification says that it is not read, or cannot say.
        outcome: What happened.
        was_read: Whether the consumer read it, whatever happened when it ran it.
        words: What the release said, what it died of, or how the results differ.
        seconds: How long the consumer took.
    """

    program: str
    producer: str
    consumer: str
    version: Version | None
    predicted: bool | None
    reasons: tuple[str, ...]
    outcome: Outcome
    was_read: bool
    words: str = ""
    seconds: float = 0.0

    @property
    def confirmed(self) -> bool | None:
        """Whether what happened was predicted; ``None`` if nothing was."""
        return None if self.predicted is None else self.predicted == self.was_read

    def __str__(self) -> str:
        said = f": {self.words}" if self.words else ""
        reasons = "; ".join(self.reasons)
        if self.outcome == "unwritten":
            can = {True: "can write it", False: f"cannot write it: {reasons}", None: f"may not write it: {reasons}"}
            expected = f"the specification says that {self.producer} {can[self.predicted]}"
            return f"{self.program}: {expected}; {self.producer} did not write it{said}"
        expected = ""
        if self.confirmed is False:
            reads = "reads it" if self.predicted else f"does not read it ({reasons})"
            expected = f"the specification says that {self.consumer} {reads}; but "
        first = "reads it, and " if self.was_read and self.outcome in ("crash", "timeout") else ""
        found = f"{self.consumer} {first}{_PHRASES[self.outcome]}{said}"
        return f"{self.program}, written by {self.producer} for StableHLO {self.version}: {expected}{found}"


_COLUMNS: Final[tuple[Column[Cell], ...]] = (
    Column("program", "text", "program", lambda cell: cell.program),
    Column("producer", "text", "release that wrote it", lambda cell: cell.producer),
    Column("consumer", "text", "release that read it", lambda cell: cell.consumer),
    Column("version", "text", "StableHLO version that it was written for", lambda cell: cell.version),
    Column("predicted", "flag", "whether the specification says that it is read", lambda cell: cell.predicted),
    Column("reasons", ListOf("text"), "why the specification says that it is not", lambda cell: list(cell.reasons)),
    Column("outcome", "text", ", ".join(OUTCOMES), lambda cell: cell.outcome),
    Column("read", "flag", "whether the consumer read it", lambda cell: cell.was_read),
    Column("confirmed", "flag", "whether what happened was predicted", lambda cell: cell.confirmed),
    Column("words", "text", "what the release said, or how the results differ", lambda cell: cell.words),
    Column("seconds", "seconds", "seconds that the consumer took", lambda cell: cell.seconds),
)

#: A matrix as a table, with a row for each cell.
MATRIX_TABLE: Final = Table("matrix", _COLUMNS)


@dataclass(frozen=True)
class Matrix:
    """What releases made of the programs that releases wrote.

    Attributes:
        producers: The releases that wrote, in the order given.
        consumers: The releases that read.
        programs: The names of the programs.
        cells: A cell for each of them, by producer, program and consumer.
    """

    producers: tuple[ReleaseFacts, ...]
    consumers: tuple[ReleaseFacts, ...]
    programs: tuple[str, ...]
    cells: tuple[Cell, ...] = field(repr=False)

    @cached_property
    def disagreements(self) -> tuple[Cell, ...]:
        """The cells in which the specification was wrong; of what a producer did not write, one for all consumers."""
        return tuple(self._once(cell for cell in self.cells if cell.confirmed is False))

    @cached_property
    def differing(self) -> tuple[Cell, ...]:
        """The cells in which the results were not the expected ones."""
        return tuple(cell for cell in self.cells if cell.outcome == "differs")

    @property
    def passed(self) -> bool:
        """Whether every prediction was confirmed, and all results were the expected ones."""
        return not self.disagreements and not self.differing and not self.contradicted

    @property
    def contradicted(self) -> tuple[ReleaseFacts, ...]:
        """The releases that say another StableHLO version than the specification has of them."""
        facts = {each.name: each for each in (*self.producers, *self.consumers)}
        return tuple(each for each in facts.values() if each.contradicted)

    def counts(self, producer: str, consumer: str) -> Counter[Outcome]:
        """Return how often each outcome occurred for a pair of releases."""
        return self._counts[producer, consumer]

    def read(self, producer: str, consumer: str) -> int:
        """Return how many programs a consumer read of a producer, whatever happened when it ran them."""
        return self._read[producer, consumer]

    @cached_property
    def _read(self) -> Counter[tuple[str, str]]:
        return Counter((cell.producer, cell.consumer) for cell in self.cells if cell.was_read)

    @cached_property
    def _counts(self) -> dict[tuple[str, str], Counter[Outcome]]:
        found: dict[tuple[str, str], Counter[Outcome]] = {
            (producer.name, consumer.name): Counter() for producer in self.producers for consumer in self.consumers
        }
        for cell in self.cells:
            found[cell.producer, cell.consumer][cell.outcome] += 1
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the matrix as a JSON object."""

        def facts(release: ReleaseFacts) -> dict[str, Any]:
            version = release.stablehlo
            return {"release": release.name, "stablehlo": version and str(version), "packages": dict(release.packages)}

        plain: Callable[[Any], Any] = lambda value: str(value) if isinstance(value, Version) else value  # noqa: E731
        return {
            "passed": self.passed,
            "producers": [facts(each) for each in self.producers],
            "consumers": [facts(each) for each in self.consumers],
            "programs": list(self.programs),
            "cells": [
                {column.name: plain(column.value(cell)) for column in MATRIX_TABLE.columns} for cell in self.cells
            ],
        }

    @staticmethod
    def _once(cells: Iterable[Cell]) -> Iterator[Cell]:
        unwritten = set()
        for cell in cells:
            if cell.outcome == "unwritten":
                if (cell.producer, cell.program) in unwritten:
                    continue
                unwritten.add((cell.producer, cell.program))
            yield cell
