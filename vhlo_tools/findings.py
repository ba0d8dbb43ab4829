"""Results of checking a program: findings, source locations and diagnostics of the C++ libraries.

A *finding* is one reason why a program cannot be represented at a version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

# The cache of findings reads the types of fields when it runs.
from vhlo_tools.version import Version

Level = Literal["error", "warning", "note"]
FindingKind = Literal[
    "op", "type", "attribute", "constraint", "encoding", "dialect", "alias", "regression", "release", "manifest"
]


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A location in the user's source, as the producer recorded it in the program.

    Attributes:
        file: The name of the file as recorded.
        line: The line, counted from 1; 0 if it was not recorded.
        column: The column, counted from 1; 0 if it was not recorded.
    """

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        return ":".join([printable(self.file), *numbers])


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of MLIR.

    Attributes:
        severity: ``error``, ``warning``, ``remark`` or ``note``.
        message: The text.
        location: The location as MLIR prints it, ``loc(...)``.
        source: The first file location within ``location``, if there is one.
        notes: The notes attached to the message.
    """

    severity: str
    message: str
    location: str
    source: SourceLocation | None = None
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        return f"{self.source}: {self.message}" if self.source else self.message


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a program cannot, or should not, be represented at a version.

    Its texts are printable: names in a program are shown with escapes where they contain anything else.

    Attributes:
        feature: The id of the feature, as in ``dialect_specs/vhlo/features.toml``, or a substitute for one.
        level: ``error`` for what the library rejects; ``warning`` for what the library accepts and a consumer rejects.
        kind: The category of the feature.
        message: What was found, in a sentence.
        op: The op with the finding, by its StableHLO name where there is one.
        location: The location in the user's source.
        introduced: The StableHLO version that introduced the feature; ``None`` if no version has it.
        target: The version at which the program cannot be represented.
        remedy: The recommended action.
        count: The number of occurrences.
        path: The path of the first op in the program: ``@main/4:stablehlo.while/1/2:stablehlo.add``, from the function
            inwards, each op with its position in its block, and between them the number of the region.
        function: The function that contains the op.
        unknown: Whether it is about something that the specification does not have, such as an op of a StableHLO that
            is newer than this release of vhlo_tools. ``introduced`` is then ``None``: nothing is guessed.
    """

    feature: str
    level: Level
    kind: FindingKind
    message: str
    op: str | None = None
    location: SourceLocation | None = None
    introduced: Version | None = None
    target: Version | None = None
    remedy: str | None = None
    count: int = 1
    path: str | None = None
    function: str | None = None
    unknown: bool = False

    def __post_init__(self) -> None:
        # Names in a program may contain anything, and all of these are shown.
        for field in ("message", "op", "remedy", "path", "function"):
            text = getattr(self, field)
            if text is not None and (shown := printable(text)) != text:
                object.__setattr__(self, field, shown)

    def __str__(self) -> str:
        return _with_count(self.text, self.count)

    @property
    def where(self) -> str:
        """The line in the user's source if it is known, and the path of the op otherwise."""
        return str(self.location or self.path or "")

    def _repr_html_(self) -> str:
        return Findings([self])._repr_html_()

    @property
    def text(self) -> str:
        """The message with its location, without the count."""
        return f"{self.location}: {self.message}" if self.location else self.message


class Findings(list[Finding]):
    """A list of findings, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        # Imported here, as it is for notebooks alone.
        from vhlo_tools.markup import table

        rows = (
            (found.level, found.feature, found.introduced, found.message, found.where, found.count, found.remedy)
            for found in self
        )
        heads = ("level", "feature", "introduced", "message", "where", "count", "remedy")
        return table("findings", heads, rows) if self else "<p>no findings</p>"


#: The feature of a finding about ops whose attributes are encoded as bytes in an unknown form.
OPAQUE_PROPERTIES: Final = "opaque_properties"

#: The feature of a finding about a file, or a target, of a version that is newer than the specification.
NEWER_THAN_DATA: Final = "newer_than_data"

#: The number of places shown for one feature in text; JSON contains all.
SHOWN_PLACES: Final = 10


def group_findings(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Group by level, feature and remedy, in the order of the first member of each group."""
    groups: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.level, finding.feature, finding.remedy), []).append(finding)
    return [tuple(group) for group in groups.values()]


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """The location and versions become strings."""
    found: dict[str, Any] = {name: getattr(finding, name) for name in Finding.__match_args__}
    return found | {key: str(value) for key in ("location", "introduced", "target") if (value := found[key])}


def findings_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Group by feature, with the location of each finding, and the remedy once per group."""
    for group in group_findings(findings):
        counts: Counter[str] = Counter()
        for finding in group:
            counts[finding.text] += finding.count
        yield from (f"  {_with_count(text, count)}" for text, count in list(counts.items())[:SHOWN_PLACES])
        if len(counts) > SHOWN_PLACES:
            yield f"  and {len(counts) - SHOWN_PLACES} places more"
        if group[0].remedy:
            yield f"    {group[0].remedy}"


def _with_count(text: str, count: int) -> str:
    return f"{text} ({count} times)" if count > 1 else text
