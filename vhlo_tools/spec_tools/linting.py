"""``vhlo spec lint``: rules inside a specification, and the add-only rule against released baselines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.files import write_atomically
from vhlo_tools.spec import field_text, load_specification
from vhlo_tools.spec_tools import entry_rules  # noqa: F401 - registers its rules
from vhlo_tools.spec_tools.rules import RULES, Violation, file_of, step_name
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.spec import Specification, Spelling

# Baselines of released specifications, and the add-only rule: no released entry changes or disappears
#
# A baseline is a specification without its prose, as JSON. ``released.json`` in the folder of a specification is the
# baseline of its last release; any other folder, or a git revision of the same folder, can serve as a baseline as well.

RELEASED = "released.json"

#: The released keys and values of an entry, by the kind of the entry and its name.
Baseline = Mapping[str, Mapping[str, Mapping[str, Any]]]

# New entries must begin after the release; a feature only names an existing entry, and may be added later.
_DATED = {"op": "min", "type": "min", "attribute": "min", "enum": "min", "case": "min"}
_DATED |= {"constraint": "since"}
#: The files of kinds; those of ops have a file for each family.
_FILES = {"version": "versions.toml", "type": "vhlo/types.toml", "attribute": "vhlo/attributes.toml"}
_FILES |= {"builtin type": "builtin/types.toml", "builtin attribute": "builtin/attributes.toml"}
_FILES |= {"enum": "vhlo/enums.toml", "case": "vhlo/enums.toml"}
_FILES |= {"feature": "vhlo/features.toml", "default": "vhlo/defaults.toml"}
_REMEDY = "released entries must not change: revert the change, and add a new version instead"


def baseline_of(specs: Specification) -> Baseline:
    return {
        "version": {str(each.version): {"bytecode": each.bytecode} for each in specs.versions},
        "op": {
            name: {
                "min": str(version.min),
                "max": _text(version.max),
                "operands": list(map(str, version.operands)),
                "results": list(map(str, version.results)),
                "attributes": list(version.attributes),
                "regions": list(map(str, version.regions)),
            }
            for name, version in specs.op_versions.items()
        },
        "step": {
            step_name(op, step): {
                "feature": step.feature,
                "added": dict(step.added),
                "removed": dict(step.removed),
                "single": sorted(step.single),
                "empty": sorted(step.empty),
            }
            for op, step, _, _ in specs.steps()
        },
        "constraint": {
            name: {
                "since": str(constraint.since),
                "versions": list(constraint.versions),
                "requires": constraint.requires,
                "operands": list(constraint.operands),
                "attributes": list(constraint.attributes),
                "kind": constraint.kind,
                "value": constraint.value,
                "types": sorted(constraint.types),
            }
            for name, _, constraint in specs.constraints()
        },
        "type": {each.name: _spelling(each) for each in specs.types},
        "attribute": {each.name: _spelling(each) for each in specs.attributes},
        "builtin type": {each.name: _spelling(each) for each in specs.builtin_types},
        "builtin attribute": {each.name: _spelling(each) for each in specs.builtin_attributes},
        "enum": {enum.name: {"min": str(enum.min), "max": _text(enum.max)} for enum in specs.enums},
        "case": {
            f"{enum.name}.{case.name}": {"value": case.value, "min": str(case.min)}
            for enum in specs.enums
            for case in enum.cases
        },
        "feature": {feature.id: {"introduced": str(feature.introduced)} for feature in specs.features},
        "default": {
            each.id: {"value": each.value, "equals": each.equals, "computed": each.computed, "of": each.of}
            for each in specs.defaults
        },
    }


def baseline_text(baseline: Baseline) -> str:
    """One line per entry, so that diffs are easy to read."""
    kinds = []
    for kind, entries in baseline.items():
        lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(facts)}" for name, facts in entries.items())
        kinds.append(f"  {json.dumps(kind)}: {{\n{lines}\n  }}" if lines else f"  {json.dumps(kind)}: {{}}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def read_released(specs: Traversable) -> Baseline | None:
    file = specs.joinpath(RELEASED)
    if not file.is_file():
        return None
    try:
        baseline: Baseline = json.loads(file.read_text(encoding="utf-8"))
        if all(isinstance(facts, dict) for entries in baseline.values() for facts in entries.values()):
            return baseline
    except (AttributeError, ValueError):
        pass
    raise InvalidSpecificationError(
        f"{file} is not a baseline: delete it, and write it with `vhlo spec lint --write-baseline`"
    )


def read_baseline(against: str, specs: Traversable) -> Baseline:
    """``against`` is a folder, or a git revision of the folder ``specs``."""
    if Path(against).is_dir():
        return baseline_of(load_specification(Path(against)))
    here = Path(str(specs))
    commit = _git(here, "rev-parse", "--verify", "--end-of-options", f"{against}^{{commit}}").decode().strip()
    names = _git(here, "ls-tree", "-r", "-z", "--name-only", commit, ".").decode().split("\0")
    files = [name for name in names if PurePosixPath(name).suffix == ".toml"]
    if not files:
        raise InvalidSpecificationError(f"{specs} contains no specification in {against}")
    with TemporaryDirectory() as folder:
        for name in files:
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_git(here, "show", f"{commit}:./{name}"))
        return baseline_of(load_specification(Path(folder)))


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise InvalidSpecificationError(
            "reading a revision requires git, which is not installed: give a folder"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()[-1]
        raise InvalidSpecificationError(
            f"expected a folder, or a git revision of {folder}: git {arguments[0]}: {said}"
        ) from None


def broken_promises(specs: Specification, released: Baseline) -> Iterator[Violation]:
    """Yield a violation for each change or removal of a released entry, and each addition to a released version."""
    present, families = baseline_of(specs), {op.name: file_of(op) for op in specs.ops}
    versions = [Version(version) for version in released.get("version", ())]
    newest = max(versions, default=None)

    def violation(rule: str, kind: str, name: str, message: str, remedy: str = _REMEDY) -> Violation:
        op = name.rpartition("_v")[0] if kind == "op" else name.partition(".")[0]
        return Violation(rule, _FILES.get(kind) or families.get(op, "vhlo/ops"), name, message, remedy)

    def has_ended(kind: str, name: str, key: str, value: object) -> bool:
        # The one permitted change: a current entry ends, at the last release or later, because a newer version exists.
        stem, _, number = name.rpartition("_v")
        if (key, value, number.isdecimal()) != ("max", None, True) or f"{stem}_v{int(number) + 1}" not in present[kind]:
            return False
        return newest is None or Version(present[kind][name]["max"]) >= newest

    for kind, entries in released.items():
        for name, facts in entries.items():
            found = present.get(kind, {}).get(name)
            if found is None:
                yield violation("released-removed", kind, name, f"the {kind} {name} is released, but was removed")
                continue
            for key, value in facts.items():
                if found.get(key) != value and not has_ended(kind, name, key, value):
                    change = f"{_shown(value)}, but is now {_shown(found.get(key))}"
                    yield violation(
                        "released-changed", kind, name, f"{key} of the {kind} {name} is released as {change}"
                    )
    for kind, key in _DATED.items():
        for name, facts in present[kind].items():
            if newest and name not in released.get(kind, {}) and facts[key] and Version(facts[key]) <= newest:
                message = f"the new {kind} {name} begins at {facts[key]}, which is already released"
                yield violation("released-added", kind, name, message, f"begin it after {newest}")
    for version in present["version"]:
        if newest and version not in released["version"] and Version(version) < newest:
            message = f"the new version {version} is older than {newest}, which is already released"
            yield violation("released-added", "version", version, message, f"add it after {newest}")


def _spelling(spelling: Spelling) -> dict[str, Any]:
    return {
        "min": _text(spelling.min),
        "max": _text(spelling.max),
        "bits": spelling.bits,
        "encodings": [{"code": each.code, "fields": list(map(field_text, each.fields))} for each in spelling.encodings],
    }


def _text(version: Version | None) -> str | None:
    return None if version is None else str(version)


def _shown(value: object) -> str:
    return "absent" if value is None else json.dumps(value)


# ``vhlo spec lint``: rules inside a specification, and the add-only rule against its last release


def lint(specs: Specification, against: str | None = None) -> tuple[Violation, ...]:
    """``against`` is a folder, or a git revision of the folder of ``specs``; by default its last release, if any."""
    inside = [
        Violation(rule.id, file, entry, message, rule.remedy)
        for rule in RULES
        for file, entry, message in rule.check(specs)
    ]
    released = read_released(specs.folder) if against is None else read_baseline(against, specs.folder)
    broken = () if released is None else broken_promises(specs, released)
    return tuple(sorted((*inside, *broken), key=lambda violation: (violation.file, violation.entry)))


def has_release(specs: Specification) -> bool:
    return specs.folder.joinpath(RELEASED).is_file()


def write_release(specs: Specification) -> Path:
    """Record ``specs``, which must have no violation, as the last release of its folder."""
    path = Path(str(specs.folder)) / RELEASED
    write_atomically(path, [baseline_text(baseline_of(specs)).encode()], force=True)
    return path
