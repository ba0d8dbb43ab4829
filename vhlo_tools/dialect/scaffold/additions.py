"""Entries that a new version adds, as TOML, and the texts that describe them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from vhlo_tools.dialect.ops import OpVersion
from vhlo_tools.dialect.scaffold.changes import NewAttribute, NewCase, NewKind, NewOp, stem
from vhlo_tools.dialect.scaffold.document import array, quoted
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.scaffold.changes import NewEntry
    from vhlo_tools.findings import FindingKind
    from vhlo_tools.version import Version

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


def feature_entry(identifier: str, subjects: Sequence[Subject], version: Version) -> str:
    kinds = [subject.kind for subject in subjects]
    title = quoted(" and ".join(subject.title for subject in subjects))
    lists = (("ops", [each.op for each in subjects]), ("names", [each.name for each in subjects]))
    named = {key: list(dict.fromkeys(filter(None, values))) for key, values in lists}
    lines = "".join(f"{key} = {array(names)}\n" for key, names in named.items() if names)
    return (
        f'[[feature]]\nid = "{identifier}"\ntitle = {title}\nkind = "{"op" if "op" in kinds else kinds[0]}"\n'
        f'introduced = "{version}"\n{lines}remedy = {quoted(subjects[0].remedy)}\n'
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


def op_entry(op: NewOp, version: Version) -> str:
    first = OpVersion(op.name, 1, version, None, op.operands, op.results, op.attributes, op.regions)
    return f'[[op]]\nname = "{op.name}"\n{op_version_entry(first)}'


def op_version_entry(version: OpVersion) -> str:
    """The entry is to be inserted after another table."""
    regions = f"regions = {array(version.regions)}\n" if version.regions else ""
    return (
        f'\n[[op.version]]\nnumber = {version.number}\nmin = "{version.min}"\n'
        f"operands = {array(version.operands)}\nresults = {array(version.results)}\n"
        f"attributes = {array(version.attributes)}\n{regions}"
    )


def kind_entry(kind: NewKind, version: Version, code: int, bits: int | None) -> str:
    width = f"bits = {bits}\n" if bits else ""
    fields = f"fields = {array(kind.fields)}\n" if kind.fields else ""
    name = f'[[{kind.kind}]]\nname = "{kind.name}"\nmin = "{version}"\n{width}'
    return f"{name}[[{kind.kind}.encoding]]\ncode = {code}\n{fields}"


def bits_of(name: str) -> int | None:
    """Return the width that the name of a type says, as in ``f8E4M3_v1``."""
    width = re.match(r"(?:b?f|u?i)(\d+)", name)
    return int(width[1]) if width else None


def enum_entry(case: NewCase, version: Version) -> str:
    return f'[[enum]]\nname = "{case.enum}"\nmin = "{version}"\ncases = [\n  {case_item(case, 0)},\n]\n'


def case_item(case: NewCase, value: int, version: Version | None = None) -> str:
    since = f', min = "{version}"' if version else ""
    return f'{{ name = "{case.name}", value = {value}{since} }}'


def sentence(brought: Sequence[str], before: str | None = None) -> str:
    """Describe what a version introduced, continuing the sentence ``before``."""
    parts = [*([before.rstrip(".")] if before and before != NOTHING else []), *brought]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else before or NOTHING
