"""Contents of the page for a program, as plain data, which the page holds as JSON.

Versions are positions in ``ProgramContents.versions``, -1 if unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.pages.graph_columns import GraphColumns


@dataclass(frozen=True, slots=True)
class ExpansionRow:
    """A rewrite of a feature into older ones."""

    effect: str  # ``exact`` or ``relaxed``
    to: int  # the oldest version that then suffices
    limits: str  # the cases to which it does not apply
    gives_up: str  # of a relaxed one


@dataclass(frozen=True, slots=True)
class FeatureRow:
    id: str
    title: str
    introduced: int
    count: int  # ops and block arguments with it
    #: The program needs it in every version; otherwise only these bytes have it, and a retarget writes without it.
    needed: bool
    remedy: str  # for older consumers
    expansions: tuple[ExpansionRow, ...] = ()
    inexpressible: str = ""  # why there is no rewrite, if that is known


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A released package, and whether it reads the artifact as it is."""

    package: str
    release: str
    date: str
    stablehlo: int  # the newest version that it reads
    reads: bool


@dataclass(frozen=True, slots=True)
class ConstantRow:
    op: int
    type: str
    bytes: int  # of the value in the file
    uses: int  # operands that use it
    shared: bool  # a constant before it has the same value in the file


@dataclass(frozen=True, slots=True)
class ValueRow:
    """An input or an output of the program."""

    name: str  # in the user's source, if it was recorded
    type: str
    location: str = ""  # in the user's source, if it was recorded
    donated: bool = False  # its buffer is given away without naming an output


@dataclass(frozen=True, slots=True)
class AliasRow:
    """An output that may be written over an input."""

    input: int  # its number
    output: int  # its number
    kind: str  # ``may-alias`` or ``must-alias``


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding, with the ops that have it."""

    level: str  # ``error``, ``warning`` or ``note``
    feature: str
    message: str
    location: str  # the line of the user's source
    path: str  # of the first op
    introduced: int  # of the feature; -1 if there is none
    remedy: str
    count: int  # occurrences
    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgramContents:
    name: str
    today: str  # the day for which the page was made
    lines: tuple[tuple[str, str], ...]  # topic and text
    versions: tuple[tuple[str, str, str], ...]  # number, day, and description of every version
    written: int  # the version that it was written for; -1 if newer than the data
    readable_since: int  # the oldest version that reads it
    downgradable_to: int  # the oldest version that it can be written for
    expandable_to: int  # the same with exact expansions
    target: int  # the version that it was checked for, or -1
    target_text: str  # as it was asked for
    newer: str  # a sentence, if the artifact is newer than the data
    features: tuple[FeatureRow, ...]  # that not every version has, oldest first
    #: For each version: refused features, and those that are written although readers reject them.
    blocked: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    releases: tuple[ReleaseRow, ...]
    findings: tuple[FindingRow, ...]
    findings_for: str  # the subject of the findings, in words
    function: str  # the entry
    inputs: tuple[ValueRow, ...]
    outputs: tuple[ValueRow, ...]
    aliases: tuple[AliasRow, ...]
    constants: tuple[ConstantRow, ...]  # the largest, largest first
    constants_number: int  # of all constants
    constants_bytes: int  # of the values of all constants in the file
    graph: GraphColumns
