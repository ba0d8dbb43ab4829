"""Every use of something that a version introduced, in a program as bytes: one traversal of its ops.

Two questions are answered by the same traversal: what the conversion to older versions would refuse or overlook, and
what a reader of these bytes must support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final

from vhlo_tools.bytecode import (
    Block,
    File,
    Head,
    Place,
    Places,
    attributes_of,
    blocks_in,
    heads_in,
    program_name,
    visit,
)
from vhlo_tools.compat.introductions import Introductions, Name, Needs
from vhlo_tools.compat.structures import Structures
from vhlo_tools.dialect import (
    Constraint,
    Op,
    OpVersion,
    Specification,
    blockers,
    floor_of,
    known_feature,
    known_specification,
    minimum_version,
    structures_in,
)
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.findings import FindingKind, Level, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

__all__ = ["Survey", "Use"]

_KNOWN_DIALECTS: Final = ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class Use:
    """A use of something that a version introduced.

    Attributes:
        feature: The id of the feature, or a name if it is not a feature.
        level: ``error`` if the conversion refuses it, ``warning`` if it overlooks it.
        kind: Its kind.
        what: A short description of what was found.
        since: The version that introduced it.
        floor: The oldest version at which it matters.
        op: The op with it, by its name in programs.
        path: The path of the op in the program.
        function: The function that contains the op.
        location: The location in the user's source.
        by_call: Whether ``location`` is that of a call of the function, because the op has none of its own.
        accepted_until: The last version whose readers accept it nevertheless; ``None`` if none does.
        count: The number of ops with it in one function and source line.
        read_since: The first patch release of an older version whose readers accept it; ``None`` if none does.
        unknown: Whether the specification does not have it; ``since`` is then the newest version that may have
            introduced it.
    """

    feature: str
    level: Level
    kind: FindingKind
    what: str
    since: Version
    floor: Version
    op: str | None = None
    path: str | None = None
    function: str | None = None
    location: SourceLocation | None = None
    by_call: bool = False
    count: int = 1
    accepted_until: Version | None = None
    read_since: Version | None = None
    unknown: bool = False

    def matters_at(self, version: Version) -> bool:
        """Return whether it excludes the program from ``version``."""
        return self.floor <= version.minor_release < self.since

    def is_refused_by(self, reader: Version) -> bool:
        """Return whether a reader of version ``reader`` rejects bytes with it."""
        accepted = self.accepted_until is not None and reader.minor_release <= self.accepted_until
        sooner = self.read_since is not None and reader >= self.read_since
        return reader.minor_release < self.since and not accepted and not sooner


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts about an op name of a file.

    Attributes:
        name: The name, with its dialect.
        op: The op; ``None`` if it is unknown or of another dialect.
        version: The version of the op.
        since: The introductions of that version, and of those before it.
        constraints: The constraints on these versions.
        look: Whether uses of it may matter.
        about_operands: Whether that depends on operands and results.
        is_call: Whether it calls a function.
        is_foreign: Whether its dialect is neither VHLO nor builtin.
    """

    name: str
    op: Op | None
    version: OpVersion | None
    since: frozenset[Version]
    constraints: frozenset[Constraint]
    look: bool
    about_operands: bool
    is_call: bool
    is_foreign: bool


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def _known_facts(name: str) -> _Facts:
    """Return what the specification says of an op name, whatever else the file has."""
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
    return _Facts(
        name=name,
        op=op,
        version=version,
        since=since,
        constraints=constraints,
        look=look or (version is not None and version.min > minimum_version()),
        about_operands=op is not None and bool(op.constraints or any(step.removed or step.single for step in op.steps)),
        is_call=dialect == "vhlo" and short.rpartition("_v")[0] in ("call", "composite"),
        is_foreign=foreign,
    )


@dataclass(slots=True)
class _Counted:
    """The place of the first of several uses, and their number."""

    path: str | None
    count: int


# Uses by their content, the name of the op, the function and the source line.
_Counts = dict[tuple[Use, str | None, str | None, SourceLocation | None], _Counted]
# The uses of one op: those that matter to the conversion, and those that matter to a reader.
_Found = tuple[tuple[Use, ...], tuple[Use, ...]]


class Survey:
    """The uses in a file, found on demand.

    Args:
        file: The file.
        future: The version to use as the introduction of anything unspecified.
        name: The name of the program, for locations without a file name.
    """

    def __init__(self, file: File, future: Version, name: str) -> None:
        self._file = file
        self._future = future
        self._specs: Specification = known_specification()
        self._oldest = minimum_version()
        self._introductions = Introductions(file, future)
        self._structures = Structures(file)
        self._places = Places(file, name)
        self._found: dict[tuple[object, ...], _Found] = {}
        self._by_location: dict[int, _Found] = {}
        self._counts: tuple[_Counts, _Counts] = ({}, {})

    @cached_property
    def names(self) -> frozenset[Name]:
        """The needs of the attributes and types of the file, from its tables."""
        return self._introductions.of_tables()

    @cached_property
    def op_names(self) -> tuple[_Facts, ...]:
        """The facts about each op name of the file."""
        return tuple(self._facts(self._file.op_name(index)) for index in range(len(self._file.dialects.ops)))

    @cached_property
    def _young(self) -> bool:
        """Whether the tables contain types, attributes or cases that not every version has."""
        return any(name.kind not in ("encoding", "dialect") for name in self.names)

    @cached_property
    def _young_names(self) -> frozenset[str]:
        return frozenset(name.name for name in self.names)

    @cached_property
    def _young_types(self) -> bool:
        """Whether the tables contain types that not every version has."""
        return any(name.kind == "type" for name in self.names)

    @cached_property
    def summary(self) -> tuple[frozenset[Use], frozenset[Use]]:
        """The uses as in :attr:`written` and :attr:`read`, but without places; far cheaper than these.

        Uses that are known from the tables alone, and never prevent a conversion, are omitted: see :attr:`names`.
        """
        if not self._young and not any(facts.look for facts in self.op_names):
            return frozenset(), frozenset()
        written, read = (frozenset(counts) for counts in self._tally(everywhere=self._young))
        return written, read

    @cached_property
    def counts(self) -> Mapping[Use, int]:
        """The uses as in :attr:`read`, but without places: the numbers of ops and block arguments that have them."""
        if not self.names and not any(facts.look for facts in self.op_names):
            return {}
        _, counts = self._tally(everywhere=bool(self.names))
        if any(name.kind == "encoding" for name in self.names):
            locations: Counter[int] = Counter()
            for block in blocks_in(self._file.program):
                locations.update(block.rows.locations)
                locations.update([each.location for each in block.arguments if each.location is not None])
            for location, count in locations.items():
                for use in self._located(location)[1]:
                    counts[use] += count
        seen = {use.what for use in counts}
        counts.update(_use(each, "warning", self._oldest) for each in self.names if each.name not in seen)
        return counts

    def _tally(self, *, everywhere: bool) -> tuple[Counter[Use], Counter[Use]]:
        """Count the uses that matter to the conversion, and those that matter to a reader.

        Args:
            everywhere: Whether ops that are of no interest themselves may have attributes that are.
        """
        written, read = Counter[Use](), Counter[Use]()
        found: Counter[_Found] = Counter()
        alike: dict[Head, _Found] = {}

        def operation(place: Place, values: list[int]) -> None:
            facts = self.op_names[place.op.name]
            if self._is_about_operands(facts):
                found[self._found_in(place, facts, values)] += 1
            else:
                alike[place.op.head] = self._found_in(place, facts, values)

        def arguments(block: Block, around: Place | None) -> None:
            types.update([argument.type for argument in block.arguments])

        def once(head: Head) -> bool:
            return not self._is_about_operands(self.op_names[head.name])

        types: Counter[int] = Counter()
        looks = [facts.look or self._young_types for facts in self.op_names]

        def wanted(head: Head) -> bool:
            return looks[head.name] or (everywhere and (head.properties is not None or head.attributes is not None))

        visit(self._file.program, operation, arguments, wanted, once=once)
        if any(each[0] or each[1] for each in alike.values()):
            for head, count in heads_in(self._file.program).items():
                if head in alike:
                    found[alike[head]] += count
        for uses, count in found.items():
            written.update(dict.fromkeys(uses[0], count))
            read.update(dict.fromkeys(uses[1], count))
        for type_, count in types.items():
            names = self._introductions.of("type", type_)
            held = {_use(name, "warning", self._oldest): count for name in names.checked | names.unchecked}
            written.update(held)
            read.update(held)
        return written, read

    @cached_property
    def newest_possible(self) -> Version:
        """A version that nothing in the file is newer than, judging by the tables alone.

        A use begins with a type, an attribute, a case or an encoding in the tables, with a version of its op up to that
        in the file, or with a constraint on one of these versions.
        """
        found = {self._oldest, *(name.since for name in self.names)}
        constraints = set[Constraint]()
        for facts in self.op_names:
            if facts.is_foreign:
                found.add(known_feature("mixed_dialects").introduced)
            elif facts.op is not None:
                found |= facts.since
                constraints |= facts.constraints
            elif facts.name.startswith("vhlo."):
                found.add(self._future)
        newest = max(found)
        young = (each for each in constraints if each.since > newest and self._may_break(each))
        return max([newest, *(each.since for each in young)])

    def _may_break(self, constraint: Constraint) -> bool:
        """Return whether the tables have the types without which a constraint holds, as far as it is about types."""
        if constraint.requires not in ("attributes_are_not", "operands_do_not_mix"):
            return True
        nodes = structures_in([constraint.value] if constraint.value is not None else [])
        named = [name for node in nodes if isinstance(name := node.get("type"), str)]
        types = (*constraint.types, *named)
        return not types or self._introductions.has_types(types)

    def may_matter_at(self, version: Version) -> bool:
        """Return whether anything in :attr:`written` matters at ``version``, without determining places."""
        if self.newest_possible <= version.minor_release:
            return False
        others = (name for name in self.names if name.kind in ("encoding", "dialect"))
        return any(name.since > version.minor_release for name in others) or any(
            use.matters_at(version) for use in self.summary[0]
        )

    def _found_in(self, place: Place, facts: _Facts, values: list[int]) -> _Found:
        op = place.op
        if self._is_about_operands(facts):
            operands = tuple([values[index] for index in op.operands])
            key: tuple[object, ...] = (op.name, op.properties, op.attributes, op.results, operands, len(op.regions))
        else:
            key = (op.name, op.properties, op.attributes)
        found = self._found.get(key)
        if found is None:
            types = tuple([values[index] for index in op.operands])
            found = self._found[key] = self._of_op(place, facts, types)
        return found

    def _is_about_operands(self, facts: _Facts) -> bool:
        """Return whether the uses of an op depend on the types of its operands, and not on its head alone."""
        return self._young_types or facts.about_operands

    @cached_property
    def _walked(self) -> tuple[tuple[Use, ...], tuple[Use, ...]]:
        if not self.names and not any(facts.look for facts in self.op_names):
            return (), ()
        self._ranges = any(name.kind == "encoding" for name in self.names)
        self._everywhere = bool(self.names)
        visit(self._file.program, self._operation, self._arguments, self._is_walked)
        written, read = (tuple(self._counted(counts)) for counts in self._counts)
        seen = {use.what for use in read}
        missing = (
            each for each in sorted(self.names, key=lambda each: (each.since, each.name)) if each.name not in seen
        )
        return written, (*read, *(_use(name, "warning", self._oldest) for name in missing))

    def _counted(self, counts: _Counts) -> Iterator[Use]:
        for (use, name, function, source), found in counts.items():
            yield self._placed(
                replace(use, op=name, function=function, location=source, path=found.path, count=found.count)
            )

    @property
    def written(self) -> tuple[Use, ...]:
        """The uses that the conversion to older versions refuses or overlooks, in program order."""
        return self._walked[0]

    @property
    def read(self) -> tuple[Use, ...]:
        """The uses that a reader of the bytes must support, in program order."""
        return self._walked[1]

    @cached_property
    def withdrawn(self) -> tuple[tuple[str, Version], ...]:
        """The op versions and types that newer readers no longer accept, each with the last version that does."""
        versions = [facts.version for facts in self.op_names]
        lost = [(each.name, each.max) for each in versions if each is not None and each.forgotten]
        for spelling in self._specs.types:
            # A type in a signature alone does no harm: only ops no longer accept it.
            if spelling.last_read is not None and self._introductions.is_type_of_results(spelling.name):
                lost.append((spelling.name, spelling.last_read))
        return tuple((name, last) for name, last in lost if last is not None)

    @cached_property
    def has_deadly_integers(self) -> bool:
        """Whether it contains integer attributes of two bits, which crash every reader (``LLVM ERROR``)."""
        return self._introductions.has_integers_of(("i2_v1", "ui2_v1"))

    def _facts(self, name: str) -> _Facts:
        facts = _known_facts(name)
        # A constraint on a type that the tables do not have cannot be broken.
        if facts.look and facts.op is not None and facts.version is not None:
            return facts if self._could_matter(facts.op, facts.version) else replace(facts, look=False)
        return facts

    def _could_matter(self, op: Op, version: OpVersion) -> bool:
        """Return whether ``version`` of an op may be excluded from any older version of VHLO, judging by the tables."""
        if version.min > self._oldest or version.number > 1:
            return True
        for constraint in op.constraints:
            if version.number not in constraint.versions:
                continue
            if (
                constraint.kind is not None
                and self._is_young_type(constraint.kind)
                and constraint.kind not in self._young_names
            ):
                continue
            return True
        return False

    def _is_young_type(self, name: str) -> bool:
        spelling = self._specs.kinds["type"].get(name)
        return spelling is not None and spelling.min is not None and spelling.min > self._oldest

    # Traversal

    def _is_walked(self, head: Head) -> bool:
        facts = self.op_names[head.name]
        return facts.is_call or self._ranges or facts.look or self._everywhere

    def _operation(self, place: Place, values: list[int]) -> None:
        op = place.op
        facts = self.op_names[op.name]
        if facts.is_call:
            self._places.called(place)
        if self._ranges:
            self._note(self._located(op.location), place, facts)
        if not facts.look and not self._everywhere:
            return
        found = self._found_in(place, facts, values)
        if found[0] or found[1]:
            self._note(found, place, facts)

    def _arguments(self, block: Block, around: Place | None) -> None:
        if not self._everywhere:
            return
        # There may be a million of one type.
        counts = Counter((each.type, each.location if self._ranges else None) for each in block.arguments)
        for (type_, location), count in counts.items():
            needs = self._introductions.of("type", type_)
            names = needs.checked | needs.unchecked
            if location is not None:
                names |= self._introductions.of("attribute", location).unchecked
            if names:
                uses = tuple(_use(name, "warning", self._oldest) for name in _ordered(names))
                self._note((uses, uses), around, self.op_names[around.op.name] if around else None, count)

    def _located(self, location: int) -> _Found:
        found = self._by_location.get(location)
        if found is None:
            names = self._introductions.of("attribute", location).unchecked
            uses = tuple(_use(name, "warning", self._oldest) for name in _ordered(names))
            found = self._by_location[location] = uses, uses
        return found

    def _note(self, found: _Found, place: Place | None, facts: _Facts | None, count: int = 1) -> None:
        """Count uses by their content, function and source line; the path of the first of each is kept."""
        if not (found[0] or found[1]):
            return
        source = self._places.source(place.op.location) if place else None
        function = self._places.function(place) if place else None
        name = program_name(facts.name) if facts else None
        for uses, table in zip(found, self._counts, strict=True):
            for use in uses:
                key = (use, name, function, source)
                known = table.get(key)
                if known is not None:
                    known.count += count
                else:
                    table[key] = _Counted(self._places.path(place) if place else None, count)

    def _placed(self, use: Use) -> Use:
        """Return a use without a source location with that of a call instead."""
        if use.location is not None or use.function is None:
            return use
        source = self._places.call_of(use.function)
        return replace(use, location=source, by_call=True) if source else use

    # One op

    def _of_op(self, place: Place, facts: _Facts, operands: tuple[int, ...]) -> _Found:
        op = place.op
        attributes = attributes_of(self._file, op)
        written: list[Use] = []
        read: list[Use] = []
        if facts.is_foreign:
            mixed = known_feature("mixed_dialects")
            dialect = facts.name.partition(".")[0]
            use = _use(Name(f"{mixed.id} {dialect}", mixed.kind, mixed.introduced), "warning", self._oldest)
            written.append(use)
            read.append(use)
        if facts.version is not None and facts.look:
            steps, own = self._by_steps(place, facts.version, attributes, operands)
            written += steps
            read += own
        elif facts.version is None and facts.name.startswith("vhlo."):
            unknown = Name(facts.name, "op", self._future, known=False)
            written.append(_use(unknown, "error", self._oldest))
            read.append(_use(unknown, "error", self._oldest))
        types = self._introductions.all_of("type", {*operands, *op.results})
        names: dict[tuple[Name, Level], Version] = {}
        self._gather(names, types, self._oldest)
        for key, index in attributes.items():
            needs = self._introductions.of("attribute", index)
            if needs.checked or needs.unchecked:
                self._gather(names, needs, self._floor(facts, key))
        for (name, level), floor in sorted(names.items()):
            use = _use(name, "warning" if facts.version is None else level, floor)
            if use.floor < use.since:
                written.append(use)
            read.append(use)
        return _unique(written), _unique(read)

    def _floor(self, facts: _Facts, key: str) -> Version:
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


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def _use(name: Name, level: Level, floor: Version) -> Use:
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


def _ordered(names: Iterable[Name]) -> Iterator[Name]:
    yield from sorted(names)


def _unique(uses: list[Use]) -> tuple[Use, ...]:
    return tuple(dict.fromkeys(uses))
