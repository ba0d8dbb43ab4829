"""What is said about a program: findings, source locations and the diagnostics of the C++ libraries.

The words and fields are those of the design: a *finding* is one reason why a program cannot be at a version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from vhlo_tools.version import Version

__all__ = [
    "SHOWN_PLACES",
    "Diagnostic",
    "Finding",
    "FindingKind",
    "Level",
    "SourceLocation",
    "finding_as_json",
    "findings_lines",
    "group_findings",
]

Level = Literal["error", "warning", "note"]
FindingKind = Literal["op", "type", "attribute", "constraint", "encoding", "dialect", "alias"]


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the user's source, as the producer recorded it in the program.

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
        return ":".join([self.file, *numbers])


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of MLIR.

    Attributes:
        severity: ``error``, ``warning``, ``remark`` or ``note``.
        message: The text.
        location: The location as MLIR prints it, ``loc(...)``.
        source: The place in a file that the location names first, where it names one.
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
    """One reason why a program cannot be at a version, or should not be.

    Attributes:
        feature: The id of the feature, as in ``dialect_specs/vhlo/features.toml``, or of what stands in for one.
        level: ``error`` for what the library refuses; ``warning`` for what it lets through and a consumer chokes on.
        kind: What sort of thing the feature is.
        message: What was found, in a sentence.
        op: The op that holds it, by its StableHLO name where it has one.
        location: The place in the user's source.
        introduced: The StableHLO version that brought the feature; ``None`` if no version has it.
        target: The version at which it stands in the way.
        remedy: What to do about it.
        count: How often it was seen.
        path: Where the first op stands in the program: ``@main/4:stablehlo.while/1/2:stablehlo.add``, from the function
            inwards, each op with its position in its block, and between them the number of the region.
        function: The function that it stands in.
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

    def __str__(self) -> str:
        return _with_count(self.text, self.count)

    @property
    def text(self) -> str:
        """What was found and where, without how often."""
        return f"{self.location}: {self.message}" if self.location else self.message


#: The feature of a finding about ops that keep their attributes in bytes of a form that is not known.
OPAQUE_PROPERTIES: Final = "opaque_properties"

#: Of one feature, so many places are shown as text; JSON has all.
SHOWN_PLACES: Final = 10


def group_findings(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings by level, feature and remedy, each group where its first member stands."""
    groups: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.level, finding.feature, finding.remedy), []).append(finding)
    return [tuple(group) for group in groups.values()]


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as an object of JSON; its place and its versions are texts."""
    texts = {key: str(value) for key in ("location", "introduced", "target") if (value := getattr(finding, key))}
    return {**asdict(finding), **texts}


def findings_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield findings as lines of text: by feature, each with its place, and what to do once for all of them."""
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
