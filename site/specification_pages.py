"""The pages of the specification: what ``dialect_specs/`` says, family by family, type by type, version by version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from lifelines import Life, Row, drawing
from pages import Page, code, codes, slug, table

from vhlo_tools.spec import (
    Expansion,
    Feature,
    Op,
    Specification,
    known_confirmations,
    known_explanations,
    known_promises,
    known_releases,
)
from vhlo_tools.spec_tools import describe, diff
from vhlo_tools.version import Version

__all__ = ["FOLDER", "navigation", "specification_pages"]

FOLDER: Final = "specification"
#: What has a page of its own beside the families: the file and its title in the navigation.
PAGES: Final = {
    "versions": "Versions",
    "releases": "Releases",
    "features": "Features",
    "types": "Types",
    "attributes": "Attributes",
    "enums": "Enums",
}
#: The styles of the bars of one op, by turns, so that neighbours differ.
STYLES: Final = ("first", "second")
FORGOTTEN: Final = "forgotten"


def navigation(specs: Specification) -> list[dict[str, Any]]:
    """Return the part of the navigation that is the specification."""
    families = [{_title(family): f"{FOLDER}/ops/{family}.md"} for family in _families(specs)]
    return [*({title: f"{FOLDER}/{name}.md"} for name, title in PAGES.items()), {"Ops": families}]


def specification_pages(specs: Specification) -> list[Page]:
    """Return all pages of the specification."""
    pages = {
        "versions": _versions(specs),
        "releases": _releases(),
        "features": _features(specs),
        "types": _kinds(specs, "type"),
        "attributes": _kinds(specs, "attribute"),
        "enums": _enums(specs),
        **{f"ops/{family}": _family(specs, family, ops) for family, ops in _families(specs).items()},
    }
    return [Page(f"{FOLDER}/{name}.md", "\n".join(lines)) for name, lines in pages.items()]


def _families(specs: Specification) -> dict[str, list[Op]]:
    families: dict[str, list[Op]] = {}
    for op in sorted(specs.ops, key=lambda op: (op.family, op.name)):
        families.setdefault(op.family, []).append(op)
    return families


def _title(family: str) -> str:
    return family.replace("_", " ").capitalize()


def _life(first: object, last: object) -> list[str]:
    return [str(first), str(last or "current")]


def _family(specs: Specification, family: str, ops: Sequence[Op]) -> Iterator[str]:
    yield f"# {_title(family)}\n"
    changed = sum(len(op.versions) > 1 for op in ops)
    yield f"{_count(ops, 'op')} of VHLO, of which {changed or 'none'} changed since it was brought in.\n"
    yield drawing(f"Lives of the ops of the family {family}", [_lives(op) for op in ops], _versions_of(specs))
    yield ""
    rows = (
        [f"[`{op.name}`](#{slug(op.name)})", code(version.name), *_life(version.min, version.max)]
        for op in ops
        for version in op.versions
    )
    yield from table(["op", "version of the op", "from", "to"], rows)
    for op in ops:
        yield from _op(specs, op)


def _versions_of(specs: Specification) -> list[Version]:
    return [entry.version for entry in specs.versions]


def _lives(op: Op) -> Row:
    return Row(
        op.name,
        tuple(
            Life(
                f"v{version.number}",
                version.min,
                version.max,
                FORGOTTEN if version.forgotten else STYLES[number % len(STYLES)],
            )
            for number, version in enumerate(op.versions)
        ),
    )


def _op(specs: Specification, op: Op) -> Iterator[str]:
    (described,) = (each for each in describe(specs, op.name) if each["kind"] == "op")
    yield f"## {op.name}\n"
    rows = (
        [
            code(version["name"]),
            *_life(version["min"], version["max"]),
            *(codes(version[part], "none") for part in ("operands", "results", "attributes", "regions")),
        ]
        for version in described["versions"]
    )
    yield from table(["version", "from", "to", "operands", "results", "attributes", "regions"], rows)
    for version in described["versions"]:
        if version["forgotten"]:
            yield f"`{version['name']}` was dropped by the library without a version of its own.\n"
        for refused in version["refuses"]:
            yield (
                f"- Before {refused['before']}, `{version['name']}` refuses {refused['what']}: "
                f"{_to_feature(refused['feature'], '../')}."
            )
    yield ""
    for step in described["steps"]:
        older, newer = step["between"]
        yield f"From `{older}` to `{newer}` and back:\n"
        feature = f" ({_to_feature(step['feature'], '../')})" if step["feature"] else ""
        yield from (f"- {part['direction']}: {part['what']}{feature if part['guard'] else ''}" for part in step["does"])
        yield ""
    if described["features"]:
        links = (f"{_to_feature(each['id'], '../')} (since {each['introduced']})" for each in described["features"])
        yield f"Features: {', '.join(links)}.\n"


def _to_feature(identifier: str, way: str = "") -> str:
    return f"[{code(identifier)}]({way}features.md#{slug(identifier)})"


def _kinds(specs: Specification, kind: str) -> Iterator[str]:
    spellings = specs.types if kind == "type" else specs.attributes
    yield f"# {kind.capitalize()}s\n"
    yield f"{_count(spellings, kind)} of VHLO, with the codes and the fields of their encodings in the bytecode.\n"
    first = specs.versions[0].version
    lives = [Row(each.name, (Life("", each.min or first, each.max, STYLES[0]),)) for each in spellings]
    yield drawing(f"Lives of the {kind}s of VHLO", lives, _versions_of(specs))
    yield ""
    features = {name: feature.id for feature in specs.features for name in feature.names}
    rows = (
        [
            code(spelling.name),
            *_life(spelling.min or first, spelling.max),
            str(spelling.bits or ""),
            ", ".join(str(encoding.code) for encoding in spelling.encodings),
            "; ".join(codes(described["fields"], "none") for described in _described(specs, kind, spelling.name)),
            _to_feature(features[spelling.name]) if spelling.name in features else "",
        ]
        for spelling in spellings
    )
    yield from table([kind, "from", "to", "bits", "codes", "fields", "feature"], rows)


def _described(specs: Specification, kind: str, name: str) -> Iterable[dict[str, Any]]:
    (described,) = (each for each in describe(specs, name) if each["kind"] == kind and each["name"] == name)
    encodings: list[dict[str, Any]] = described["encodings"]
    return encodings


def _enums(specs: Specification) -> Iterator[str]:
    yield "# Enums\n"
    yield "The attributes that are one of several cases, with the numbers of the cases in the bytecode.\n"
    rows = [
        Row(f"{enum.name}.{case.name}", (Life(str(case.value), case.min, enum.max, STYLES[case.min != enum.min]),))
        for enum in specs.enums
        for case in enum.cases
    ]
    yield drawing("Lives of the cases of enums", rows, _versions_of(specs))
    yield ""
    for enum in specs.enums:
        yield f"## {enum.name}\n"
        cases = ([code(case.name), str(case.value), *_life(case.min, enum.max)] for case in enum.cases)
        yield from table(["case", "number", "from", "to"], cases)


def _features(specs: Specification) -> Iterator[str]:
    yield "# Features\n"
    yield (
        "What a version introduced that a program can hold and an older consumer cannot read, oldest first: what to do "
        "about each, and what `--expand` does. [Expansions](../expansions.md) has their limits and their proofs.\n"
    )
    rows = (
        [
            f"[{code(each.id)}](#{slug(each.id)})",
            str(each.introduced),
            each.kind,
            each.title,
            ", ".join(f"{expansion.effect}, to {expansion.to}" for expansion in each.expansions),
        ]
        for each in specs.features
    )
    yield from table(["feature", "since", "kind", "what it is", "expansions"], rows)
    for feature in specs.features:
        yield from _feature(specs, feature)
    yield "## Other findings\n"
    yield "What is found of a program or a file, whatever the version.\n"
    for each in known_explanations():
        yield f"### {each.id}\n"
        yield f"{_plain(each.text)} (by default: {each.level})\n"


def _feature(specs: Specification, feature: Feature) -> Iterator[str]:
    yield f"## {feature.id}\n"
    yield f"{_sentence(feature.title)} Since StableHLO {feature.introduced}; of the kind {feature.kind}.\n"
    yield f"- For older consumers: {_plain(feature.remedy)}."
    families = {op.name: op.family for op in specs.ops}
    if feature.ops:
        yield f"- On the ops: {', '.join(f'[`{op}`](ops/{families[op]}.md#{slug(op)})' for op in feature.ops)}."
    if feature.names:
        yield f"- Consists of: {codes(feature.names)}."
    if feature.read_since is not None:
        yield f"- Readers accept it since the patch release {feature.read_since}."
    if feature.unasked is not None:
        yield f"- Written in its place for older targets, without being asked: {feature.unasked}."
    if feature.inexpressible is not None:
        yield f"- It has no expansion: {feature.inexpressible}."
    yield from (_expansion(feature, each) for each in feature.expansions)
    yield ""


def _expansion(feature: Feature, expansion: Expansion) -> str:
    option = "`--expand`" if expansion.effect == "exact" else f"`--allow-relaxed {feature.id}`"
    leaves = f", leaves {codes(expansion.leaves)}" if expansion.leaves else ", only removes something"
    parts = [f"- {option} ({expansion.effect}) reaches {expansion.to}{leaves}."]
    if expansion.gives_up:
        parts.append(f"It gives up {_plain(expansion.gives_up)}.")
    parts.append("It applies to every valid use." if expansion.always else _sentence(f"Limits: {expansion.limits}"))
    read = [each for each in known_confirmations() if (each.feature, each.effect) == (feature.id, expansion.effect)]
    if read:
        releases = sorted(
            {each.release for each in read}, key=lambda release: [int(part) for part in release.split(".")]
        )
        parts.append(f"Read by jaxlib {', '.join(releases)}.")
    return " ".join(parts)


def _versions(specs: Specification) -> Iterator[str]:
    yield "# Versions\n"
    yield "The minor versions of StableHLO, newest first; a patch release changes nothing in the dialect.\n"
    rows = (
        [f"[{each.version}](#{slug(str(each.version))})", str(each.date), str(each.bytecode), each.brought]
        for each in reversed(specs.versions)
    )
    yield from table(["version", "date", "MLIR bytecode", "what it brought"], rows)
    yield "What is promised of files and their readers:\n"
    promises = (
        [each.window, f"{each.months} months", str(each.since or "any version"), each.source]
        for each in known_promises()
    )
    yield from table(["window", "length", "for files since", "source"], promises)
    for entry in reversed(specs.versions):
        yield f"## {entry.version}\n"
        before = specs.before(entry.version)
        yield f"{entry.date}. {entry.brought}\n"
        changes = diff(specs, before, entry.version) if before else ()
        yield from (
            f"- {change.action} {change.kind} `{change.name}`" + (f": {_plain(change.detail)}" if change.detail else "")
            for change in changes
        )
        yield ""


def _releases() -> Iterator[str]:
    yield "# Releases\n"
    yield (
        "Released packages that write or read artifacts, and the StableHLO version in each. A name in this table is a "
        "[target](../targets.md): `jaxlib==0.4.31`.\n"
    )
    for package, group in groupby(known_releases(), key=lambda release: release.package):
        yield f"## {package}\n"
        rows = (
            [
                code(str(each)),
                str(each.date),
                str(each.stablehlo),
                str(each.minimum),
                " / ".join(map(str, filter(None, (each.week_4, each.week_12)))),
                code(each.python),
            ]
            for each in reversed(list(group))
        )
        titles = ["release", "date", "reads up to", "writes from", "its own answer for 4 / 12 weeks", "Python"]
        yield from table(titles, rows)


def _sentence(text: str) -> str:
    plain = _plain(text)
    # What is a name stays as it is.
    begin = plain[:1] if "_" in plain.split()[0] else plain[:1].upper()
    return f"{begin}{plain[1:]}{'' if plain.endswith('.') else '.'}"


def _plain(text: str) -> str:
    """Return text of the data with what Markdown would take for markup kept as it is."""
    return "".join(f"\\{each}" if each in "<*_[" else each for each in text.strip())


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")
