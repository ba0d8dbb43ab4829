"""``vhlo spec new-version``: planner of a new version and its changes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import OpVersion, load_specification
from vhlo_tools.spec_tools.description import nearest
from vhlo_tools.spec_tools.generated_tests import Generator
from vhlo_tools.spec_tools.linting import RELEASED, lint, read_released
from vhlo_tools.spec_tools.rules import file_of, follows
from vhlo_tools.spec_tools.toml_editing import Document, array, entry_text, quoted
from vhlo_tools.spec_tools.version_changes import (
    Drafts,
    NewAttribute,
    NewCase,
    NewKind,
    NewOp,
    Plan,
    Remaining,
    default_of,
    stem,
)

if TYPE_CHECKING:
    from vhlo_tools.findings import FindingKind
    from vhlo_tools.spec import Op, Specification
    from vhlo_tools.spec_tools.toml_editing import Edit
    from vhlo_tools.spec_tools.version_changes import NewDefault, NewEntry
    from vhlo_tools.version import Version

# Entries that a new version adds, as TOML, and the texts that describe them

#: The description of a version without a change.
NOTHING = "Nothing in the dialect."


@dataclass(frozen=True, slots=True)
class Subject:
    feature: str  # the id of a feature for this change alone
    kind: FindingKind
    title: str
    remedy: str  # how to do without it, as far as its kind determines
    brought: str  # for the description of the version
    op: str | None = None
    name: str | None = None  # the type, attribute or enum that it concerns, if any


def feature_entry(
    identifier: str,
    title: str,
    kind: FindingKind,
    version: Version,
    ops: Iterable[str],
    names: Iterable[str],
    remedy: str,
) -> str:
    named = {"ops": list(dict.fromkeys(ops)), "names": list(dict.fromkeys(names))}
    lines = "".join(f"{key} = {array(values)}\n" for key, values in named.items() if values)
    return (
        f'[[feature]]\nid = "{identifier}"\ntitle = {quoted(title)}\nkind = "{kind}"\n'
        f'introduced = "{version}"\n{lines}remedy = {quoted(remedy)}\n'
    )


def subject_of(change: NewEntry) -> Subject:
    match change:
        case NewOp(name=name):
            words = (f"the op {name}", f"write {name} in older ops", f"the op `{name}`")
            return Subject(_id(name), "op", *words, op=name)
        case NewAttribute(op=op, name=name):
            words = (f"{name} of {op}", f"leave {name} out", f"`{name}` on `{op}`")
            return Subject(_id(f"{op}_{name}"), "attribute", *words, op=op)
        case NewKind(kind=kind, name=name):
            short = stem(name)
            remedies = {
                "type": "convert to an older type where the program exchanges these values",
                "attribute": f"do not use {short}",
            }
            words = (f"the {kind} {short}", remedies[kind], f"the {kind} `{short}`")
            return Subject(_id(short), kind, *words, name=name)
        case NewCase(enum=enum, name=name):
            short = stem(enum)
            words = (f"{name} as {short}", f"choose another {short}", f"the case `{name}` of `{short}`")
            return Subject(_id(f"{short}_{name.lower()}"), "attribute", *words, name=enum)


def _id(feature: str) -> str:
    return feature.replace("-", "_")


def version_entry(version: Version, day: date, bytecode: int, brought: str) -> str:
    return (
        f'[[version]]\nversion = "{version}"\ndate = {day}\ndated_by = "commit"\n'
        f"bytecode = {bytecode}\nbrought = {quoted(brought)}\n"
    )


def op_entry(first: OpVersion) -> str:
    return f'[[op]]\nname = "{first.op}"\n{op_version_entry(first)}'


def op_version_entry(version: OpVersion) -> str:
    """The entry is to be inserted after another table."""
    regions = f"regions = {array(version.regions)}\n" if version.regions else ""
    return (
        f'\n[[op.version]]\nnumber = {version.number}\nmin = "{version.min}"\n'
        f"operands = {array(version.operands)}\nresults = {array(version.results)}\n"
        f"attributes = {array(version.attributes)}\n{regions}"
    )


def bits_of(name: str) -> int | None:
    """Return the width that the name of a type says, as in ``f8E4M3_v1``."""
    width = re.match(r"(?:b?f|u?i)(\d+)", name)
    return int(width[1]) if width else None


def case_item(case: NewCase, value: int, version: Version | None = None) -> str:
    since = f', min = "{version}"' if version else ""
    return f'{{ name = "{case.name}", value = {value}{since} }}'


def sentence(brought: Sequence[str], before: str | None = None) -> str:
    """Describe what a version introduced, continuing the sentence ``before``."""
    parts = [*([before.rstrip(".")] if before and before != NOTHING else []), *brought]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else before or NOTHING


# Checks before and after a version is added


def check_version(specs: Specification, version: Version, folder: Path) -> bool:
    """Return whether ``version`` exists and is unreleased (true), or is the next version to add (false)."""
    _check_folder(folder)
    released = read_released(specs.folder)
    is_begun = version == specs.newest and released is not None and str(version) not in released.get("version", {})
    if not is_begun and version in {entry.version for entry in specs.versions}:
        state = "released" if released else f"perhaps released, because there is no {RELEASED}"
        raise InvalidSpecificationError(f"{version} already exists and is {state}; the newest is {specs.newest}")
    newest = specs.newest
    if not is_begun and (version.patch or not follows(version, newest.minor_release)):
        raise InvalidSpecificationError(
            f"{version} cannot be the next version: expected {newest.major}.{newest.minor + 1}.0 or "
            f"{newest.major + 1}.0.0"
        )
    _check_lint(specs)
    return is_begun


def check_editable(specs: Specification) -> None:
    _check_folder(Path(str(specs.folder)))
    _check_lint(specs)


def _check_folder(folder: Path) -> None:
    if not (folder / "versions.toml").is_file():
        raise InvalidSpecificationError(f"{folder} has no versions.toml to add a version to")
    if (folder.parent / "__init__.py").is_file():
        raise InvalidSpecificationError(f"{folder} belongs to an installed package: give --specs with a copy of it")


def _check_lint(specs: Specification) -> None:
    violations = lint(specs)
    if violations:
        raise InvalidSpecificationError(
            "\n".join(["the specification has violations; fix these first:", *map(str, violations)])
        )


def check_edits(folder: Path, edits: Sequence[Edit]) -> None:
    """Lint a copy of the folder with the edits applied."""
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "specs"
        shutil.copytree(folder, copy)
        for edit in edits:
            if edit.path.is_relative_to(folder):
                target = copy / edit.path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(edit.after, encoding="utf-8")
        violations = lint(load_specification(copy))
    if violations:
        raise InvalidSpecificationError("\n".join(["the change would violate the lint rules:", *map(str, violations)]))


# Planner of a new version and its changes: edits of files, and remaining manual work
#
# The result is linted in a copy before any file is changed.

_PROGRAMS = Path("tests", "programs", "features")


def plan_version(
    specs: Specification,
    version: Version,
    changes: Sequence[NewEntry] = (),
    *,
    feature: str | None = None,
    tests: Path | None = None,
    bytecode: int | None = None,
    brought: str | None = None,
    today: date | None = None,
) -> Plan:
    """Plan ``version``: the next one, or the newest one while it is unreleased, which then gets further changes.

    ``feature`` is one id for all changes (by default one each); ``brought`` is derived from the changes by default.
    """
    planner = _VersionPlanner(specs, version, feature, tests)
    planner.plan_version_itself(changes, bytecode, brought, today)
    for change in changes:
        match change:
            case NewOp():
                planner.plan_op(change)
            case NewKind():
                planner.plan_kind(change)
            case NewCase():
                planner.plan_case(change)
    attributes = [change for change in changes if isinstance(change, NewAttribute)]
    for op in dict.fromkeys(change.op for change in attributes):
        planner.plan_attributes(op, [change for change in attributes if change.op == op])
    return planner.finish()


class _VersionPlanner(Drafts):
    def __init__(self, specs: Specification, version: Version, feature: str | None, tests: Path | None) -> None:
        self.specs = specs
        self.version = version
        super().__init__(Path(str(specs.folder)))
        self.is_begun = check_version(specs, version, self.folder)
        before = specs.before(version)
        assert before is not None, "a version that comes next comes after another"
        self.before = before
        self.feature = feature
        self.generator = Generator(specs, tests, before, version)
        self.features: dict[str, list[Subject]] = {}
        self.defaults: dict[str, NewDefault] = {}
        self.new_ops: set[str] = set()
        self.tests: list[Edit] = []

    # The version

    def plan_version_itself(
        self, changes: Sequence[NewEntry], bytecode: int | None, brought: str | None, today: date | None
    ) -> None:
        document, name, last = self.document("versions.toml"), str(self.version), self.specs.versions[-1]
        said = [subject_of(change).brought for change in changes]
        if bytecode not in (None, last.bytecode):
            said.insert(0, f"MLIR bytecode moves from version {last.bytecode} to {bytecode}")
            # The data does not describe the MLIR bytecode itself.
            what = f"check that artifacts in MLIR bytecode {bytecode} are read and written (vhlo_tools/bytecode)"
            self.leave("versions.toml", "version", name, "bytecode", what)
        if self.is_begun:
            section = document.section("version", name)
            if bytecode is not None:
                document.replace(section, "bytecode", str(bytecode))
            text = brought or sentence(said, last.brought)
            document.replace(section, "brought", quoted(text))
        else:
            # The dates of versions must ascend; the clock may be slow.
            day = today or max(date.today(), last.date)
            number = last.bytecode if bytecode is None else bytecode
            document.append(version_entry(self.version, day, number, brought or sentence(said)))
        self.leave(
            "versions.toml", "version", name, "date", "correct the date of the version, and its source in dated_by"
        )
        if brought is None:
            self.leave("versions.toml", "version", name, "brought", "describe the changes of the version in a sentence")

    # Its changes

    def plan_op(self, op: NewOp) -> None:
        if self.specs.op(op.name) is not None:
            raise InvalidSpecificationError(
                f"the op {op.name} already exists; --attribute {op.name}.NAME=DEFAULT adds an attribute to it"
            )
        self.new_ops.add(op.name)
        file = f"vhlo/ops/{op.family}.toml"
        readme = "# Sources and the meaning of every key: README.md beside this file.\n"
        has_readme = (self.folder / "vhlo" / "ops" / "README.md").is_file()
        is_new = file not in self.documents and not (self.folder / file).is_file()
        document = self.document(file, f"# Ops of the family {op.family}.\n{readme if has_readme else ''}")
        first = OpVersion(op.name, 1, self.version, None, op.operands, op.results, op.attributes, op.regions)
        document.add_in_order("op", op.name, op_entry(first))
        if is_new:
            self.left.append(
                partial(Remaining, document.path, 1, "describe what the ops of this family have in common")
            )
        if op.is_sketch:
            what = f"correct operands and results of {op.name}, and add attributes and regions"
        else:
            what = f"check that operands, results, attributes and regions of {op.name} are as in VHLO"
        self.leave(file, "op.version", op.name, "operands", what)
        self.add_test(op, self.add_feature(op))

    def plan_kind(self, kind: NewKind) -> None:
        spellings = self.specs.types if kind.kind == "type" else self.specs.attributes
        taken = [each.name for each in spellings if stem(each.name) == stem(kind.name)]
        if taken:
            raise InvalidSpecificationError(
                f"the {kind.kind} {taken[0]} already exists: add another version of it by hand"
            )
        file, header = f"vhlo/{kind.kind}s.toml", kind.kind
        document = self.document(file)
        known = [encoding.code for each in spellings for encoding in each.encodings]
        known += [int(code) for code in re.findall(r"^\s*code\s*=\s*(\d+)", document.text, re.MULTILINE)]
        bits = bits_of(kind.name) if kind.kind == "type" and not kind.fields else None
        encoding = {"code": max(known, default=-1) + 1, **({"fields": list(kind.fields)} if kind.fields else {})}
        width = {"bits": bits} if bits else {}
        entry = {"name": kind.name, "min": str(self.version), **width, "encoding": [encoding]}
        document.append(entry_text(header, entry))
        what = f"check that this is the code of {kind.name} in the bytecode"
        self.leave(file, f"{header}.encoding", kind.name, "code", what)
        if bits:
            self.leave(file, header, kind.name, "bits", f"check that values of {kind.name} have the width in its name")
        elif not kind.fields:
            what = f"add the fields of {kind.name} if it has parameters"
            what += ", and bits if it is a number" if header == "type" else ""
            self.leave(file, header, kind.name, "name", what)
        self.add_test(kind, self.add_feature(kind))

    def plan_case(self, case: NewCase) -> None:
        file, document = "vhlo/enums.toml", self.document("vhlo/enums.toml")
        enum = self.specs.enum(case.enum)
        if enum is not None and enum.case(case.name) is not None:
            raise InvalidSpecificationError(f"{enum.name} already has a case {case.name}")
        if enum is None and case.enum not in document.entries("enum"):
            self.plan_kind(NewKind("attribute", case.enum, (f"value: enum {case.enum}",)))
            entry = f'[[enum]]\nname = "{case.enum}"\nmin = "{self.version}"\ncases = [\n  {case_item(case, 0)},\n]\n'
            document.add_in_order("enum", case.enum, entry)
        else:
            section = document.section("enum", case.enum)
            values = [int(value) for value in re.findall(r"value = (\d+)", document.text_of(section))]
            since = self.version if enum is not None and enum.min != self.version else None
            document.extend(section, "cases", [case_item(case, max(values, default=-1) + 1, since)])
        what = f"check that this is the number of {case.name} in the bytecode"
        self.leave(file, "enum", case.enum, f'"{case.name}"', what)
        is_new = enum is None or enum.min == self.version
        # A new enum is introduced together with its cases, as one feature.
        self.add_test(case, self._named[case.enum] if is_new else self.add_feature(case))

    def plan_attributes(self, name: str, changes: Sequence[NewAttribute]) -> None:
        """Add attributes to the op version of the new VHLO version, which is added if it does not exist."""
        op = self._op_that_can_change(name, changes)
        older = op.versions[-1]
        names = [change.name for change in changes]
        attributes = tuple(sorted((*older.attributes, *names)))
        added = {change.name: self._default(change) for change in changes}
        file, document = file_of(op), self.document(file_of(op))
        if older.min == self.version:
            feature, number = op.steps[-1].feature, older.number
            if self.feature not in (None, feature or self.feature):
                raise InvalidSpecificationError(f"{older.name} has the feature {feature}, and cannot have another")
            feature = feature or self._feature_of(changes[0])
            document.replace(document.section("op.version", name), "attributes", array(attributes))
            self._extend_step(document, name, feature, added)
            gained = sorted(set(attributes) - set(op.versions[-2].attributes))
        else:
            feature, number = self._feature_of(changes[0]), older.number + 1
            newer = replace(older, number=number, min=self.version, attributes=attributes)
            defaults = ", ".join(f"{key} = {quoted(default)}" for key, default in added.items())
            step = (
                f'[[op.step]]\nbetween = [{older.number}, {number}]\nfeature = "{feature}"\nadded = {{ {defaults} }}\n'
            )
            self.add_op_version(file, name, op_version_entry(newer), step, str(self.before))
            gained = names
        for change in changes:
            self.add_test(change, self.add_feature(change, feature), f"{name}_v{number}", added[change.name])
        what = f"check that {name}_v{number} differs from {name}_v{number - 1} only in {' and '.join(gained)}"
        self.leave(file, "op.version", name, "operands", what)

    def _op_that_can_change(self, name: str, changes: Sequence[NewAttribute]) -> Op:
        op = self.specs.op(name)
        if name in self.new_ops or (op is not None and op.versions[0].min == self.version):
            raise InvalidSpecificationError(
                f"{name} is new in {self.version}, so {changes[0].name} needs no default: add it with the op itself"
            )
        if op is None:
            raise InvalidSpecificationError(f"there is no op {name}{nearest(self.specs, name)}")
        older = op.versions[-1]
        if older.max is not None:
            raise InvalidSpecificationError(f"{older.name} ended with {older.max}: no version of it can follow")
        names = [change.name for change in changes]
        for attribute in names:
            if attribute in older.attributes or names.count(attribute) > 1:
                raise InvalidSpecificationError(f"{older.name} already has the attribute {attribute}")
        return op

    def _default(self, change: NewAttribute) -> str:
        default = default_of(self.specs, change.name, change.default)
        if isinstance(default, str):
            return default
        known = self.specs.default(default.id) or self.defaults.get(default.id, default)
        if known.text != default.text:
            raise InvalidSpecificationError(f"the default {default.id} already exists, with the value {known.text}")
        if default.id not in self.defaults:
            self.defaults[default.id] = default
            self.document("vhlo/defaults.toml").add_in_order("default", default.id, default.entry())
            guess = "correct the value in both forms: this one is a guess"
            what = guess if default.is_guess else "check that this is the value that older versions imply"
            self.leave("vhlo/defaults.toml", "default", default.id, "text", what)
        return default.id

    def _extend_step(self, document: Document, op: str, feature: str, added: dict[str, str]) -> None:
        table = [section for section in document.sections("op", op) if section.header == "op.step.added"]
        step = document.section("op.step", op)
        items = [f"{name} = {quoted(default)}" for name, default in added.items()]
        if table and table[-1].begin > step.begin:
            document.insert(table[-1].end, "".join(f"{item}\n" for item in items))
        elif document.has(step, "added"):
            document.extend(step, "added", items)
        else:
            document.add_key(step, "added", f"{{ {', '.join(items)} }}")
        if not document.has(step, "feature"):
            document.add_key(step, "feature", quoted(feature), before="added")

    # Features and tests of every change

    @property
    def _named(self) -> dict[str, str]:
        """The features of this version, by the types, attributes and enums that they name, as in findings."""
        began = [each for each in self.specs.features if each.introduced == self.version]
        planned = {each.name: id_ for id_, subjects in self.features.items() for each in subjects if each.name}
        return {name: each.id for each in began for name in each.names} | planned

    def _feature_of(self, change: NewEntry) -> str:
        subject = subject_of(change)
        return self.feature or self._named.get(subject.name or "") or subject.feature

    def add_feature(self, change: NewEntry, feature: str | None = None) -> str:
        feature = feature or self._feature_of(change)
        known = self.specs.feature(feature)
        if known is not None and known.introduced != self.version:
            raise InvalidSpecificationError(
                f"the feature {feature} already exists, of {known.introduced}: give another id with --feature"
            )
        self.features.setdefault(feature, []).append(subject_of(change))
        return feature

    def add_test(self, change: NewEntry, feature: str, version: str = "", default: str = "") -> None:
        edit = self.generator.test_of(change, feature, version, default)
        if edit is None:
            self.left.append(self._beside_features(feature, "write a test: no op of the specification can contain it"))
            return
        self.tests.append(edit)
        for number, line in enumerate(edit.after.splitlines(), 1):
            if line.lstrip().startswith("# Put "):
                what = f"put {line.partition('# Put ')[2].rstrip('.')}"
                self.left.append(partial(Remaining, edit.path, number, what))

    def _beside_features(self, feature: str, what: str) -> Callable[[], Remaining]:
        document = self.document("vhlo/features.toml")
        return lambda: Remaining(document.path, document.line_of(document.section("feature", feature), "id"), what)

    def _write_features(self) -> None:
        document = self.document("vhlo/features.toml")
        for feature, subjects in self.features.items():
            titles = " and ".join(subject.title for subject in subjects)
            ops = [subject.op for subject in subjects if subject.op]
            names = [subject.name for subject in subjects if subject.name]
            known = self.specs.feature(feature)
            if known is None:
                kinds = [subject.kind for subject in subjects]
                kind = "op" if "op" in kinds else kinds[0]
                remedy = subjects[0].remedy
                document.append(feature_entry(feature, titles, kind, self.version, ops, names, remedy))
            else:
                for key, values, held in (("ops", ops, known.ops), ("names", names, known.names)):
                    section = document.section("feature", feature)
                    new = [each for each in dict.fromkeys(values) if each not in held]
                    if new and document.has(section, key):
                        document.extend(section, key, [quoted(value) for value in new])
                    elif new:
                        document.add_key(section, key, array(new), before="remedy")
            if known is not None or len(subjects) > 1:
                self.leave("vhlo/features.toml", "feature", feature, "title", "summarize all of them in a few words")
            self.leave("vhlo/features.toml", "feature", feature, "remedy", f"describe how to avoid {titles}")
            # A fork need not have our collection of test programs.
            if (self.folder.parent / _PROGRAMS).is_dir():
                what = f"once a release has it, add a program with it: {_PROGRAMS / feature}.mlir"
                self.left.append(self._beside_features(feature, what))

    def finish(self) -> Plan:
        """The result of the edits is linted."""
        self._write_features()
        edits = self.edits + self.tests
        check_edits(self.folder, edits)
        return self.plan(self.version, edits, self._once_released())

    def _once_released(self) -> list[Remaining]:
        left = []
        releases, released = (Document(self.folder / name) for name in ("releases.toml", RELEASED))
        if releases.text:
            last = releases.text.rstrip().count("\n") + 1
            left.append(Remaining(releases.path, last, "once a release has it, add that release"))
        if released.text:
            known = [f'"{entry.version}": {{' for entry in self.specs.versions]
            lines = [
                n for n, line in enumerate(released.text.splitlines(), 1) if line.lstrip().startswith(tuple(known))
            ]
            what = "once it is released: vhlo spec lint --write-baseline"
            left.append(Remaining(released.path, max(lines, default=1), what))
        return left
