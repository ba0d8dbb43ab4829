"""What the page for a program shows, as plain data, which the page holds as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.pages.graph_columns import GraphColumns


@dataclass(frozen=True, slots=True)
class ExpansionRow:
    """A rewrite of a feature into older ones.

    Attributes:
        effect: ``exact`` or ``relaxed``.
        to: The oldest version that then suffices, by its position.
        limits: To what it does not apply.
        gives_up: What a relaxed one gives up.
    """

    effect: str
    to: int
    limits: str
    gives_up: str


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature in the program.

    Attributes:
        id: Its id.
        title: What it is, in words.
        introduced: The version that brought it, by its position; -1 if it is unknown.
        count: The number of ops and block arguments with it.
        needed: Whether the program needs it, in whatever version it is written; what it does not need, only these bytes
            have, and a retarget writes without it.
        remedy: What to do for older consumers.
        expansions: Its rewrites.
        inexpressible: Why there is none, if that is known.
    """

    id: str
    title: str
    introduced: int
    count: int
    needed: bool
    remedy: str
    expansions: tuple[ExpansionRow, ...] = ()
    inexpressible: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A released package, and whether it reads the artifact as it is.

    Attributes:
        package: The package.
        release: Its version.
        date: The day of its release.
        stablehlo: The newest version that it reads, by its position.
        reads: Whether it reads the artifact.
    """

    package: str
    release: str
    date: str
    stablehlo: int
    reads: bool


@dataclass(frozen=True, slots=True)
class ConstantRow:
    """A constant.

    Attributes:
        op: Its op.
        type: Its type.
        bytes: The bytes of its value in the file.
        uses: The number of operands that use it.
        shared: Whether a constant before it has the same value in the file.
    """

    op: int
    type: str
    bytes: int
    uses: int
    shared: bool


@dataclass(frozen=True, slots=True)
class ValueRow:
    """An input or an output of the program.

    Attributes:
        name: Its name in the user's source, if it was recorded.
        type: Its type.
        location: Its place in the user's source, if it was recorded.
        donated: Whether its buffer is given away without naming an output.
    """

    name: str
    type: str
    location: str = ""
    donated: bool = False


@dataclass(frozen=True, slots=True)
class AliasRow:
    """An output that may be written over an input.

    Attributes:
        input: The number of the input.
        output: The number of the output.
        kind: ``may-alias`` or ``must-alias``.
    """

    input: int
    output: int
    kind: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding, with the ops that have it.

    Attributes:
        level: ``error``, ``warning`` or ``note``.
        feature: The id of its feature.
        message: What was found.
        location: The line of the user's source.
        path: The path of the first op.
        introduced: The version that brought the feature, by its position; -1 if there is none.
        remedy: What to do.
        count: The number of occurrences.
        ops: The ops.
    """

    level: str
    feature: str
    message: str
    location: str
    path: str
    introduced: int
    remedy: str
    count: int
    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgramContents:
    """All that a page says of a program.

    Attributes:
        name: The name of the program.
        today: The day for which the page was made.
        lines: The lines that matter: what each is about, and what it says.
        versions: Every version: its number, its day, what it brought.
        written: The version that it was written for, by its position; -1 if it is newer than the data.
        readable_since: The oldest version that reads it.
        downgradable_to: The oldest version that it can be written for.
        expandable_to: The oldest version that it can be written for with exact expansions.
        target: The version that it was checked for, if there was one; else -1.
        target_text: The target as it was asked for.
        newer: A sentence, if the artifact is newer than the data.
        features: What is in it that not every version has, oldest first.
        blocked: For each version what does not let the program be written for it: refused features, and those that are
            written although readers reject them.
        releases: The releases, and which of them read it.
        findings: The findings.
        findings_for: What the findings are about, in words.
        function: The function that is entered.
        inputs: Its arguments.
        outputs: Its results.
        aliases: Which outputs may be written over which inputs.
        constants: The largest constants, largest first.
        constants_number: The number of all constants.
        constants_bytes: The bytes of all their values in the file.
        graph: The graph of its ops.
    """

    name: str
    today: str
    lines: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str, str], ...]
    written: int
    readable_since: int
    downgradable_to: int
    expandable_to: int
    target: int
    target_text: str
    newer: str
    features: tuple[FeatureRow, ...]
    blocked: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    releases: tuple[ReleaseRow, ...]
    findings: tuple[FindingRow, ...]
    findings_for: str
    function: str
    inputs: tuple[ValueRow, ...]
    outputs: tuple[ValueRow, ...]
    aliases: tuple[AliasRow, ...]
    constants: tuple[ConstantRow, ...]
    constants_number: int
    constants_bytes: int
    graph: GraphColumns
