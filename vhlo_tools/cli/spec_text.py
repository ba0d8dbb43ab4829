"""Output of ``vhlo spec`` as text: lines of at most 80 columns where the names allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from vhlo_tools.spec import Specification, SpecificationEntry, life_text
from vhlo_tools.spec_tools import RULES, Change, Comparison, Difference, Plan, Survey, Violation
from vhlo_tools.version import Version

_WIDTH = 80
_DIFFERS = {"missing": "+", "extra": "-", "changed": "~"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "allowed": "+", "refused": "-"}


def entry_lines(entries: Sequence[SpecificationEntry]) -> Iterator[str]:
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        yield f"{entry.kind:<10} {entry.name:<{width}} {entry.min!s:>7} {entry.max or 'current'!s:>8}"


def change_lines(specs: Specification, start: Version, end: Version, changes: Sequence[Change]) -> Iterator[str]:
    bytecode = {entry.version: entry.bytecode for entry in specs.versions}
    before, after = bytecode[start.minor_release], bytecode[end.minor_release]
    moved = f"MLIR bytecode {before}" + ("" if before == after else f" to {after}")
    yield f"StableHLO {start} to {end}: {_count(changes, 'change')}, {moved}"
    dates = {entry.version: entry.date for entry in specs.versions}
    for version, group in groupby(changes, key=lambda change: change.version):
        yield ""
        yield f"{version} ({dates[version]})" + (" taken back" if start > end else "")
        for change in group:
            text = f"{change.kind} {change.name}" + (f": {change.detail}" if change.detail else "")
            verb = f"{change.action} " if change.action in ("allowed", "refused") else ""
            yield from _item(f"  {_SIGNS[change.action]} ", verb + text)


def comparison_lines(specs: Specification, survey: Survey, comparison: Comparison) -> Iterator[str]:
    """Yield the differences between a specification and a source, kind by kind, and what could not be read."""
    counted = _count(comparison.differences, "difference") if comparison.differences else "no difference"
    yield f"StableHLO {survey.version} of {survey.source}, and {specs.newest} here: {counted}"
    for kind, group in groupby(comparison.differences, key=lambda difference: difference.kind):
        differences = list(group)
        yield ""
        yield f"{kind} ({len(differences)})"
        for difference in differences:
            yield from _item(f"  {_DIFFERS[difference.action]} ", _difference(difference))
    if comparison.newer:
        names = ", ".join(name for _, name in comparison.newer)
        yield ""
        yield from _item("newer here: ", names)
    if survey.unread:
        yield ""
        yield f"not read ({len(survey.unread)})"
        for unread in survey.unread:
            yield from _item("  ? ", str(unread))


def _difference(difference: Difference) -> str:
    life = ""
    if difference.min is not None and difference.kind != "constraint":
        life = f" ({difference.min} to {difference.max or 'current'})"
    text = str(difference).removeprefix(f"{difference.kind} ").replace(difference.name, f"{difference.name}{life}", 1)
    return text if difference.action == "extra" else f"{text} [{difference.place}]"


def verdict(specs: Specification, violations: Sequence[Violation], *, released: bool) -> str:
    """``released`` means that a release was the baseline."""
    entries = sum(1 for _ in specs.entries())
    found = _count(violations, "violation") if violations else "no violation"
    return f"vhlo: {found} in {entries} entries, by {len(RULES)} rules" + (" and the add-only rule" if released else "")


def plan_files(plan: Plan) -> Iterator[str]:
    for edit in plan.edits:
        yield f"{'wrote' if edit.before is None else 'changed'} {shown(edit.path)}"


def plan_diffs(plan: Plan) -> Iterator[str]:
    yield from (edit.diff(shown(edit.path)) for edit in plan.edits)


def remaining(plan: Plan) -> Iterator[str]:
    """Yield the remaining manual steps for a new version, each with file and line."""
    yield "remaining steps:"
    yield from (f"  {shown(each.path)}:{each.line}: {each.what}" for each in plan.remaining)


def plan_as_json(plan: Plan, *, is_written: bool) -> dict[str, Any]:
    return {
        "version": str(plan.version),
        "written": is_written,
        "files": [
            {"path": shown(edit.path), "new": edit.before is None, "diff": edit.diff(shown(edit.path))}
            for edit in plan.edits
        ],
        "remaining": [{"path": shown(each.path), "line": each.line, "what": each.what} for each in plan.remaining],
    }


def shown(path: Path) -> str:
    """Return a path relative to the working directory, if it is inside of that."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def description_text(description: dict[str, Any]) -> str:
    return "\n".join(_op_lines(description) if description["kind"] == "op" else _other_lines(description))


def _op_lines(op: dict[str, Any]) -> Iterator[str]:
    yield f"{op['name']}: op of the family {op['family']}, {life_text(op['min'], op['max'])}"
    steps = {step["between"][1]: step for step in op["steps"]}
    for version in op["versions"]:
        yield ""
        step = steps.get(version["name"])
        if step:
            yield f"  step {' - '.join(step['between'])}"
            for does in step["does"]:
                guard = f" ({step['feature']})" if does["guard"] else ""
                yield from _labelled(does["direction"], does["what"] + guard, "    ")
            yield ""
        yield f"{life_text(version['min'], version['max']):<20} {version['name']}"
        for key in ("operands", "results", "attributes", "regions"):
            if version[key] or key != "regions":
                yield from _labelled(key, ", ".join(version[key]) or "none")
        if version["forgotten"]:
            yield from _labelled("forgotten", "the library dropped it without a version of its own")
        for change in version["changes"]:
            yield from _labelled("changed", change)
        for refused in version["refuses"]:
            yield from _labelled("refuses", f"before {refused['before']}: {refused['what']} ({refused['feature']})")
    yield from _feature_lines(op["features"])


def _feature_lines(features: Sequence[dict[str, Any]]) -> Iterator[str]:
    if features:
        yield ""
        yield "features"
    for feature in features:
        yield from _item(f"  {feature['introduced']:<7} ", f"{feature['id']}: {feature['title']}")


def _other_lines(description: dict[str, Any]) -> Iterator[str]:
    life = f", {life_text(description['min'], description['max'])}" if "min" in description else ""
    yield f"{description['name']}: {description['kind']}{life}"
    for key, value in description.items():
        if key in ("kind", "name", "min", "max", "features") or value in (None, []):
            continue
        label = key.replace("_", " ")
        for each in value if isinstance(value, list) else [value]:
            yield from _labelled(label, _words(each))
            label = ""
    yield from _feature_lines(description.get("features", ()))


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")


def _words(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    if "code" in value:
        return f"code {value['code']}" + "".join(f"; {field}" for field in value["fields"])
    return f"{value['name']} = {value['value']}, since {value['min']}"


def _labelled(label: str, text: str, indent: str = "  ") -> Iterator[str]:
    return _item(f"{indent}{label:<12} ", text)


def _item(head: str, text: str) -> Iterator[str]:
    lines = wrap(text, _WIDTH - len(head), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        yield (" " * len(head) if number else head) + line
