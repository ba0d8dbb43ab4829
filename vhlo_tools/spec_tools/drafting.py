"""Drafts of entries that a source has and a specification lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

from vhlo_tools.findings import FindingKind
from vhlo_tools.records import dataclass
from vhlo_tools.spec import OpVersion, Slot, Specification
from vhlo_tools.spec_tools.new_version import (
    NOTHING,
    bits_of,
    check_editable,
    check_edits,
    feature_entry,
    op_entry,
    op_version_entry,
    version_entry,
)
from vhlo_tools.spec_tools.rules import file_of
from vhlo_tools.spec_tools.survey import Comparison, Difference, Survey, number_text
from vhlo_tools.spec_tools.toml_editing import entry_text, value_text
from vhlo_tools.spec_tools.version_changes import Drafts, NewDefault, Plan, Remaining, default_of_text, stem
from vhlo_tools.version import Version

# Drafts of features: one for all that a version brought and one for all that it newly allows, for a person to name

_FILE: Final = "vhlo/features.toml"


@dataclass(slots=True)
class _Draft:
    id: str
    kind: FindingKind
    ops: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)


class FeatureDrafts:
    """One feature per version: a version mostly brings one thing, such as an op with its types.

    A person divides the feature where that is wrong.
    """

    def __init__(self, specs: Specification) -> None:
        self._taken = {feature.id for feature in specs.features}
        self._drafts: dict[tuple[Version, bool], _Draft] = {}

    def add(self, version: Version, kind: FindingKind, wanted: str, *, op: str = "", name: str = "") -> str:
        """Add something to the feature of ``version``, and return the id of the feature.

        Constraints have a feature of their own; ``wanted`` is the id if this is the first thing in the feature.
        """
        key = (version, kind == "constraint")
        if key not in self._drafts:
            wanted = stem(wanted).replace("-", "_")
            identifier = wanted if wanted not in self._taken else f"{wanted}_{version.major}_{version.minor}"
            self._taken.add(identifier)
            self._drafts[key] = _Draft(identifier, kind)
        draft = self._drafts[key]
        if op:
            draft.ops[op] = None
            # A consumer meets the op first, whatever types and attributes came with it.
            draft.kind = "op" if kind == "op" else draft.kind
        if name:
            draft.names[name] = None
        return draft.id

    def write(self, drafts: Drafts, notes: dict[Version, str]) -> None:
        """Each feature gets a task: to name it and to describe its remedy."""
        document = drafts.document(_FILE)
        for (version, _), draft in sorted(self._drafts.items(), key=lambda item: item[0]):
            title = notes.get(version, "").rstrip(".") or draft.id
            remedy = f"choose {version} or later"
            document.append(feature_entry(draft.id, title, draft.kind, version, draft.ops, draft.names, remedy))
            what = f"name the feature of {version}, and describe how to do without it"
            drafts.leave(_FILE, "feature", draft.id, "id", what)


# Drafts of ops: their versions, the steps between these, the defaults of steps, and constraints

#: Where new ops go until a person finds their family.
_NEW: Final = "vhlo/ops/imported.toml"
_HEAD: Final = "# Ops that were imported: each belongs in the file of its family.\n"
_DEFAULTS: Final = "vhlo/defaults.toml"
_GUESS: Final = NewDefault("guess", '#vhlo.string_v1<"">', '{ attribute = "string_v1", value = "" }', is_guess=True)

_Done = set[tuple[str, str, str | None]]


class OpDrafts:
    def __init__(self, drafts: Drafts, specs: Specification, survey: Survey, features: FeatureDrafts) -> None:
        self._drafts = drafts
        self._specs = specs
        self._survey = survey
        self._features = features
        self._versions = {op.name: list(op.versions) for op in specs.ops}
        # What is known of each default: its text.
        self._defaults = {each.id: each.text for each in specs.defaults}
        #: The op versions that were current and ended.
        self.ended: set[str] = set()

    def _file(self, op: str) -> str:
        known = self._specs.op(op)
        return file_of(known) if known is not None else _NEW

    # Versions and steps

    def draft_versions(self, new: Mapping[str, Mapping[str, Any]]) -> _Done:
        """Add op versions, each the next one of its op, and return those added."""
        done: _Done = set()
        ordered = sorted(new, key=lambda name: (name.rpartition("_v")[0], int(name.rpartition("_v")[2])))
        for name in ordered:
            op, _, number = name.rpartition("_v")
            known = self._versions.setdefault(op, [])
            facts = new[name]
            follows = int(number) == len(known) + 1 and not (known and known[-1].max is not None)
            if not follows or "attributes" not in facts:
                continue
            slots = {key: _slots(facts, key, known[-1:]) for key in ("operands", "results", "regions")}
            operands, results, regions = slots.values()
            attributes, begins = tuple(sorted(facts["attributes"])), Version(facts["min"])
            version = OpVersion(op, int(number), begins, None, operands, results, attributes, regions)
            if known:
                self._add_version(known[-1], version)
                done.add(("step", f"{op}.{len(known)}-{number}", None))
            else:
                self._drafts.document(_NEW, _HEAD).add_in_order("op", op, op_entry(version))
                self._drafts.leave(_NEW, "op", op, "name", f"move {op} into the file of its family")
                self._features.add(version.min, "op", op, op=op)
            # Like its predecessor, it has the same names of operands, results and regions.
            is_like = known and all(getattr(known[-1], key) == each for key, each in slots.items())
            if "operands" not in facts and not is_like:
                what = f"correct the names of the operands, results and regions of {name}"
                self._drafts.leave(self._file(op), "op.version", op, "operands", what)
            if facts.get("max") and f"{op}_v{int(number) + 1}" not in new:
                what = f"end {name} at {facts['max']}: no version of it follows"
                self._drafts.leave(self._file(op), "op.version", op, "min", what)
            known.append(version)
            done.add(("op", name, None))
        return done

    def _add_version(self, older: OpVersion, newer: OpVersion) -> None:
        step = entry_text("op.step", self._step(older, newer))
        end = self._survey.entries.get("op", {}).get(older.name, {}).get("max")
        if end is None:
            # Versions that were just added count.
            known = {each.version for each in self._specs.versions}
            known |= {Version(name) for name in self._drafts.document("versions.toml").entries("version")}
            end = str(max(each for each in known if each < newer.min))
        self._drafts.add_op_version(self._file(newer.op), newer.op, op_version_entry(newer), step, end)
        self.ended.add(older.name)

    def _step(self, older: OpVersion, newer: OpVersion) -> dict[str, Any]:
        name = f"{newer.op}.{older.number}-{newer.number}"
        facts = self._survey.entries.get("step", {}).get(name, {})
        gained = [each for each in newer.attributes if each not in older.attributes]
        lost = [each for each in older.attributes if each not in newer.attributes]
        implied = self._survey.implied.get(newer.name, {})
        tables = {
            "added": {
                each: self._default(facts.get("added", {}).get(each), each, name, implied.get(each)) for each in gained
            },
            "removed": {each: self._default(facts.get("removed", {}).get(each), each, name) for each in lost},
        }
        pairs = [*zip(older.operands, newer.operands, strict=False), *zip(older.results, newer.results, strict=False)]
        lists = {
            "single": [after.name for before, after in pairs if after.variadic and not before.variadic],
            "empty": [region.name for region in newer.regions[len(older.regions) :] if region.variadic],
        }
        step: dict[str, Any] = {"between": [older.number, newer.number]}
        if gained:
            wanted = f"{newer.op}_{gained[0]}"
            step["feature"] = self._features.add(newer.min, "attribute", wanted, op=newer.op)
        elif any(lists.values()):
            wanted = f"variadic_{newer.op}" if lists["single"] else f"{newer.op}_{lists['empty'][0]}"
            step["feature"] = self._features.add(newer.min, "op", wanted, op=newer.op)
        if not facts and newer.name not in self._survey.implied:
            what = f"check the step to {newer.name}: which values older versions imply, and what cannot be written"
            self._drafts.leave(self._file(newer.op), "op", newer.op, "name", what)
        return step | {key: value for key, value in (tables | lists).items() if value}

    def _default(self, identifier: str | None, attribute: str, step: str, text: str | None = None) -> str:
        """Return the id of a default, which is added if there is none with this id, or with this ``text``."""
        if identifier is None:
            default = self._of_text(attribute, step, text)
        elif (value := self._survey.defaults.get(identifier)) is not None:
            default = NewDefault(identifier, *value)
        else:
            default = replace(_GUESS, id=identifier)
        if default.id not in self._defaults:
            self._defaults[default.id] = default.text
            self._drafts.document(_DEFAULTS).add_in_order("default", default.id, default.entry())
            if default.is_guess:
                forms = "the value in both forms" if default.text == _GUESS.text else "the value"
                what = f"correct {forms} ({self._survey.place('step', step)}): this one is a guess"
                self._drafts.leave(_DEFAULTS, "default", default.id, "text", what)
        return default.id

    def _of_text(self, attribute: str, step: str, text: str | None) -> NewDefault:
        """Return the default that the library prints as ``text``: a known one, or a new one with an id of its own."""
        default = default_of_text(attribute, text or _GUESS.text)
        known = next((each for each, other in self._defaults.items() if other is not None and other == text), None)
        if known is not None:
            return replace(default, id=known)
        if default.id in self._defaults and self._defaults[default.id] != text:
            return replace(default, id=f"{default.id}_of_{step.partition('.')[0].replace('-', '_')}")
        return default

    # Constraints

    def draft_constraints(self, new: Mapping[str, Mapping[str, Any]]) -> _Done:
        """Add constraints whose condition was read, and return those added."""
        done: _Done = set()
        # Names of constraints, ``custom_call_v1 before 1.3.0``, by the op and the version.
        grouped: dict[tuple[str, Version], list[str]] = {}
        for name in new:
            op, _, before = name.partition(" before ")
            grouped.setdefault((op.rpartition("_v")[0], Version(before)), []).append(name)
        for (op, since), names in grouped.items():
            read = {name: self._survey.requirements.get(name, ()) for name in names}
            if not all(requirements and self._can_have(name, requirements) for name, requirements in read.items()):
                continue
            numbers: dict[str, list[int]] = {}
            entries: dict[str, Mapping[str, Any]] = {}
            for name, requirements in read.items():
                for requirement in requirements:
                    text = repr(sorted(requirement.items()))
                    entries[text] = requirement
                    numbers.setdefault(text, []).append(int(name.partition(" ")[0].rpartition("_v")[2]))
            feature = self._features.add(since, "constraint", f"{op}_since_{since.major}_{since.minor}", op=op)
            document = self._drafts.document(self._file(op))
            for text, requirement in entries.items():
                entry = {"feature": feature, "since": str(since), "versions": sorted(numbers[text]), **requirement}
                document.insert(document.sections("op", op)[-1].end, f"\n{entry_text('op.constraint', entry)}")
            done |= {("constraint", name, None) for name in names}
        return done

    def _can_have(self, name: str, requirements: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the op version of a constraint is there, with all that the constraint names."""
        op, _, number = name.partition(" ")[0].rpartition("_v")
        version = next((each for each in self._versions.get(op, ()) if each.number == int(number)), None)
        if version is None:
            return False
        operands = {slot.name for slot in version.operands}
        return all(
            operands.issuperset(each.get("operands", ()))
            and {*version.attributes}.issuperset(each.get("attributes", ()))
            for each in requirements
        )


def _slots(facts: Mapping[str, Any], key: str, older: Sequence[OpVersion]) -> tuple[Slot, ...]:
    if key in facts:
        return tuple(map(Slot.parse, facts[key]))
    # Only how many there are is known, "2" or "1 or more".
    one, number = key.removesuffix("s"), str(facts.get(f"number of {key}", "0"))
    for version in older:
        slots: tuple[Slot, ...] = getattr(version, key)
        if number_text(slots) == number:
            return slots
    fewest = int(number.partition(" ")[0])
    fixed = [Slot(f"{one}{index}" if fewest > 1 else one) for index in range(1, fewest + 1)]
    return (*fixed, *([Slot(key, variadic=True)] if number.endswith("more") else []))


# Drafts of entries that a source has and a specification lacks: edits of its files, and remaining manual work
#
# Only what is newer than the specification is drafted: nothing released may change, and an entry that a released
# version should have had is a mistake that a person has to look at. Everything that is not drafted, or that is drafted
# and has to be looked at, is a task with its place in the source.

_FILES: Final = {
    "version": "versions.toml",
    "type": "vhlo/types.toml",
    "attribute": "vhlo/attributes.toml",
    "enum": "vhlo/enums.toml",
    "case": "vhlo/enums.toml",
}


def draft(specs: Specification, survey: Survey, comparison: Comparison) -> Plan:
    check_editable(specs)
    drafter = _Drafter(specs, survey, comparison)
    drafter.draft_versions()
    drafter.draft_kinds()
    drafter.draft_enums()
    drafter.draft_ops()
    return drafter.finish()


class _Drafter(Drafts):
    def __init__(self, specs: Specification, survey: Survey, comparison: Comparison) -> None:
        super().__init__(Path(str(specs.folder)))
        self.specs = specs
        self.survey = survey
        self.comparison = comparison
        self.features = FeatureDrafts(specs)
        self.done: set[tuple[str, str, str | None]] = set()
        #: The versions that change the version of MLIR bytecode.
        self.moved: set[str] = set()
        self.missing = {(each.kind, each.name): each for each in comparison.differences if self._is_new(each)}

    def _is_new(self, difference: Difference) -> bool:
        if difference.action != "missing":
            return False
        begins = difference.name if difference.kind == "version" else difference.min
        if begins is None:
            # A case, of which only C++ may say when it came: it came with the versions that are missing here.
            return difference.kind == "case" and self.survey.version > self.specs.newest
        return Version(begins) > self.specs.newest

    def new(self, kind: str) -> dict[str, Mapping[str, Any]]:
        return {name: each.there for (found, name), each in self.missing.items() if found == kind}

    # Versions

    def draft_versions(self) -> None:
        """Add every version that something is new in, and those between."""
        newest, entries = self.specs.newest, self.new("version")
        begins = {Version(each.min) for each in self.missing.values() if each.min is not None}
        wanted = {*map(Version, entries), *begins, *([self.survey.version] if self.survey.version > newest else [])}
        document, before, day = self.document("versions.toml"), newest, self.specs.versions[-1].date
        bytecode = self.specs.versions[-1].bytecode
        for version in sorted(wanted):
            for minor in range(before.minor + 1, version.minor) if before.major == version.major else ():
                between = Version(f"{version.major}.{minor}.0")
                document.append(version_entry(between, day, bytecode, NOTHING))
                what = "correct the date: the source does not list this version"
                self.leave("versions.toml", "version", str(between), "date", what)
            number = entries.get(str(version), {}).get("bytecode", bytecode)
            known = self.survey.dates.get(version)
            day = max(known[0], day) if known else max(date.today(), day)
            text = self.survey.notes.get(version)
            entry = {
                "version": str(version),
                "date": day,
                "dated_by": known[1] if known else "commit",
                "bytecode": number,
                "brought": text or NOTHING,
            }
            document.append(entry_text("version", entry))
            if known is None:
                self.leave("versions.toml", "version", str(version), "date", "correct the date, and its source")
            if text is None:
                self.leave("versions.toml", "version", str(version), "brought", "describe what the version brought")
            if number != bytecode:
                self.moved.add(str(version))
                what = f"check that MLIR bytecode {number} is read and written (vhlo_tools/bytecode)"
                self.leave("versions.toml", "version", str(version), "bytecode", what)
            self.done.add(("version", str(version), None))
            before, bytecode = version, number

    # Types, attributes and enums

    def draft_kinds(self) -> None:
        for kind in ("type", "attribute"):
            spellings = self.specs.types if kind == "type" else self.specs.attributes
            free = max((each.code for spelling in spellings for each in spelling.encodings), default=-1) + 1
            new = self.new(kind)
            known = {name: self.survey.encodings.get(name, ()) for name in new}
            codes = {name: min((code for code, _ in known[name]), default=free) for name in new}
            for name in sorted(new, key=lambda each: (codes[each], each)):
                encodings: list[dict[str, Any]] = [
                    {"code": code, **({"fields": list(fields)} if fields else {})} for code, fields in known[name]
                ]
                if not encodings:
                    encodings = [{"code": free}]
                    self.leave(_FILES[kind], kind, name, "name", f"find the code and the fields of {name}")
                elif "encodings" not in new[name]:
                    self.leave(_FILES[kind], kind, name, "name", f"find the fields behind the code of {name}")
                free = max(free, *(each["code"] + 1 for each in encodings))
                self._add_kind(kind, name, new[name], encodings)

    def _add_kind(self, kind: str, name: str, facts: Mapping[str, Any], encodings: list[dict[str, Any]]) -> None:
        is_number = kind == "type" and "encodings" in facts and not any("fields" in each for each in encodings)
        bits = bits_of(name) if is_number else None
        life = {key: facts[key] for key in ("min", "max") if facts.get(key)}
        entry = {"name": name, **life, **({"bits": bits} if bits else {}), "encoding": encodings}
        self.document(_FILES[kind]).append(entry_text(kind, entry))
        if is_number and bits is None:
            self.leave(_FILES[kind], kind, name, "name", f"add bits to {name} if it is a number")
        self.features.add(Version(facts["min"]), "type" if kind == "type" else "attribute", name, name=name)
        self.done.add((kind, name, None))

    def draft_enums(self) -> None:
        """Add enums, and cases to known ones."""
        document, cases = self.document(_FILES["enum"]), self.new("case")
        for name, facts in self.new("enum").items():
            own = {case.partition(".")[2]: each for case, each in cases.items() if case.partition(".")[0] == name}
            items = [{"name": case, "value": each["value"]} for case, each in own.items()]
            life = {key: facts[key] for key in ("min", "max") if facts.get(key)}
            entry = {"name": name, **life, "cases": sorted(items, key=lambda each: int(each["value"]))}
            document.add_in_order("enum", name, entry_text("enum", entry))
            self.done |= {("enum", name, None), *(("case", f"{name}.{case}", None) for case in own)}
        for full, facts in cases.items():
            enum, _, case = full.partition(".")
            if ("case", full, None) in self.done or self.specs.enum(enum) is None:
                continue
            begins = Version(facts["min"]) if "min" in facts else self.survey.version
            item = {"name": case, "value": facts["value"], "min": str(begins)}
            document.extend(document.section("enum", enum), "cases", [value_text(item)])
            if "min" not in facts:
                what = f"find the first version of {case}, which is not said at {self.survey.place('case', full)}"
                self.leave(_FILES["case"], "enum", enum, f'"{case}"', what)
            self.features.add(begins, "attribute", f"{stem(enum)}_{case.lower()}", name=enum)
            self.done.add(("case", full, None))

    # Ops

    def draft_ops(self) -> None:
        ops = OpDrafts(self, self.specs, self.survey, self.features)
        self.done |= ops.draft_versions(self.new("op"))
        self.done |= ops.draft_constraints(self.new("constraint"))
        # An older version ends where a newer one begins, which was said with the newer one.
        for each in self.comparison.differences:
            if each.kind == "op" and each.key == "max" and each.here is None and each.name in ops.ended:
                self.done.add((each.kind, each.name, each.key))

    # What is left

    def finish(self) -> Plan:
        """The result of the edits is linted."""
        self._leave_versions_without_entries()
        self.features.write(self, dict(self.survey.notes))
        edits = self.edits
        check_edits(self.folder, edits)
        for difference in self.comparison.differences:
            if (difference.kind, difference.name, difference.key) not in self.done:
                self.left.append(partial(self._by_hand, difference))
        for unread in self.survey.unread:
            self.left.append(partial(Remaining, self.folder / "versions.toml", 1, f"look up: {unread}"))
        return self.plan(self.survey.version, edits)

    def _leave_versions_without_entries(self) -> None:
        """Leave a task for each version whose notes name a change, where no entry of it was found."""
        brought = {each.min for key, each in self.missing.items() if (*key, None) in self.done}
        for name in (name for kind, name, _ in sorted(self.done, key=str) if kind == "version"):
            if Version(name) in self.survey.notes and name not in brought | self.moved:
                what = f"find what changed in {name}: no entry was found that it brought"
                self.leave("versions.toml", "version", name, "brought", what)

    def _by_hand(self, difference: Difference) -> Remaining:
        what = f"decide: {difference} ({difference.place})"
        op = self.specs.op(difference.name.partition(" ")[0].partition(".")[0].rpartition("_v")[0])
        op = op or self.specs.op(difference.name.partition(".")[0])
        file = _FILES.get(difference.kind) or (file_of(op) if op else "vhlo/ops")
        path, line = self.folder / file, 1
        entry = difference.name.partition(".")[0] if difference.kind == "case" else difference.name
        header = "enum" if difference.kind == "case" else difference.kind
        if op is not None and difference.kind in ("op", "step", "constraint"):
            header, entry = "op", op.name
        document = self.document(file) if path.is_file() else None
        if document is not None and entry in document.entries(header):
            line = document.line_of(document.section(header, entry))
        return Remaining(path, line, what)
