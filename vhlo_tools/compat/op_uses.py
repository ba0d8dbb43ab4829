"""Uses of newly introduced features in one op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vhlo_tools.bytecode import File, Place, attributes_of
from vhlo_tools.compat.introductions import Introductions, Name, Needs
from vhlo_tools.compat.op_facts import OpFacts
from vhlo_tools.compat.structures import Structures
from vhlo_tools.compat.uses import Use, use_of
from vhlo_tools.dialect import OpVersion, blockers, floor_of, known_feature, known_specification, minimum_version
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.findings import Level
from vhlo_tools.version import Version

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
