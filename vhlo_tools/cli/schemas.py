"""What commands print as JSON: a type for each output, of which the JSON schemas are made.

Records of programs have the keys of :class:`Program` in every command. Keys may be added; those that are there keep
their meaning while :data:`vhlo_tools.printable.SCHEMA_VERSION` stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec


def said(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Head(TypedDict):
    """A record of JSON."""

    schema_version: Annotated[int, said("The version of this schema.")]
    tool_version: Annotated[str, said("The version of vhlo_tools that printed it.")]


class Finding(TypedDict):
    """One reason why a program cannot be at a version, or something to know about it."""

    feature: Annotated[str, said("The feature, as `vhlo spec show` names it.")]
    level: Annotated[
        Literal["error", "warning", "note"],
        said(
            "error: the library refuses it. warning: the library lets it through and readers do not. note: to be known."
        ),
    ]
    kind: Annotated[str, said("What the feature is: op, type, attribute, constraint, encoding, dialect, alias.")]
    message: Annotated[str, said("What was found, in a sentence.")]
    op: Annotated[str | None, said("The op.")]
    location: Annotated[str | None, said("The line of the user's source: FILE:LINE:COLUMN.")]
    introduced: Annotated[str | None, said("The version that introduced the feature.")]
    target: Annotated[str | None, said("The version at which it cannot be.")]
    remedy: Annotated[str | None, said("What to do.")]
    count: Annotated[int, said("How often it occurs.")]
    path: Annotated[str | None, said("The path of the first op in the program.")]
    function: Annotated[str | None, said("The function that has the op.")]
    baseline: NotRequired[Annotated[Literal["new", "known"], said("Whether the baseline, or the revision, has it.")]]
    unknown: Annotated[bool, said("Whether the specification does not have it.")]


class Program(TypedDict):
    """A program, as every command that works on many has it."""

    path: Annotated[str, said("The file, relative to where it was looked for.")]
    ok: Annotated[bool, said("Whether the command found nothing wrong with it.")]
    kind: Annotated[str | None, said("The kind of file, as `vhlo inspect` says it; null if it was not recognised.")]
    version: Annotated[str | None, said("The StableHLO version of the artifact in it; null if it has none.")]
    reason: Annotated[str | None, said("Why it could not be done, in a sentence.")]


class CheckedTarget(TypedDict):
    """A target."""

    target: Annotated[str, said("As it was named.")]
    version: Annotated[str, said("The version that it means.")]
    ok: Annotated[bool, said("Whether there are no errors.")]
    known: Annotated[int, said("Findings that the baseline knows.")]
    allowed: Annotated[int, said("Findings that the settings allow.")]


class CheckedProgram(Program):
    findings: Annotated[list[Finding], said("What was found, for all targets.")]
    targets: Annotated[list[CheckedTarget], said("The answer for each target.")]


class CheckReport(Head):
    """The programs that were checked."""

    files: list[CheckedProgram]
    deleted: NotRequired[Annotated[list[str], said("Programs of the revision that are there no longer.")]]
    summary: Annotated[dict[str, int | str], said("How many programs there are of each result.")]


class Statistic(TypedDict):
    count: int
    level: str
    feature: str
    title: str


class StatisticsReport(Head):
    """The findings of `vhlo check --statistics`."""

    statistics: list[Statistic]


class FilesReport(Head):
    """The files of `vhlo check --show-files`."""

    files: Annotated[list[str], said("Those that are programs.")]
    unrecognised: Annotated[list[str], said("Those that are not.")]


class Setting(TypedDict):
    value: Any
    source: Annotated[str, said("The file that it comes from, `command line` or `default`.")]


class AskedQuestion(TypedDict):
    question: str
    version: str


class SettingsOfFile(TypedDict):
    path: str
    questions: list[AskedQuestion]
    levels: dict[str, str]


class SettingsReport(Head):
    """The settings of `vhlo check --show-settings`."""

    file: str | None
    settings: dict[str, Setting]
    files: Annotated[list[SettingsOfFile], said("What holds for each file that was named.")]


class ExplanationReport(Head):
    """The feature, or the finding, of `vhlo check --explain`."""

    id: str
    title: NotRequired[Annotated[str, said("Of a feature.")]]
    text: NotRequired[Annotated[str, said("Of another finding.")]]
    level: NotRequired[str]
    kind: NotRequired[str]
    introduced: NotRequired[Annotated[str, said("The version that brought it.")]]
    remedy: NotRequired[str | None]
    ops: NotRequired[list[str]]
    names: NotRequired[list[str]]
    expansions: NotRequired[list[dict[str, Any]]]
    read_since: NotRequired[str | None]
    inexpressible: NotRequired[str | None]
    unasked: NotRequired[str | None]
    page: Annotated[str, said("Its page: an address if that of the site is known, or a path there.")]


class Section(TypedDict):
    """A section of the file."""

    name: Annotated[str, said("Its name.")]
    offset: Annotated[int, said("Where it begins, in bytes.")]
    size: Annotated[int, said("Its size in bytes.")]
    alignment: Annotated[int, said("Its alignment in bytes.")]


class FunctionValue(TypedDict):
    """An argument or a result."""

    type: Annotated[str, said("Its type, as MLIR prints it.")]
    attributes: NotRequired[Annotated[dict[str, Any], said("Its attributes, where it has any.")]]


class Function(TypedDict):
    """A function."""

    name: Annotated[str, said("Its name.")]
    arguments: Annotated[list[FunctionValue], said("Its arguments.")]
    results: Annotated[list[FunctionValue], said("Its results.")]


class InspectedAlias(TypedDict):
    """An output that may be written over an input."""

    output_index: Annotated[list[int], said("The path within a tuple; empty for the whole.")]
    parameter_number: Annotated[int, said("The number of the parameter.")]
    parameter_index: Annotated[list[int], said("The path within a tuple; empty for the whole.")]
    kind: Annotated[Literal["may-alias", "must-alias"], said("Whether it may or must be.")]


class InspectedDonor(TypedDict):
    """A parameter whose buffer may be written over."""

    parameter_number: Annotated[int, said("The number of the parameter.")]
    parameter_index: Annotated[list[int], said("The path within a tuple; empty for the whole.")]


class ConstantsSummary(TypedDict):
    """The constants of the program."""

    count: Annotated[int, said("How many.")]
    bytes: Annotated[int, said("Their bytes together.")]
    largest: Any


class InspectedFeature(TypedDict):
    """A feature that newer versions introduced and that it has."""

    id: Annotated[str, said("Its name.")]
    introduced: Annotated[str, said("The version that introduced it.")]
    count: Annotated[int, said("How often it occurs.")]


class UnknownName(TypedDict):
    """Something that the specification does not have."""

    name: Annotated[str, said("Its name.")]
    kind: NotRequired[Annotated[str, said("Its kind.")]]
    count: NotRequired[Annotated[int, said("How often it occurs.")]]


class InspectedRequirements(TypedDict):
    """Who can read it, and where it can go."""

    readable_since: Annotated[str, said("The oldest StableHLO whose reader accepts these bytes.")]
    downgradable_to: Annotated[str, said("The oldest version that it can be written at with no change of meaning.")]
    expandable_to: Annotated[str, said("The oldest version that it can be written at with exact expansions.")]
    features: Annotated[list[InspectedFeature], said("The features, newest first.")]
    newer_than_data: Annotated[
        bool, said("Whether the file is of a version that this release of vhlo_tools does not know.")
    ]
    unknown: Annotated[list[UnknownName], said("What is not known.")]
    unreadable: Annotated[
        list[str],
        said("Why no library of any version reads it: functions that return other types than they declare."),
    ]


class InspectedArtifact(TypedDict):
    """An artifact."""

    kind: Literal["portable-artifact"]
    size: Annotated[int, said("Bytes of the artifact.")]
    version: Annotated[str, said("The version of StableHLO that it is written for.")]
    producer: Annotated[str, said("What the header of the file calls its producer.")]
    bytecode_version: Annotated[int, said("The version of the MLIR bytecode format.")]
    dialects: Annotated[dict[str, list[str]], said("The dialects in the file, each with the names of its ops.")]
    sections: Annotated[list[Section], said("The sections, in order.")]
    ops: Annotated[dict[str, int], said("How many there are of each op.")]
    types: Annotated[dict[str, int], said("How many there are of each type.")]
    attributes: Annotated[dict[str, int], said("How many there are of each attribute.")]
    functions: Annotated[list[Function], said("The functions, that of the program first.")]
    aliases: Annotated[list[InspectedAlias], said("The input-output aliases.")]
    donors: Annotated[list[InspectedDonor], said("The buffer donors.")]
    constants: Annotated[ConstantsSummary, said("The constants of the program.")]
    requirements: Annotated[InspectedRequirements, said("Who can read it, and where it can go.")]


class InspectedFile(Head):
    """What a file says of itself; an artifact has the keys of `InspectedArtifact` too, other kinds have their own."""

    path: Annotated[str, said("The file, as it was named.")]
    manifest: NotRequired[Annotated[str, said("What its manifest says of it; none if there is no manifest.")]]
    kind: Annotated[
        str, said("The kind: portable-artifact, mlir-bytecode, mlir-text, jax-export, hlo-text and others.")
    ]
    size: Annotated[int, said("Its size in bytes.")]
    artifact: NotRequired[Annotated[InspectedArtifact, said("The artifact in it, of a jax.export file.")]]


class Difference(TypedDict):
    """A difference."""

    kind: Annotated[str, said("What differs: op, function, attribute, alias, constant, version and others.")]
    path: Annotated[str, said("Where.")]
    before: Annotated[str | None, said("What the first has.")]
    after: Annotated[str | None, said("What the second has.")]


class DiffReport(Head):
    """How two programs differ."""

    equal: Annotated[bool, said("Whether there is no difference.")]
    differences: Annotated[list[Difference], said("The differences, in the order of the program.")]


class Tolerance(TypedDict):
    """What may differ."""

    ulp: Annotated[int | None, said("Units of the last place.")]
    relative: Annotated[float, said("Relative difference.")]
    absolute: Annotated[float, said("Absolute difference.")]


class ComparedOutput(TypedDict):
    """An output."""

    passed: Annotated[bool, said("Whether it is within the tolerance.")]
    place: Annotated[str, said("Its path.")]
    dtype: Annotated[str, said("Its element type.")]
    shape: Annotated[list[int], said("Its shape.")]
    differing: Annotated[int, said("Elements that differ at all.")]
    outside: Annotated[int, said("Elements beyond the tolerance.")]
    max_ulp: Annotated[int | float | None, said("The largest distance, in units of the last place.")]
    max_absolute: Annotated[float | None, said("The largest absolute difference.")]
    max_relative: Annotated[float | None, said("The largest relative difference.")]
    worst: Annotated[Any, said("The index of the element that differs most.")]
    found: Annotated[Any, said("What the second has there.")]
    expected: Annotated[Any, said("What the first has there.")]
    mismatch: Annotated[str | None, said("Why the two cannot be compared.")]
    explained: Annotated[
        str, said("Why elements beyond the tolerance say nothing of the programs; empty if nothing explains them.")
    ]


class ComparedRound(TypedDict):
    """A set of inputs."""

    inputs: Annotated[str, said("Where they come from.")]
    passed: Annotated[bool, said("Whether all outputs are within the tolerance.")]
    outputs: Annotated[list[ComparedOutput], said("The outputs.")]
    donated: Annotated[list[Any], said("What became of donated inputs.")]
    problems: Annotated[list[Any], said("What else went wrong.")]
    subnormals: Annotated[bool, said("Whether XLA took subnormal numbers among the inputs as zeros.")]


class KnownFault(TypedDict):
    id: Annotated[str, said("Its name among the findings for upstream.")]
    engine: Annotated[str, said("The engine.")]
    title: Annotated[str, said("What goes wrong.")]
    remedy: Annotated[Literal["rewritten", "option", "refused"], said("What is done about it.")]
    ops: Annotated[list[str], said("The ops of StableHLO in which it shows.")]
    mended: Annotated[str, said("The first release of jaxlib that was found to be right; empty if none is.")]


class VerifyReport(Head):
    """Whether two programs compute the same."""

    passed: Annotated[bool, said("Whether they do.")]
    before: Annotated[str, said("The first.")]
    after: Annotated[str, said("The second.")]
    engines: Annotated[list[str], said("The engine of each.")]
    warnings: Annotated[list[str], said("What to know about the comparison.")]
    tolerance: Annotated[Tolerance, said("What may differ.")]
    rounds: Annotated[list[ComparedRound], said("The rounds.")]
    known_faults: Annotated[
        list[KnownFault], said("The faults of the engines that the programs would show if they were not avoided.")
    ]
    on_engines: NotRequired[Annotated[dict[str, Any], said("How the engines of --engines compare.")]]


class ComparedPair(Program):
    """Two programs of two stores."""

    status: Annotated[str, said("same, mismatch, unverified, missing, added, failed or unreadable.")]
    before: str | None
    after: str | None
    new_version: str | None
    size: int
    new_size: int
    digest: str | None
    new_digest: str | None
    verified: Annotated[str | None, said("What shows that they are the same: bytes, program or results.")]
    seconds: float | None


class StoresReport(Head):
    """Whether the programs of two stores compute the same."""

    files: list[ComparedPair]
    ok: bool
    summary: Annotated[dict[str, Any], said("How many programs, and bytes, there are of each status.")]


class MigratedProgram(Program):
    """A program of a store that is migrated."""

    status: Annotated[str, said("move, moved, current, blocked, mismatch, unverified, changed, failed or unreadable.")]
    target: str
    size: int
    digest: Annotated[str | None, said("Its SHA-256.")]
    output: Annotated[str | None, said("The file that was, or would be, written.")]
    new_size: int | None
    new_digest: str | None
    backup: Annotated[str | None, said("Where the old file is kept.")]
    old_version: str | None
    leads_to: Annotated[str | None, said("Of a link, the file that it leads to.")]
    verified: Annotated[str | None, said("What shows that it computes the same.")]
    findings: list[Finding]
    seconds: float | None


class MigrationReport(Head):
    """What became, or would become, of the programs of a store."""

    files: list[MigratedProgram]
    ok: bool
    summary: Annotated[dict[str, Any], said("How many programs, and bytes, there are of each status and version.")]


class ReadingPackage(TypedDict):
    package: str
    oldest: str
    newest: str


class StoredProgram(Program):
    """A program of a store that is watched."""

    status: Annotated[str, said("left, leaves, within, none or unreadable.")]
    leaves: Annotated[str | None, said("The day on which it leaves a window.")]
    window: str | None
    size: int | None
    written: Annotated[str | None, said("The day of its version.")]
    jax_version: str | None
    calling_convention: int | None
    windows: Annotated[dict[str, str | None], said("The last day of each window.")]
    readable_since: str | None
    readers: Annotated[list[ReadingPackage], said("The oldest and the newest release of each package that reads it.")]


class StatusReport(Head):
    """The programs of a store, and when they leave their windows."""

    horizon: Annotated[str, said("The day up to which windows are watched.")]
    files: list[StoredProgram]
    summary: Annotated[dict[str, int], said("How many programs there are of each status.")]


class WrittenReport(Head):
    """What was written."""

    ok: NotRequired[bool]
    output: str
    kind: Annotated[str, said("portable-artifact or jax-export.")]
    version: str
    bytecode_version: int
    size: Annotated[int, said("In bytes.")]
    findings: list[Finding]


class RefusedReport(Head):
    """Why nothing was written."""

    ok: Literal[False]
    message: str
    findings: list[Finding]


class DeclaredDonor(TypedDict):
    """A parameter whose buffer may be written over; `caller_*` are those of a jax.export file's function."""

    parameter_number: int
    parameter_index: list[int]
    form: Annotated[str, said("How it is declared: argument, module or both.")]
    name: str | None
    shape: str | None
    caller_argument: NotRequired[int | str | None]


class DeclaredAlias(DeclaredDonor):
    output_index: list[int]
    kind: Literal["may-alias", "must-alias"]
    output_shape: str | None
    output_name: str | None
    caller_result: NotRequired[int | str | None]


class AliasesReport(Head):
    """The input-output aliases of a program."""

    function: str | None
    aliases: list[DeclaredAlias]
    donors: list[DeclaredDonor]
    calls: Annotated[list[dict[str, Any]], said("Those of custom calls.")]
    unknown: list[str]


class WrittenAliasesReport(WrittenReport):
    """An artifact that was written with other aliases."""

    function: str | None
    aliases: list[DeclaredAlias]
    donors: list[DeclaredDonor]
    calls: list[dict[str, Any]]


class ListedConstant(TypedDict):
    path: str
    shape: list[int]
    element_type: str
    bytes: int
    bytes_in_file: int
    splat: bool
    digest: str
    uses: int
    shared_with: str | None
    type: str


class ConstantsReport(Head):
    """The constants of an artifact."""

    constants: list[ListedConstant]


class ExtractedConstant(TypedDict):
    path: str
    file: str | None
    dtype: str | None
    reason: str | None


class ExtractedReport(Head):
    """The constants that were written to files."""

    constants: list[ExtractedConstant]


class ExternalConstant(TypedDict):
    argument: int
    tensor: str
    path: str
    position: list[int]
    type: str
    element: str
    shape: list[int]
    form: str
    splat: str | None
    digest: str


class ExternalizedReport(WrittenReport):
    """An artifact whose constants became arguments."""

    weights: Annotated[str, said("The safetensors file with their values.")]
    constants: list[ExternalConstant]
    notes: list[str]


class ManifestReport(Head):
    """Whether an artifact is what its manifest says."""

    manifest: Annotated[str, said("matches, differs or none.")]
    differences: Annotated[list[dict[str, str]], said("Each with `field`, `expected` and `found`.")]
    signed: Annotated[bool | None, said("Whether the signature is valid; null if none was asked for.")]
    message: NotRequired[str]


class ComparedManifest(TypedDict):
    path: str
    ok: bool
    status: Annotated[str, said("matches, differs, unsigned, missing, damaged or unreadable.")]
    reason: str | None
    differences: list[dict[str, str]]


class ManifestsReport(Head):
    """Whether the artifacts of folders are what their manifests say."""

    files: list[ComparedManifest]
    summary: Annotated[dict[str, int], said("How many there are of each status, and other files.")]


class VersionRow(TypedDict):
    stablehlo: str
    date: str
    bytecode_version: int
    releases: list[str]
    brought: str


class TargetRow(TypedDict):
    target: str
    stablehlo: str
    version_date: str | None
    bytecode_version: int | None
    meaning: str


class VersionsReport(Head):
    """The versions of StableHLO."""

    targets: list[VersionRow]


class TargetsReport(Head):
    """What targets mean."""

    targets: list[TargetRow]


class MatrixRelease(TypedDict):
    release: str
    stablehlo: str | None
    packages: dict[str, str]


class MatrixCell(TypedDict):
    program: str
    producer: str
    consumer: str
    version: str | None
    predicted: bool | None
    reasons: list[str]
    outcome: str
    read: bool | None
    confirmed: bool | None
    words: str
    seconds: float | None


class MatrixReport(Head):
    """What releases wrote, and what others read."""

    passed: bool
    producers: list[MatrixRelease]
    consumers: list[MatrixRelease]
    programs: list[str]
    cells: list[MatrixCell]


class SpecEntry(TypedDict):
    kind: str
    name: str
    min: str | None
    max: str | None


class SpecListReport(Head):
    """The entries of the specification."""

    entries: list[SpecEntry]


class SpecShowReport(Head):
    """The descriptions of the entries of a name, each with the keys of its kind."""

    entries: list[dict[str, Any]]


class SpecChange(TypedDict):
    version: str
    action: str
    kind: str
    name: str
    detail: str


class SpecDiffReport(Head):
    """What changed between two versions."""

    start: str
    end: str
    changes: list[SpecChange]


class SpecLintReport(Head):
    """Whether a specification keeps the rules."""

    ok: bool
    violations: list[dict[str, Any]]


class SpecPlanFile(TypedDict):
    path: str
    new: bool
    diff: str


class SpecPlanStep(TypedDict):
    path: str
    line: int
    what: str


class SpecPlan(TypedDict):
    version: str
    written: bool
    files: list[SpecPlanFile]
    remaining: list[SpecPlanStep]


class SpecPlanReport(Head):
    """The files of a new version."""

    version: str
    written: bool
    files: list[SpecPlanFile]
    remaining: list[SpecPlanStep]


class SpecSurveyReport(Head):
    """How a library, or a checkout of StableHLO, differs from the specification."""

    source: str
    version: str
    specification: str
    differences: list[dict[str, Any]]
    newer: list[dict[str, str]]
    unread: list[dict[str, Any]]
    plan: NotRequired[SpecPlan]


class RunReport(Head):
    """The results of a program; of several devices, a list for each."""

    outputs: Annotated[list[Any], said("An object with `dtype`, `shape` and `data` for each; null for a token.")]


class CompiledAlias(TypedDict):
    """An alias or a donor that a program declares."""

    parameter: Annotated[int, said("The number of the parameter.")]
    parameter_index: Annotated[list[int], said("The index of the input in the parameter.")]
    declared_output: Annotated[list[int] | None, said("The index of the output of an alias; null for a donor.")]
    output: Annotated[list[int] | None, said("The index of the output that has the memory of the input.")]
    kept: Annotated[bool, said("Whether an output has the memory of the input, of an alias its own.")]
    reason: Annotated[str | None, said("Why it was not kept.")]


class CompilationReport(Head):
    """What the compiler of an accelerator made of a program."""

    path: Annotated[str, said("The program.")]
    ok: Annotated[bool, said("Whether all aliases and donors were kept.")]
    release: Annotated[str, said("The release, with the device.")]
    aliases: list[CompiledAlias] | None
    memory: Annotated[
        dict[str, int] | None, said("Bytes on each device, by what they are for; null if it is not said.")
    ]
    costs: Annotated[dict[str, float], said("`flops` and `bytes_accessed` of an execution, as far as they are said.")]
    seconds: Annotated[float, said("How long it took.")]


class GoldenRecord(TypedDict):
    name: str
    passed: bool
    problem: str | None
    readable: bool
    stablehlo: str | None
    library: str | None
    engine: str | None
    outputs: list[ComparedOutput]


class GoldenReport(Head):
    """Whether recorded programs still compute what they did."""

    passed: bool
    records: list[GoldenRecord]


class ResultsReport(Head):
    """The summary of results that were kept as Parquet."""

    table: Annotated[str, said("Which command wrote them: migration, store-status or verification.")]
    metadata: dict[str, str]
    files: Annotated[dict[str, int], said("How many there are of each status.")]
    sizes: Annotated[dict[str, int], said("Their bytes.")]
    versions: dict[str, int]
    new_size: int
    features: dict[str, dict[str, int]]
    reasons: dict[str, Any]
    seconds: dict[str, Any]


_WRITING: Final = (WrittenReport, RefusedReport)
#: The outputs of each command, by its words after ``vhlo``.
OUTPUTS: Final[Mapping[str, tuple[type, ...]]] = {
    "alias clear": (WrittenAliasesReport, RefusedReport),
    "alias convert": (WrittenAliasesReport, RefusedReport),
    "alias set": (WrittenAliasesReport, RefusedReport),
    "alias show": (AliasesReport,),
    "check": (CheckReport, StatisticsReport, FilesReport, SettingsReport, ExplanationReport),
    "compile": (CompilationReport,),
    "constants externalize": (ExternalizedReport,),
    "constants extract": (ExtractedReport,),
    "constants list": (ConstantsReport,),
    "constants restore": _WRITING,
    "diff": (DiffReport,),
    "golden check": (GoldenReport,),
    "inspect": (InspectedFile,),
    "manifest check": (ManifestReport, ManifestsReport),
    "matrix": (MatrixReport,),
    "migrate": (MigrationReport,),
    "report": (ResultsReport,),
    "retarget": _WRITING,
    "run": (RunReport,),
    "serialize": _WRITING,
    "spec diff": (SpecDiffReport,),
    "spec import": (SpecSurveyReport,),
    "spec lint": (SpecLintReport,),
    "spec list": (SpecListReport,),
    "spec new-version": (SpecPlanReport,),
    "spec probe": (SpecSurveyReport,),
    "spec show": (SpecShowReport,),
    "store status": (StatusReport,),
    "targets": (VersionsReport, TargetsReport),
    "verify": (VerifyReport, StoresReport),
}


def output_schema(command: str) -> dict[str, Any]:
    """Return the JSON schema, of draft 2020-12, of what a command prints with ``--output-format json``."""
    outputs, parts = msgspec.json.schema_components(OUTPUTS[command], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"vhlo {command} --output-format json",
        **(outputs[0] if len(outputs) == 1 else {"anyOf": list(outputs)}),
        "$defs": parts,
    }
