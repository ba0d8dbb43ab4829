"""Drafts of entries that a source has and a specification lacks: edits of its files, and remaining manual work.

Only what is newer than the specification is drafted: nothing released may change, and an entry that a released version
should have had is a mistake that a person has to look at. Everything that is not drafted, or that is drafted and has to
be looked at, is a task with its place in the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

from vhlo_tools.dialect.rules import file_of
from vhlo_tools.dialect.scaffold import additions
from vhlo_tools.dialect.scaffold.changes import stem
from vhlo_tools.dialect.scaffold.drafts import Drafts
from vhlo_tools.dialect.scaffold.plan import Plan, Remaining
from vhlo_tools.dialect.scaffold.version_checks import check_editable, check_edits
from vhlo_tools.dialect.specification import Specification
from vhlo_tools.dialect.survey.comparison import Comparison, Difference
from vhlo_tools.dialect.survey.facts import Survey
from vhlo_tools.dialect.survey.feature_drafts import FeatureDrafts
from vhlo_tools.dialect.survey.op_drafts import OpDrafts
from vhlo_tools.dialect.toml_text import entry_text, value_text
from vhlo_tools.version import Version

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
                document.append(additions.version_entry(between, day, bytecode, additions.NOTHING))
                self.leave(
                    "versions.toml",
                    "version",
                    str(between),
                    "date",
                    "correct the date: the source does not list this version",
                )
            number = entries.get(str(version), {}).get("bytecode", bytecode)
            known = self.survey.dates.get(version)
            day = max(known[0], day) if known else max(date.today(), day)
            text = self.survey.notes.get(version)
            entry = {
                "version": str(version),
                "date": day,
                "dated_by": known[1] if known else "commit",
                "bytecode": number,
                "brought": text or additions.NOTHING,
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
            for name in sorted(new, key=lambda name: (self._codes(name, free), name)):
                encodings: list[dict[str, Any]] = [
                    {"code": code, **({"fields": list(fields)} if fields else {})}
                    for code, fields in self.survey.encodings.get(name, ())
                ]
                if not encodings:
                    encodings = [{"code": free}]
                    self.leave(_FILES[kind], kind, name, "name", f"find the code and the fields of {name}")
                elif "encodings" not in new[name]:
                    self.leave(_FILES[kind], kind, name, "name", f"find the fields behind the code of {name}")
                free = max(free, *(each["code"] + 1 for each in encodings))
                self._add_kind(kind, name, new[name], encodings)

    def _codes(self, name: str, free: int) -> int:
        return min((code for code, _ in self.survey.encodings.get(name, ())), default=free)

    def _add_kind(self, kind: str, name: str, facts: Mapping[str, Any], encodings: list[dict[str, Any]]) -> None:
        is_number = kind == "type" and "encodings" in facts and not any("fields" in each for each in encodings)
        bits = additions.bits_of(name) if is_number else None
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
        left = [remaining() for remaining in self.left]
        order = {edit.path: place for place, edit in enumerate(edits)}
        left.sort(key=lambda each: (order.get(each.path, len(order)), str(each.path), each.line))
        return Plan(self.survey.version, tuple(edits), tuple(left))

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
