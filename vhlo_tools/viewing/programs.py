"""Pages for a program, and for the difference of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from vhlo_tools.artifact import outline_of
from vhlo_tools.bytecode import attributes_of
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Release, known_features, known_releases, known_versions, newest_version
from vhlo_tools.viewing.columns import GraphColumns, graph_columns, version_number
from vhlo_tools.viewing.graph import ProgramGraph, program_graph

if TYPE_CHECKING:
    from vhlo_tools.aliasing import ProgramAliases
    from vhlo_tools.artifact import Artifact, Difference, Function
    from vhlo_tools.findings import Finding
    from vhlo_tools.version import Version

# Contents of the page for a program, as plain data, which the page holds as JSON
#
# Versions are positions in ``ProgramContents.versions``, -1 if unknown.


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
class DeviceRow:
    """What a compiler makes of the program."""

    release: str  # with the device
    lines: tuple[tuple[str, str], ...]  # topic and text


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
    written: int  # the version that it was written for; -1 if newer than the data, -2 if it is no artifact yet
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
    devices: tuple[DeviceRow, ...] = ()


# Contents of the page for a program, read from an artifact

#: The number of constants that a page lists; the others are counted.
MOST_CONSTANTS: Final = 100
# The number of ops that a finding leads to.
_MOST_OPS: Final = 1000


_NOT_WRITTEN: Final = -2


def program_contents(
    artifact: Artifact,
    findings: Sequence[Finding],
    *,
    name: str | None = None,
    target: Version | None = None,
    target_text: str = "",
    today: date,
    source: Sequence[tuple[str, str]] = (),
    devices: Mapping[str, Iterable[tuple[str, str]]] = MappingProxyType({}),
) -> ProgramContents:
    """The findings are about ``target``, which the user spelled ``target_text``.

    If the program is no artifact yet, and the given one is what it would be, ``source`` has what is to be said of it in
    place of what it is and who reads it. ``devices`` has by release what its compiler makes of the program.
    """
    requirements = artifact.requirements()
    graph = program_graph(artifact)
    inventory = artifact.inventory()
    aliases = artifact.declared_aliases()
    constants, constants_bytes = _constants(graph)
    releases = _releases(artifact, today, written=not source)
    entry = next((each for each in inventory.functions if each.name == aliases.function), None)
    inputs, outputs = _signature(entry, aliases)
    newer = ""
    if requirements.is_newer_than_data:
        newer = (
            f"It was written for StableHLO {artifact.version}, and the data of vhlo_tools end at {newest_version()}: "
            "what is said here of versions is what these data know."
        )
    versions = known_versions()
    blocked = [requirements.findings(each.version) for each in versions]
    return ProgramContents(
        name=printable(name or artifact.name),
        today=str(today),
        lines=tuple((label, printable(text)) for label, text in _described(artifact, source)),
        versions=tuple((str(each.version), str(each.date), each.brought) for each in versions),
        written=_NOT_WRITTEN if source else version_number(artifact.version),
        readable_since=version_number(requirements.readable_since),
        downgradable_to=version_number(requirements.downgradable_to),
        expandable_to=version_number(requirements.expandable_to),
        target=version_number(target),
        target_text=printable(target_text),
        newer=newer,
        features=_features(artifact, graph),
        blocked=tuple((_features_of(each, "error"), _features_of(each, "warning")) for each in blocked),
        releases=releases,
        findings=_findings(findings, graph),
        findings_for=f"for {target_text or target}" if target else f"for {versions[0].version}, the oldest version",
        function=printable(aliases.function or ""),
        inputs=inputs,
        outputs=outputs,
        aliases=tuple(
            AliasRow(each.parameter_number, each.output_index[0] if each.output_index else 0, each.kind)
            for each in aliases.declared.aliases
        ),
        constants=tuple(constants[:MOST_CONSTANTS]),
        constants_number=len(constants),
        constants_bytes=constants_bytes,
        graph=graph_columns(graph),
        devices=tuple(DeviceRow(printable(name), tuple(said)) for name, said in devices.items()),
    )


def _described(artifact: Artifact, source: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    said = dict(source)
    yield from ((label, said.get(label, text)) for label, text in outline_of(artifact))


def _features_of(findings: Iterable[Finding], level: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.feature for each in findings if each.level == level))


def _features(artifact: Artifact, graph: ProgramGraph) -> tuple[FeatureRow, ...]:
    known = {each.id: each for each in known_features()}
    requirements = artifact.requirements()
    counts = {each.id: (each.introduced, each.count) for each in requirements.features}
    # What an op needs of whatever version it is written in: an op may be written in an older version than it needs.
    own: Counter[str] = Counter()
    for op in range(len(graph)):
        for each in graph.features(op):
            own[each.id] += 1
            if not each.unknown:
                counts.setdefault(each.id, (each.introduced, 0))
    rows = []
    for feature, (introduced, count) in sorted(counts.items(), key=lambda item: (item[1][0], item[0])):
        held = known.get(feature)
        expansions = [
            ExpansionRow(each.effect, version_number(each.to), each.limits or "", each.gives_up or "")
            for each in (held.expansions if held else ())
        ]
        rows.append(
            FeatureRow(
                id=printable(feature),
                title=held.title if held else printable(feature),
                introduced=version_number(introduced),
                count=max(count, own[feature]),
                needed=feature in own,
                remedy=held.remedy if held else "",
                expansions=tuple(expansions),
                inexpressible=(held.inexpressible or "") if held else "",
            )
        )
    unknown = (
        FeatureRow(printable(each.name), "unknown to the data", -1, each.count, True, "")
        for each in requirements.unknown
    )
    return (*rows, *unknown)


def _releases(artifact: Artifact, today: date, *, written: bool) -> tuple[ReleaseRow, ...]:
    """If the program is not written yet, releases read it that it can be written for."""
    requirements = artifact.requirements()
    reads: dict[Version, bool] = {}

    def is_read(release: Release) -> bool:
        reader = release.stablehlo
        if not written:
            return requirements.downgradable_to <= reader.minor_release
        if reader not in reads:
            reads[reader] = not any(each.level == "error" for each in requirements.reader_findings(reader))
        return reads[reader] and artifact.version.minor_release >= release.minimum

    return tuple(
        ReleaseRow(each.package, each.release, str(each.date), version_number(each.stablehlo), is_read(each))
        for each in known_releases()
        if each.date <= today
    )


def _findings(findings: Iterable[Finding], graph: ProgramGraph) -> tuple[FindingRow, ...]:
    ops: dict[str, list[int]] = {}
    for op in range(len(graph)):
        for feature in graph.features(op):
            ops.setdefault(feature.id, []).append(op)
    places: dict[str, int] = {}

    def found_in(finding: Finding) -> tuple[int, ...]:
        """Return the ops of a finding: those with its feature that have its function, name and line."""
        held = [
            op
            for op in ops.get(finding.feature, ())
            if (finding.op is None or graph.name(op) == finding.op) and graph.function(op) == finding.function
        ]
        lines = [op for op in held if (stack := graph.stack(op)) and stack[0].location == finding.location]
        if lines or held:
            return tuple((lines or held)[:_MOST_OPS])
        if finding.path is None:
            return ()
        if not places:
            places.update((graph.path(op), op) for op in reversed(range(len(graph))))
        return (places[finding.path],) if finding.path in places else ()

    rows = []
    for each in findings:
        location = printable(str(each.location or ""))
        said = (each.level, printable(each.feature), each.message, location, each.path or "")
        introduced = version_number(each.introduced)
        rows.append(FindingRow(*said, introduced, each.remedy or "", each.count, found_in(each)))
    return tuple(rows)


def _constants(graph: ProgramGraph) -> tuple[list[ConstantRow], int]:
    """Return the constants, largest first, and the bytes of their values, of which shared ones count once."""
    file, columns = graph.artifact.file, graph.columns
    values: dict[int, tuple[int, int]] = {}
    for kind, head in enumerate(columns.kinds):
        if file.op_name(head.name).startswith("vhlo.constant_v"):
            index = attributes_of(file, head).get("value")
            value = file.decode("attribute", index) if index is not None else None
            if index is not None and value is not None:
                is_tensor = any(field.name == "data" for field in value.encoding.fields)
                size = len(value.field("data")) if is_tensor else len(file.attributes[index].data)
                values[kind] = index, size
    if not values:
        return [], 0
    uses = Counter(columns.operands)
    seen: set[int] = set()
    rows = []
    for op, kind in enumerate(columns.heads):
        if kind in values:
            index, size = values[kind]
            results = columns.results_of(op)
            type_ = graph.type(results[0]) if results else ""
            rows.append(ConstantRow(op, type_, size, sum(uses[each] for each in results), index in seen))
            seen.add(index)
    rows.sort(key=lambda row: (-row.bytes, row.op))
    return rows, sum(row.bytes for row in rows if not row.shared)


def _signature(entry: Function | None, aliases: ProgramAliases) -> tuple[tuple[ValueRow, ...], tuple[ValueRow, ...]]:
    if entry is None:
        return (), ()
    donated = {each.parameter_number for each in aliases.declared.donors}
    inputs = []
    for number, type_ in enumerate(entry.arguments):
        value = aliases.parameters[number] if number < len(aliases.parameters) else None
        name, location = (value.name or "", str(value.location or "")) if value else ("", "")
        inputs.append(ValueRow(printable(name), printable(type_), location, number in donated))
    names = [*(each.name or "" for each in aliases.results), *[""] * (len(entry.results) - len(aliases.results))]
    outputs = (ValueRow(printable(name), printable(type_)) for type_, name in zip(entry.results, names, strict=False))
    return tuple(inputs), tuple(outputs)


# Contents of the page for two programs: their differences, side by side


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    kind: str
    path: str
    before: str | None  # None if the first program lacks the part
    after: str | None  # None if the second program lacks the part


@dataclass(frozen=True, slots=True)
class DifferenceContents:
    name: str  # both names
    today: str  # the day for which the page was made
    names: tuple[str, str]
    lines: tuple[tuple[str, str, str], ...]  # topic, text for the first program, text for the second
    rows: tuple[DifferenceRow, ...]


def difference_contents(
    artifacts: tuple[Artifact, Artifact], differences: Iterable[Difference], *, names: tuple[str, str], today: date
) -> DifferenceContents:
    one, other = (outline_of(each) for each in artifacts)
    shown = (printable(names[0]), printable(names[1]))
    return DifferenceContents(
        name=" and ".join(shown),
        today=str(today),
        names=shown,
        lines=tuple(
            (what, printable(said), printable(of_other)) for (what, said), (_, of_other) in zip(one, other, strict=True)
        ),
        rows=tuple(
            DifferenceRow(
                each.kind,
                printable(each.path),
                *(None if text is None else printable(text) for text in (each.before, each.after)),
            )
            for each in differences
        ),
    )
