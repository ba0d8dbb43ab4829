"""Drafts of ops: their versions, the steps between these, the defaults of steps, and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.dialect.ops import OpVersion, Slot
from vhlo_tools.dialect.rules import file_of
from vhlo_tools.dialect.scaffold import additions
from vhlo_tools.dialect.scaffold.drafts import Drafts
from vhlo_tools.dialect.scaffold.missing_defaults import NewDefault, default_of_text
from vhlo_tools.dialect.specification import Specification
from vhlo_tools.dialect.survey.facts import Survey, number_text
from vhlo_tools.dialect.survey.feature_drafts import FeatureDrafts
from vhlo_tools.dialect.toml_text import entry_text
from vhlo_tools.version import Version

#: Where new ops go until a person finds their family.
_NEW: Final = "vhlo/ops/imported.toml"
_HEAD: Final = "# Ops that were imported: each belongs into the file of its family.\n"
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
            version = OpVersion(
                op,
                int(number),
                Version(facts["min"]),
                None,
                slots["operands"],
                slots["results"],
                tuple(sorted(facts["attributes"])),
                slots["regions"],
            )
            if known:
                self._add_version(known[-1], version)
                done.add(("step", f"{op}.{len(known)}-{number}", None))
            else:
                self._add_op(version)
            if "operands" not in facts and not (known and _is_like(version, known[-1])):
                what = f"correct the names of the operands, results and regions of {name}"
                self._drafts.leave(self._file(op), "op.version", op, "operands", what)
            if facts.get("max") and f"{op}_v{int(number) + 1}" not in new:
                what = f"end {name} at {facts['max']}: no version of it follows"
                self._drafts.leave(self._file(op), "op.version", op, "min", what)
            known.append(version)
            done.add(("op", name, None))
        return done

    def _add_op(self, version: OpVersion) -> None:
        document = self._drafts.document(_NEW, _HEAD)
        entry = f'[[op]]\nname = "{version.op}"\n{additions.op_version_entry(version)}'
        document.add_in_order("op", version.op, entry)
        self._drafts.leave(_NEW, "op", version.op, "name", f"move {version.op} into the file of its family")
        self._features.add(version.min, "op", version.op, op=version.op)

    def _add_version(self, older: OpVersion, newer: OpVersion) -> None:
        file, op = self._file(newer.op), newer.op
        document = self._drafts.document(file)
        last = document.section("op.version", op)
        steps = [each for each in document.sections("op", op) if each.header.startswith("op.step")]
        step = self._step(older, newer)
        # From the bottom up, so that the positions above remain valid.
        document.insert(max(steps or [last], key=lambda each: each.end).end, f"\n{entry_text('op.step', step)}")
        document.insert(last.end, additions.op_version_entry(newer))
        end = self._survey.entries.get("op", {}).get(older.name, {}).get("max") or str(self._before(newer.min))
        document.insert(document.line_of(last, "min"), f'max = "{end}"\n')
        self.ended.add(older.name)

    def _before(self, version: Version) -> Version:
        """Versions that were just added count."""
        known = {each.version for each in self._specs.versions}
        known |= {Version(name) for name in self._drafts.document("versions.toml").entries("version")}
        return max(each for each in known if each < version)

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
        pairs = [
            *zip(older.operands, newer.operands, strict=False),
            *zip(older.results, newer.results, strict=False),
        ]
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
        for (op, since), names in _by_op(new).items():
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


def _is_like(version: OpVersion, older: OpVersion) -> bool:
    """A like op version has the same names of operands, results and regions."""
    return all(getattr(version, key) == getattr(older, key) for key in ("operands", "results", "regions"))


def _slots(facts: Mapping[str, Any], key: str, older: Sequence[OpVersion]) -> tuple[Slot, ...]:
    if key in facts:
        return tuple(Slot(name.removesuffix("*"), name.endswith("*")) for name in facts[key])
    # Only how many there are is known, "2" or "1 or more".
    one, number = key.removesuffix("s"), str(facts.get(f"number of {key}", "0"))
    for version in older:
        slots: tuple[Slot, ...] = getattr(version, key)
        if number_text(slots) == number:
            return slots
    fewest = int(number.partition(" ")[0])
    fixed = [Slot(f"{one}{index}" if fewest > 1 else one) for index in range(1, fewest + 1)]
    return (*fixed, *([Slot(key, variadic=True)] if number.endswith("more") else []))


def _by_op(names: Mapping[str, object]) -> dict[tuple[str, Version], Sequence[str]]:
    """Group names of constraints, ``custom_call_v1 before 1.3.0``, by the op and the version."""
    found: dict[tuple[str, Version], list[str]] = {}
    for name in names:
        op, _, since = name.partition(" before ")
        found.setdefault((op.rpartition("_v")[0], Version(since)), []).append(name)
    return dict(found)
