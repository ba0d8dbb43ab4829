"""Uses of newly introduced features: in one op, by the versions that introduced its parts."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vhlo_tools.bytecode import (
    File,
    Place,
    SourceLocations,
    attributes_of,
    children,
    codes_beside,
    encoding_of_entry,
    entry_name,
    heads_in,
    table_of,
    visit,
)
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.findings import Finding, FindingKind, Level, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.spec import (
    Constraint,
    Op,
    OpStructure,
    OpVersion,
    blockers,
    dialects_beside,
    encodings_of,
    find_enum,
    find_op_version,
    floor_of,
    known_feature,
    known_specification,
    known_verifiers,
    known_versions,
    minimum_version,
    spellings_of,
)
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Entry, Value
    from vhlo_tools.spec import EntryKind, Feature, Structure

# Ops in bytes as the plain structures of steps and constraints (``dialect_specs/vhlo/defaults.toml``)

_DEEPEST: Final = 100
#: No step compares a value of more bytes than this.
_LONGEST: Final = 4096
# So many entries are remembered, and cases of an enum told apart: a file could have as many as it has bytes.
_MOST_SEEN: Final = 1 << 14
_MOST_CASES: Final = 1 << 7


class Structures:
    """Attributes and types of a file as structures, each converted once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._made: dict[tuple[EntryKind, int], Structure] = {}
        self._depth = 0

    def operation(
        self, name: str, attributes: Mapping[str, int], operands: Sequence[int], results: Sequence[int], regions: int
    ) -> OpStructure:
        return OpStructure(
            name,
            {key: self.of("attribute", index) for key, index in attributes.items()},
            tuple(self.of("type", index) for index in operands),
            tuple(self.of("type", index) for index in results),
            regions,
        )

    def of(self, kind: EntryKind, index: int) -> Structure:
        key = (kind, index)
        if key not in self._made:
            if self._depth > _DEEPEST:
                entry = table_of(self._file, kind)[index]
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            self._made[key] = self._of(kind, index)
            self._depth -= 1
        return self._made[key]

    def _of(self, kind: EntryKind, index: int) -> Structure:
        value = self._file.decode(kind, index)
        if value is None:
            return {kind: f"unknown {index}"}
        found: dict[str, Any] = {kind: value.name}
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if field.enum is not None:
                enum = find_enum(field.enum)
                case = enum.case_of(content) if enum else None
                found["case"] = case.name if case else content
            elif value.name == "bool_v1":
                found[field.name] = bool(content)
            elif value.name == "type_v1":
                found["type"] = self.of("type", content)
            elif field.is_list:
                found[field.name] = [self._plain(field.kind, each) for each in content]
            else:
                found[field.name] = self._plain(field.kind, content)
        return found

    def _plain(self, kind: str, content: Any) -> Any:
        match kind:
            case "type":
                return self.of("type", content)
            case "attribute" | "attribute?" | "flagged attribute":
                return None if content is None else self.of("attribute", content)
            case "pair":
                return [self.of("attribute", each) for each in content]
            case "string":
                return self._file.string(content)
            case "f64":
                return struct.unpack("<d", struct.pack("<Q", content & 0xFFFF_FFFF_FFFF_FFFF))[0]
            case "blob":
                # A longer value equals no default, and need not be distinguished from others of its length.
                return bytes(content).hex() if len(content) <= _LONGEST else f"{len(content)} bytes"
        return content


# Custom calls: payloads with versions of their own, for which StableHLO has no compatibility guarantee

_API_VERSIONS = "api_version_v1"


def custom_call_notes(file: File, name: str) -> list[Finding]:
    """Return a note for each custom call, except those of op versions that the specification lacks."""
    named = ((index, file.op_name(index)) for index in range(len(file.dialects.ops)))
    calls = ((index, name.removeprefix("vhlo.")) for index, name in named if name.startswith("vhlo.custom_call_v"))
    ops = {index for index, version in calls if find_op_version(version) is not None}
    if not ops:
        return []
    places = SourceLocations(file, name)
    found: dict[Finding, Finding] = {}

    def note(place: Place, values: list[int]) -> None:
        finding = Finding(
            feature="custom_call",
            level="note",
            kind="op",
            message=_message(file, attributes_of(file, place.op)),
            op="stablehlo.custom_call",
            location=places.source(place.op.location),
            remedy="check that every consumer supports the target; StableHLO does not guarantee it",
            function=places.function(place),
        )
        known = found.get(finding)
        found[finding] = replace(known, count=known.count + 1) if known else replace(finding, path=places.path(place))

    visit(file.program, note, lambda head: head.name in ops)
    return list(found.values())


def _message(file: File, attributes: Mapping[str, int]) -> str:
    called = file.text(attributes.get("call_target_name")) or "something"
    api = file.decode("attribute", attributes["api_version"]) if "api_version" in attributes else None
    enum, number = find_enum(_API_VERSIONS), api.fields[0] if api is not None and api.fields else None
    case = enum.case_of(number) if enum and isinstance(number, int) else None
    config = attributes.get("backend_config")
    if (text := file.raw_text(config)) is not None:
        payload = f"{len(text)} bytes"
    elif (held := file.dictionary(config)) is not None:
        payload = f"a dictionary of {len(held)}"
    else:
        payload = "nothing"
    return f"a custom call of {called} ({case.name if case else number}) with {payload} as backend_config"


# Versions that introduced the types, attributes and cases in the tables of a file
#
# VHLO's conversion between versions checks most types and attributes inside others, but not all (``isLegalType`` and
# ``isLegalAttribute`` in ``stablehlo/transforms/VhloToVersion.cpp``). Entries that it does not check are written even
# for consumers that reject them; so checked and unchecked entries are distinguished here.

#: Types and attributes whose contents the conversion does not check.
_NOT_LOOKED_INTO: Final = frozenset({"future_v1", "quant_per_axis_v1", "mesh_v1", "mesh_axis_v1"})


class Name(NamedTuple):
    """A type, attribute, case or feature of the encoding that a version introduced."""

    name: str  # a case is ``comparison_type_v1.WEAKORDER``
    kind: FindingKind
    since: Version
    known: bool = True  # if the specification lacks it, ``since`` is the newest version that may have introduced it


class Needs(NamedTuple):
    """The needs of an attribute or a type, including everything that it contains."""

    checked: frozenset[Name] = frozenset()  # by the conversion between versions
    unchecked: frozenset[Name] = frozenset()  # overlooked by the conversion between versions


class Withdrawn(NamedTuple):
    """What readers no longer accept."""

    dialect: str
    kind: FindingKind
    name: str
    last: Version  # the last that do
    what: str  # what later ones did


_NOTHING: Final = Needs()


class Introductions:
    """The needs of the entries of a file; ``future`` is the introduction of anything unspecified."""

    def __init__(self, file: File, future: Version) -> None:
        self._file = file
        self._future = future
        self._needs: dict[tuple[EntryKind, int], Needs] = {}
        self._depth = 0
        names = map(file.op_name, range(len(file.dialects.ops)))
        self._dialects_of_ops = frozenset(name.partition(".")[0] for name in names)

    def of_tables(self) -> frozenset[Name]:
        """Return the needs of all entries; only entries that may be newer than the first version are decoded."""
        found: set[Name] = set()
        dialects = [self._file.dialect(index) for index in range(len(self._file.dialects.names))]
        # How much of an entry decides: for other dialects, the dialect alone.
        lengths = {"vhlo": 64, "builtin": 1, **{each.name: 64 for each in dialects_beside().values() if each.rows}}
        for kind in _KINDS:
            table = table_of(self._file, kind)
            seen: set[tuple[int, bytes]] = set()
            for index in table.others([_old_bytes(dialect, kind) for dialect in dialects]):
                entry = table[index]
                key = (entry.dialect, bytes(entry.data[: lengths.get(dialects[entry.dialect], 0)]))
                if key not in seen:
                    if len(seen) >= _MOST_SEEN:
                        seen.clear()
                    seen.add(key)
                    found.update(self._own(kind, entry, self._file.decode(kind, index)))
        return frozenset(found)

    def is_type_of_results(self, name: str) -> bool:
        """Whether some op has a result of the VHLO type ``name``."""
        types = self.types_called((name,))
        return bool(types) and any(not types.isdisjoint(head.results) for head in heads_in(self._file.program))

    def old_layouts(self) -> Iterator[Withdrawn]:
        """Yield entries of dialects beside VHLO that newer readers take for something else."""
        for kind in _KINDS:
            table = table_of(self._file, kind)
            for number, run in table.groups():
                dialect = dialects_beside().get(self._file.dialect(number))
                if dialect is None or not any(row.last_read for row in dialect.rows.get(kind, ())):
                    continue
                for entry in map(table.__getitem__, run):
                    row = codes_beside(self._file, kind, entry, dialect)[0] if entry.custom else None
                    if row is not None and row.last_read is not None:
                        code = entry_name(self._file, kind, entry).rpartition(" ")[2]
                        yield Withdrawn(dialect.name, kind, f"{kind}_{code}", row.last_read, "expect other fields")

    def has_integers_of(self, names: tuple[str, ...]) -> bool:
        """Whether there is an integer attribute of one of the VHLO types ``names``."""
        types = self.types_called(names)
        integers = self._file.called("attribute", "vhlo", "integer_v1") if types else ()
        found = (self._file.decode("attribute", index) for index in integers)
        return any(value.field("type") in types for value in found if value is not None)

    def types_called(self, names: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._file.called("type", "vhlo", *names))

    def of(self, kind: EntryKind, index: int) -> Needs:
        """Return the needs of an entry, including everything that it contains."""
        key = (kind, index)
        known = self._needs.get(key)
        if known is None:
            if self._depth > _DEEPEST:
                entry = table_of(self._file, kind)[index]
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            known = self._needs[key] = self._of(kind, index)
            self._depth -= 1
        return known

    def all_of(self, kind: EntryKind, indices: Iterable[int]) -> Needs:
        found = [needs for index in indices if (needs := self.of(kind, index)) is not _NOTHING]
        if not found:
            return _NOTHING
        return Needs(
            frozenset().union(*(each.checked for each in found)), frozenset().union(*(each.unchecked for each in found))
        )

    def _of(self, kind: EntryKind, index: int) -> Needs:
        entry = table_of(self._file, kind)[index]
        value = self._file.decode(kind, index)
        checked, unchecked = frozenset(self._own(kind, entry, value)), frozenset[Name]()
        is_vhlo = value is not None and value.dialect == "vhlo"
        if not is_vhlo:
            # The conversion does not change entries of other dialects, or anything that they contain.
            checked, unchecked = unchecked, checked
        seen = is_vhlo and value is not None and value.name not in _NOT_LOOKED_INTO
        for needs in (self.of(*each) for each in children(value)) if value is not None else ():
            if needs is not _NOTHING and seen:
                checked |= needs.checked
                unchecked |= needs.unchecked
            elif needs is not _NOTHING:
                unchecked |= needs.checked | needs.unchecked
        return Needs(checked, unchecked) if checked or unchecked else _NOTHING

    def _own(self, kind: EntryKind, entry: Entry, value: Value | None) -> Iterator[Name]:
        dialect = self._file.dialect(entry.dialect)
        if dialect not in ("vhlo", "builtin"):
            yield from self._beside(dialect, kind, entry)
            return
        if dialect == "builtin":
            encoding = encoding_of_entry(self._file, kind, entry)
            if encoding is None:
                if entry.custom:
                    yield Name(entry_name(self._file, kind, entry), kind, self._future, known=False)
            elif encoding.name == "file_line_col_range":
                ranges = known_feature("range_locations")
                yield Name(ranges.id, ranges.kind, ranges.introduced)
            elif encoding.since is not None:
                codes = known_feature("builtin_codes")
                yield Name(f"{codes.id} {encoding.name}", codes.kind, encoding.since)
            return
        if value is None:
            # Text of VHLO needs a parser that knows it; of an unknown code, the code is all that a file says.
            yield Name(entry_name(self._file, kind, entry), kind, self._future, known=False)
            return
        since = _lives(kind)[value.name]
        if since > _oldest():
            yield Name(value.name, kind, since)
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if field.enum is None:
                continue
            enum = find_enum(field.enum)
            case = enum.case_of(content) if enum else None
            if case is None:
                number = content if content < _MOST_CASES else f"{_MOST_CASES} or more"
                yield Name(f"{field.enum}.{number}", kind, self._future, known=False)
            elif case.min > _oldest():
                yield Name(f"{field.enum}.{case.name}", kind, case.min)

    def _beside(self, dialect: str, kind: EntryKind, entry: Entry) -> Iterator[Name]:
        mixed = known_feature("mixed_dialects")
        # Of a dialect that has ops, too, these decide.
        known = None if dialect in self._dialects_of_ops else dialects_beside().get(dialect)
        if known is None or kind not in known.rows or not entry.custom:
            since = mixed.introduced if known is None else known.since
        elif row := codes_beside(self._file, kind, entry, known)[0]:
            since = row.since
        else:
            yield Name(entry_name(self._file, kind, entry), kind, self._future, known=False)
            return
        if since > _oldest():
            yield Name(f"{mixed.id} {dialect}", mixed.kind, since)


_KINDS: Final[tuple[EntryKind, EntryKind]] = ("attribute", "type")


@cache
def _oldest() -> Version:
    return known_versions()[0].version


@cache
def _lives(kind: EntryKind) -> dict[str, Version]:
    return {each.name: each.min or _oldest() for each in spellings_of("vhlo", kind)}


@cache
def _old_bytes(dialect: str, kind: EntryKind) -> frozenset[int]:
    """Return the first bytes of the entries that are as old as VHLO, whatever they contain.

    An entry begins with its code, which is small and so takes one byte, with its lowest bit set.
    """
    old: set[int] = set()
    for code, encoding in encodings_of(dialect, kind).items():
        if dialect == "builtin":
            young = encoding.name == "file_line_col_range" or encoding.since is not None
        else:
            # Which case it is, the first byte does not say: it may be one that nobody here knows.
            young = _lives(kind)[encoding.name] > _oldest() or any(field.enum for field in encoding.fields)
        if not young:
            old.add(code << 1 | 1)
    return frozenset(old)


# Uses of newly introduced features in a program


@dataclass(frozen=True, slots=True)
class Use:
    """A use of something that a version introduced."""

    feature: str  # the id of the feature, or another name
    level: Level  # ``error`` if the conversion refuses it, ``warning`` if it overlooks it
    kind: FindingKind
    what: str  # short description
    since: Version  # the version that introduced it
    floor: Version  # the oldest version at which it matters
    op: str | None = None  # name in programs
    path: str | None = None
    function: str | None = None
    location: SourceLocation | None = None
    by_call: bool = False  # ``location`` is that of a call of the function; the op has none
    count: int = 1  # ops with it in one function and source line
    accepted_until: Version | None = None  # the last version whose readers accept it nevertheless
    read_since: Version | None = None  # first patch release of an older version whose readers accept it
    unknown: bool = False  # the specification lacks it; ``since`` is the newest possible introduction

    def is_new_for(self, version: Version) -> bool:
        """Whether it excludes the program from ``version``."""
        return self.floor <= version.minor_release < self.since

    def is_refused_by(self, reader: Version) -> bool:
        accepted = self.accepted_until is not None and reader.minor_release <= self.accepted_until
        sooner = self.read_since is not None and reader >= self.read_since
        return reader.minor_release < self.since and not accepted and not sooner


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def use_of(name: Name, level: Level, floor: Version) -> Use:
    if not name.known:
        # Whether the conversion overlooks it is not known either.
        return Use(name.name, "error", name.kind, name.name, name.since, floor, unknown=True)
    specs = known_specification()
    base = name.name.partition(".")[0].partition(" ")[0]
    features = (feature for feature in specs.features_of(base) if feature.introduced == name.since)
    known = specs.feature(base) or next(features, None)
    read_since = known.read_since if known else None
    named = known.id if known else name.name
    return Use(named, level, name.kind, name.name, name.since, floor, read_since=read_since)


# Facts of the specification about the name of an op, whatever else a file has; cached across files

_KNOWN_DIALECTS: Final = ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class OpFacts:
    name: str  # with its dialect
    op: Op | None  # None if it is unknown or of another dialect
    version: OpVersion | None
    since: frozenset[Version]  # introductions of ``version``, and of those before it
    constraints: frozenset[Constraint]  # on these versions
    look: bool  # whether uses of the op may matter
    about_operands: bool  # whether that depends on operands and results
    is_call: bool
    is_foreign: bool  # the dialect is neither VHLO nor builtin
    verifiers: tuple[Feature, ...]  # what older verifiers refuse of it


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def facts_of(name: str) -> OpFacts:
    specs = known_specification()
    dialect, _, short = name.partition(".")
    version = specs.op_versions.get(short) if dialect == "vhlo" else None
    op = specs.op(version.op) if version else None
    since, constraints = frozenset[Version](), frozenset[Constraint]()
    if op is not None and version is not None:
        number = version.number
        since = frozenset({version.min, *(each.min for each in op.versions if each.number <= number)})
        constraints = frozenset(each for each in op.constraints if min(each.versions) <= number)
    foreign = dialect not in _KNOWN_DIALECTS
    look = foreign or (dialect == "vhlo" and (op is None or len(op.versions) > 1 or bool(op.constraints)))
    return OpFacts(
        name=name,
        op=op,
        version=version,
        since=since,
        constraints=constraints,
        look=look or (version is not None and version.min > minimum_version()),
        about_operands=op is not None and bool(op.constraints or any(step.removed or step.single for step in op.steps)),
        is_call=dialect == "vhlo" and short.rpartition("_v")[0] in ("call", "composite"),
        is_foreign=foreign,
        verifiers=tuple(each for each in known_verifiers() if op is not None and op.name in each.ops),
    )


# Uses of newly introduced features in one op

#: The uses of one op: those that matter to the conversion, and those that matter to a reader.
Found = tuple[tuple[Use, ...], tuple[Use, ...]]


class OpUses:
    def __init__(self, file: File, future: Version, introductions: Introductions) -> None:
        self._file = file
        self._future = future
        self._introductions = introductions
        self._specs = known_specification()
        self._oldest = minimum_version()
        self._structures = Structures(file)

    def of_op(self, place: Place, facts: OpFacts, operands: tuple[int, ...]) -> Found:
        op = place.op
        attributes = attributes_of(self._file, op)
        written: list[Use] = []
        read: list[Use] = []
        if facts.is_foreign:
            mixed = known_feature("mixed_dialects")
            dialect = facts.name.partition(".")[0]
            use = use_of(Name(f"{mixed.id} {dialect}", mixed.kind, mixed.introduced), "warning", self._oldest)
            written.append(use)
            read.append(use)
        if facts.version is not None and facts.look:
            steps, own = self._by_steps(place, facts.version, attributes, operands)
            written += steps
            read += own
        elif facts.version is None and facts.name.startswith("vhlo."):
            unknown = Name(facts.name, "op", self._future, known=False)
            written.append(use_of(unknown, "error", self._oldest))
            read.append(use_of(unknown, "error", self._oldest))
        for each in self._loosened(facts, {*operands, *op.results}):
            use = Use(each.id, "warning", each.kind, each.title, each.introduced, self._oldest)
            written.append(use)
            read.append(use)
        types = self._introductions.all_of("type", {*operands, *op.results})
        names: dict[tuple[Name, Level], Version] = {}
        self._gather(names, types, self._oldest)
        for key, index in attributes.items():
            needs = self._introductions.of("attribute", index)
            if needs.checked or needs.unchecked:
                self._gather(names, needs, self._floor(facts, key))
        for (name, level), floor in sorted(names.items()):
            use = use_of(name, "warning" if facts.version is None else level, floor)
            if use.floor < use.since:
                written.append(use)
            read.append(use)
        return _unique(written), _unique(read)

    def _loosened(self, facts: OpFacts, types: set[int]) -> Iterator[Feature]:
        if facts.verifiers:
            elements = [self._structures.of("type", each).get("element", {}).get("type") for each in types]
            yield from (each for each in facts.verifiers if not set(each.names).isdisjoint(elements))

    def _floor(self, facts: OpFacts, key: str) -> Version:
        """Return the oldest version down to which an attribute of an op is kept."""
        if facts.op is None or facts.version is None:
            return self._oldest
        if key in facts.version.attributes:
            return floor_of(facts.version, key)
        # An attribute with a name that a newer version of the op defines is lost on reading: no older version sees it.
        newer = (each for each in facts.op.versions if each.number > facts.version.number)
        return self._future if any(key in each.attributes for each in newer) else self._oldest

    def _gather(self, names: dict[tuple[Name, Level], Version], needs: Needs, floor: Version) -> None:
        levels: tuple[tuple[Level, frozenset[Name]], ...] = (("error", needs.checked), ("warning", needs.unchecked))
        for level, found in levels:
            for name in found:
                key = (name, level)
                names[key] = min(floor, names.get(key, floor))

    def _by_steps(
        self, place: Place, version: OpVersion, attributes: Mapping[str, int], operands: tuple[int, ...]
    ) -> tuple[list[Use], list[Use]]:
        inherent = {key: attributes[key] for key in version.attributes if key in attributes}
        operation = self._structures.operation(
            version.name, inherent, operands, place.op.results, len(place.op.regions)
        )
        written: list[Use] = []
        read: list[Use] = []
        try:
            for each in blockers(operation):
                use = Use(each.feature, "error", each.kind, each.reason, each.since, each.floor)
                written.append(use)
                if each.since > version.min and each.floor == version.min:
                    read.append(replace(use, accepted_until=each.readers_accept_until))
        except (InvalidProgramError, ValueError) as error:
            raise self._file.attributes[place.op.location].malformed(f"vhlo.{version.name}: {error}") from error
        if version.min > self._oldest:
            what = f"the op version {version.name}"
            feature = next((f.id for f in self._specs.features_of(version.op) if f.introduced == version.min), what)
            read.append(Use(feature, "error", "op", what, version.min, self._oldest))
        return written, read


def _unique(uses: list[Use]) -> tuple[Use, ...]:
    return tuple(dict.fromkeys(uses))
