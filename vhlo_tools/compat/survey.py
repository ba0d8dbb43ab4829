"""Every use of a newly introduced feature in a program as bytes: one traversal of its ops.

The traversal answers two questions: what the conversion to older versions would refuse or overlook, and what a reader
of these bytes must support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from vhlo_tools.bytecode import (
    Block,
    File,
    Head,
    Operation,
    Place,
    SourceLocations,
    blocks_in,
    heads_in,
    program_name,
    visit,
)
from vhlo_tools.compat.uses import Found, Introductions, Name, OpFacts, OpUses, Use, Withdrawn, facts_of, use_of
from vhlo_tools.findings import FindingKind, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.spec import (
    Constraint,
    Feature,
    Specification,
    known_feature,
    known_specification,
    known_verifiers,
    minimum_version,
    structures_in,
)
from vhlo_tools.version import Version

#: Bytes of a small file.
_SMALL: Final = 1 << 16


@dataclass(slots=True)
class _Counted:
    """Place of the first of several uses, and their number."""

    path: str | None
    count: int


# Uses by their content, the name of the op, the function and the source line.
_Counts = dict[tuple[Use, str | None, str | None, SourceLocation | None], _Counted]


class FeatureScan:
    """The uses in a file, found on demand; ``future`` is the introduction of anything unspecified."""

    def __init__(self, file: File, future: Version, name: str) -> None:
        self._file = file
        self._future = future
        self._specs: Specification = known_specification()
        self._oldest = minimum_version()
        self._introductions = Introductions(file, future)
        self._ops = OpUses(file, future, self._introductions)
        self._places = SourceLocations(file, name)
        self._found: dict[tuple[object, ...], Found] = {}
        self._by_location: dict[int, Found] = {}
        self._counts: tuple[_Counts, _Counts] = ({}, {})

    @cached_property
    def names(self) -> frozenset[Name]:
        return self._introductions.of_tables()

    @cached_property
    def op_names(self) -> tuple[OpFacts, ...]:
        found = [facts_of(self._file.op_name(index)) for index in range(len(self._file.dialects.ops))]
        return tuple(map(self._narrowed, found))

    @cached_property
    def _verifiers(self) -> tuple[Feature, ...]:
        """Those about types that the tables have."""
        return tuple(each for each in known_verifiers() if self._introductions.types_called(each.names))

    def _narrowed(self, facts: OpFacts) -> OpFacts:
        """The facts as far as the tables have what they are about."""
        verifiers = tuple(each for each in facts.verifiers if each in self._verifiers)
        if verifiers:
            return replace(facts, verifiers=verifiers, look=True, about_operands=True)
        look = facts.look and self._could_matter(facts)
        return replace(facts, verifiers=(), look=look) if facts.verifiers or look != facts.look else facts

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
        """Uses as in :meth:`written` and :meth:`read`, without places; far cheaper than these.

        Uses known from the tables alone, which never prevent a conversion, are omitted: see :attr:`names`.
        """
        if not self._young and not any(facts.look for facts in self.op_names):
            return frozenset(), frozenset()
        written, read = (frozenset(counts) for counts in self._tally(everywhere=self._young))
        return written, read

    @cached_property
    def counts(self) -> Mapping[Use, int]:
        """Uses as in :meth:`read`, without places: the numbers of ops and block arguments that have them."""
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
        counts.update(use_of(each, "warning", self._oldest) for each in self.names if each.name not in seen)
        return counts

    def _tally(self, *, everywhere: bool) -> tuple[Counter[Use], Counter[Use]]:
        """Count uses; ``everywhere`` means that ops of no interest themselves may have attributes of interest."""
        written, read = Counter[Use](), Counter[Use]()
        found: Counter[Found] = Counter()
        alike: dict[Head, Found] = {}

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

        visit(self._file.program, operation, wanted, arguments=arguments, once=once)
        if any(each[0] or each[1] for each in alike.values()):
            for head, count in heads_in(self._file.program).items():
                if head in alike:
                    found[alike[head]] += count
        for uses, count in found.items():
            written.update(dict.fromkeys(uses[0], count))
            read.update(dict.fromkeys(uses[1], count))
        for type_, count in types.items():
            names = self._introductions.of("type", type_)
            held = {use_of(name, "warning", self._oldest): count for name in names.checked | names.unchecked}
            written.update(held)
            read.update(held)
        return written, read

    @cached_property
    def max_introduced(self) -> Version:
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
                found |= facts.since.union(each.introduced for each in facts.verifiers)
                constraints |= facts.constraints
            elif facts.name.startswith("vhlo."):
                found.add(self._future)
        newest = max(found)
        young = (each for each in constraints if each.since > newest and self._may_break(each))
        return max([newest, *(each.since for each in young)])

    def _may_break(self, constraint: Constraint) -> bool:
        """Whether the tables have the types without which a constraint holds, as far as it is about types."""
        if constraint.requires not in ("attributes_are_not", "operands_do_not_mix"):
            return True
        nodes = structures_in([constraint.value] if constraint.value is not None else [])
        named = [name for node in nodes if isinstance(name := node.get("type"), str)]
        types = (*constraint.types, *named)
        return not types or bool(self._introductions.types_called(types))

    def may_matter_at(self, version: Version) -> bool:
        """Whether anything in :meth:`written` matters at ``version``, without determining places."""
        if self.max_introduced <= version.minor_release:
            return False
        others = (name for name in self.names if name.kind in ("encoding", "dialect"))
        if any(name.since > version.minor_release for name in others):
            return True
        # The places in a small file cost less than to look at its ops twice.
        is_small = self._file.sections[-1].end <= _SMALL
        written = (use for use, *_ in self._walked[0]) if is_small else iter(self.summary[0])
        return any(use.is_new_for(version) for use in written)

    def needs(self, op: Operation, operands: Sequence[int]) -> tuple[Use, ...]:
        """Return the uses in one op that matter to the conversion, without places; ``operands`` are types."""
        values = [*operands]
        alone = replace(op, operands=tuple(range(len(values))))
        return self._found_in(Place(alone, 0, 0, None), self.op_names[op.name], values)[0]

    def may_need(self, head: Head) -> bool:
        """Whether ops with a head may have uses that matter, judging by the tables."""
        return self.op_names[head.name].look or self._young

    def _found_in(self, place: Place, facts: OpFacts, values: list[int]) -> Found:
        op = place.op
        if self._is_about_operands(facts):
            operands = tuple([values[index] for index in op.operands])
            key: tuple[object, ...] = (op.name, op.properties, op.attributes, op.results, operands, len(op.regions))
        else:
            key = (op.name, op.properties, op.attributes)
        found = self._found.get(key)
        if found is None:
            types = tuple([values[index] for index in op.operands])
            found = self._found[key] = self._ops.of_op(place, facts, types)
        return found

    def _is_about_operands(self, facts: OpFacts) -> bool:
        """Whether the uses of an op depend on the types of its operands, and not on its head alone."""
        return self._young_types or facts.about_operands

    @cached_property
    def _walked(self) -> tuple[_Counts, _Counts]:
        if not self.names and not any(facts.look for facts in self.op_names):
            return self._counts
        self._ranges = any(name.kind == "encoding" for name in self.names)
        self._everywhere = bool(self.names)
        visit(self._file.program, self._operation, self._is_walked, arguments=self._arguments)
        return self._counts

    def _placed(self, counts: _Counts, wanted: Callable[[Use], bool]) -> Iterator[Use]:
        for (use, name, function, source), found in counts.items():
            if not wanted(use):
                continue
            by_call = False
            if source is None and function is not None:
                # A use without a source location has that of a call instead.
                source = self._places.call_of(function)
                by_call = source is not None
            yield replace(
                use,
                op=name,
                function=function,
                location=source,
                path=found.path,
                count=found.count,
                by_call=by_call,
            )

    def written(self, wanted: Callable[[Use], bool]) -> list[Use]:
        """Return uses that the conversion to older versions refuses or overlooks, in program order."""
        return list(self._placed(self._walked[0], wanted))

    def read(self, wanted: Callable[[Use], bool]) -> list[Use]:
        """Return uses that a reader of the bytes must support, in program order."""
        counts = self._walked[1]
        seen = {use.what for use, *_ in counts}
        missing = sorted(
            (each for each in self.names if each.name not in seen), key=lambda each: (each.since, each.name)
        )
        unplaced = (use_of(name, "warning", self._oldest) for name in missing)
        return [*self._placed(counts, wanted), *filter(wanted, unplaced)]

    @cached_property
    def withdrawn(self) -> tuple[Withdrawn, ...]:
        """What newer readers no longer accept."""
        versions = [facts.version for facts in self.op_names]
        lost: list[tuple[FindingKind, str, Version | None]] = [
            ("op", each.name, each.max) for each in versions if each is not None and each.forgotten
        ]
        for spelling in self._specs.types:
            # A type in a signature alone does no harm: only ops no longer accept it.
            if spelling.last_read is not None and self._introductions.is_type_of_results(spelling.name):
                lost.append(("type", spelling.name, spelling.last_read))
        found = [Withdrawn("vhlo", kind, name, last, "removed it") for kind, name, last in lost if last is not None]
        return (*found, *self._introductions.old_layouts())

    @cached_property
    def has_deadly_integers(self) -> bool:
        """Whether it contains integer attributes of two bits, which crash every reader (``LLVM ERROR``)."""
        return self._introductions.has_integers_of(("i2_v1", "ui2_v1"))

    def _could_matter(self, facts: OpFacts) -> bool:
        """Whether an op may be excluded from any older version of VHLO, judging by the tables."""
        version = facts.version
        if not facts.look or facts.op is None or version is None or version.min > self._oldest:
            return True
        for constraint in facts.op.constraints:
            if version.number in constraint.versions:
                # A constraint on a type that the tables do not have cannot be broken.
                spelling = self._specs.kinds["type"].get(constraint.kind or "")
                is_young = spelling is not None and spelling.min is not None and spelling.min > self._oldest
                if not is_young or constraint.kind in self._young_names:
                    return True
        return False

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
                uses = tuple(use_of(name, "warning", self._oldest) for name in sorted(names))
                self._note((uses, uses), around, self.op_names[around.op.name] if around else None, count)

    def _located(self, location: int) -> Found:
        found = self._by_location.get(location)
        if found is None:
            names = self._introductions.of("attribute", location).unchecked
            uses = tuple(use_of(name, "warning", self._oldest) for name in sorted(names))
            found = self._by_location[location] = uses, uses
        return found

    def _note(self, found: Found, place: Place | None, facts: OpFacts | None, count: int = 1) -> None:
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
