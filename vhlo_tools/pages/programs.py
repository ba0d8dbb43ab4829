"""What the page for a program shows, read from an artifact: plain data, which a page holds as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import attributes_of
from vhlo_tools.dialect import Release, known_features, known_releases, known_versions, newest_version
from vhlo_tools.findings import finding_as_json
from vhlo_tools.graphs import program_graph
from vhlo_tools.pages.graph_columns import GraphColumns, graph_columns, version_number
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import ProgramAliases
    from vhlo_tools.artifact import Artifact, Function
    from vhlo_tools.findings import Finding
    from vhlo_tools.graphs import ProgramGraph
    from vhlo_tools.version import Version

__all__ = [
    "MOST_CONSTANTS",
    "AliasRow",
    "ConstantRow",
    "ExpansionRow",
    "FeatureRow",
    "FindingRow",
    "ProgramContents",
    "ReleaseRow",
    "ValueRow",
    "head_lines",
    "program_contents",
]

#: The number of constants that a page lists; the others are counted.
MOST_CONSTANTS: Final = 100
# The number of ops that a finding leads to.
_MOST_OPS: Final = 1000
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")


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


def program_contents(
    artifact: Artifact,
    findings: Sequence[Finding],
    *,
    name: str | None = None,
    target: Version | None = None,
    target_text: str = "",
    today: date,
) -> ProgramContents:
    """Return what a page says of a program.

    Args:
        artifact: The program.
        findings: What is to be shown as findings.
        name: Its name, by default that of the artifact.
        target: The version that the findings are about, if there is one.
        target_text: The target as it was asked for.
        today: The day for which the page is made.

    Raises:
        MalformedArtifactError: If the artifact is damaged.
    """
    requirements = artifact.requirements()
    graph = program_graph(artifact)
    inventory = artifact.inventory()
    aliases = artifact.declared_aliases()
    constants, constants_bytes = _constants(graph)
    releases = _releases(artifact, today)
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
        lines=_lines(artifact, graph, releases, (inputs, outputs), (len(constants), constants_bytes)),
        versions=tuple((str(each.version), str(each.date), each.brought) for each in versions),
        written=version_number(artifact.version),
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
    )


def head_lines(artifact: Artifact, today: date) -> tuple[tuple[str, str], ...]:
    """Return the lines that matter of a program: what each is about, and what it says.

    Args:
        artifact: The program.
        today: The last day of the releases that count.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    graph, inventory, aliases = program_graph(artifact), artifact.inventory(), artifact.declared_aliases()
    entry = next((each for each in inventory.functions if each.name == aliases.function), None)
    constants, constants_bytes = _constants(graph)
    releases = _releases(artifact, today)
    return _lines(artifact, graph, releases, _signature(entry, aliases), (len(constants), constants_bytes))


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


def _releases(artifact: Artifact, today: date) -> tuple[ReleaseRow, ...]:
    requirements = artifact.requirements()
    reads: dict[Version, bool] = {}

    def is_read(release: Release) -> bool:
        reader = release.stablehlo
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
        shown = finding_as_json(each)
        rows.append(
            FindingRow(
                level=each.level,
                feature=printable(each.feature),
                message=each.message,
                location=printable(shown["location"] or ""),
                path=each.path or "",
                introduced=version_number(each.introduced),
                remedy=each.remedy or "",
                count=each.count,
                ops=found_in(each),
            )
        )
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
    named = [*aliases.parameters, *[None] * (len(entry.arguments) - len(aliases.parameters))]
    inputs = [
        ValueRow(
            printable((value.name if value else None) or ""),
            printable(type_),
            str(value.location) if value and value.location else "",
            number in donated,
        )
        for number, (type_, value) in enumerate(zip(entry.arguments, named, strict=False))
    ]
    results = [*aliases.results, *[None] * (len(entry.results) - len(aliases.results))]
    outputs = [
        ValueRow(printable((value.name if value else None) or ""), printable(type_))
        for type_, value in zip(entry.results, results, strict=False)
    ]
    return tuple(inputs), tuple(outputs)


def _lines(
    artifact: Artifact,
    graph: ProgramGraph,
    releases: Iterable[ReleaseRow],
    signature: tuple[Sequence[ValueRow], Sequence[ValueRow]],
    constants: tuple[int, int],
) -> tuple[tuple[str, str], ...]:
    """Return the lines that matter."""
    requirements = artifact.requirements()
    size = sum(map(len, artifact.chunks))
    written = f"StableHLO {artifact.version}, as MLIR bytecode {artifact.bytecode_version}; {_size(size)}"
    oldest: dict[str, str] = {}
    for each in releases:
        if each.reads:
            oldest.setdefault(each.package, each.release)
    readers = ", ".join(f"{package} {release}" for package, release in oldest.items())
    read = f"StableHLO {requirements.readable_since} or later" + (f": from {readers} on" if readers else "")
    reach = f"StableHLO {requirements.downgradable_to} or later"
    if requirements.expandable_to < requirements.downgradable_to:
        reach += f"; {requirements.expandable_to} with exact expansions"
    functions = sum(1 for op in range(len(graph)) if graph.symbol(op) is not None)
    number, held = constants
    ops = len(graph) - functions - 1
    return (
        ("Written for", written),
        ("Read by", read),
        ("Can be written for", reach),
        ("Takes and gives", f"{_list(signature[0], 'input')}; {_list(signature[1], 'output')}"),
        (
            "Holds",
            f"{ops:,} op{'s' * (ops != 1)} in {functions} function{'s' * (functions != 1)}; "
            f"{number:,} constant{'s' * (number != 1)} of {_size(held)}",
        ),
    )


def _list(values: Sequence[ValueRow], what: str) -> str:
    kinds = Counter(each.type for each in values)
    shown = ", ".join(
        f"{count} \N{MULTIPLICATION SIGN} {kind}" if count > 1 else kind for kind, count in kinds.most_common(3)
    )
    more = ", …" if len(kinds) > 3 else ""
    return f"{len(values)} {what}{'s' * (len(values) != 1)}" + (f" ({shown}{more})" if values else "")


def _size(number: float) -> str:
    for unit in _UNITS:
        if number < 1000 or unit == _UNITS[-1]:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError
