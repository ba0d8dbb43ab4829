"""The public surface of this package, recorded for each version and compared with what it is today.

``public_surface.py`` compares, and exits with 1 if today's differs from the recorded one; ``--record`` records it for
the version of ``pyproject.toml``. ``CHANGELOG.md`` says what is public, and which version a change asks for. A record
is two files in ``tests/surface/``, for people to read in a diff:

- ``VERSION.python.txt``, as a stub would be: the names of :mod:`vhlo_tools`, and the classes and types of the package
  that their signatures name, with parameters, attributes and bases. They are read from the sources by griffe.
- ``VERSION.names.txt``, a line each: what can be imported, commands with their arguments, options and choices, keys of
  settings, and what the pytest plugin adds.

Run it with the Python of the development environment, which has the extra ``test``.
"""

from __future__ import annotations

import argparse
import enum
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click
import griffe
from packaging.version import Version

import vhlo_tools
from vhlo_tools import pytest_plugin
from vhlo_tools.cli.main import cli
from vhlo_tools.gate import settings_schema
from vhlo_tools.records import dataclass

__all__ = [
    "RECORDED",
    "Change",
    "Kind",
    "Surface",
    "change_between",
    "is_allowed",
    "recorded_versions",
    "surface_today",
    "undocumented",
]

ROOT: Final = Path(__file__).resolve().parent.parent
#: The folder of the recorded surfaces.
RECORDED: Final = ROOT / "tests" / "surface"

_PYTHON, _NAMES = ".python.txt", ".names.txt"
_PACKAGE: Final = "vhlo_tools"
_PUBLIC: Final = frozenset(f"{_PACKAGE}.{name}" for name in vhlo_tools.__all__)
_MACHINERY: Final = frozenset({"bindings", "bytecode"})
#: How a line ends that names an argument or an option without which a command does nothing.
_REQUIRED: Final = " (required)"


class Kind(enum.IntEnum):
    """What a change asks of the next version, in the words of semantic versioning."""

    NONE = 0
    ADDITION = 1
    BREAKING = 2


@dataclass(frozen=True, slots=True)
class Change:
    """How one surface differs from another."""

    kind: Kind  # what it asks of the version
    breaking: tuple[str, ...] = ()  # what users of the old one may trip over, a line each
    added: tuple[str, ...] = ()  # what is new, a line each


@dataclass(frozen=True, slots=True)
class Surface:
    """A public surface."""

    python: str  # the public names and what they reach, as the text of a stub
    names: tuple[str, ...]  # the other lines

    @staticmethod
    def read(version: str, folder: Path = RECORDED) -> Surface:
        """Read what was recorded for a version.

        Raises:
            OSError: If there is no such record.
        """
        names = (folder / f"{version}{_NAMES}").read_text(encoding="utf-8").splitlines()
        return Surface((folder / f"{version}{_PYTHON}").read_text(encoding="utf-8"), tuple(names))

    def write(self, version: str, folder: Path = RECORDED) -> None:
        """Record this surface for a version."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{version}{_PYTHON}").write_text(self.python, encoding="utf-8")
        (folder / f"{version}{_NAMES}").write_text("".join(f"{each}\n" for each in self.names), encoding="utf-8")


def recorded_versions(folder: Path = RECORDED) -> list[str]:
    """Return the versions that have a record, oldest first."""
    return sorted((path.name.removesuffix(_NAMES) for path in folder.glob(f"*{_NAMES}")), key=Version)


def surface_today(root: Path = ROOT) -> Surface:
    """Return the surface of the checkout ``root``, which must be the one that is imported."""
    stub, roots = _reached(root), [f"{_PACKAGE}.{name}" for name in vhlo_tools.__all__]
    names = [*roots, *_commands(cli, ["vhlo"]), *_settings(), *_pytest_additions()]
    return Surface(stub.text(), tuple(sorted(names)))


def _reached(root: Path) -> _Stub:
    """Return what can be imported, and what its signatures name."""
    stub = _Stub(griffe.load(_PACKAGE, search_paths=[str(root)], try_relative_path=False))
    stub.reach(*(f"{_PACKAGE}.{name}" for name in vhlo_tools.__all__), f"{_PACKAGE}.pytest_plugin.VhloCheck")
    return stub


def undocumented(root: Path = ROOT) -> list[str]:
    """Return a line for each public name without a docstring, and each parameter of a function that none describes.

    Classes that signatures reach in rooms of machinery are no promise of this package: their names are enough.
    """
    lines: list[str] = []
    for found in _reached(root).found():
        if found.path.split(".")[1] in _MACHINERY or found.name.startswith("_"):
            continue
        named = [each for each in _members(found) if not each.name.startswith("__")] if found.is_class else []
        for each in (found, *named):
            if not (each.is_class or each.is_function or "property" in each.labels):
                continue
            if each.docstring is None:
                lines.append(f"{each.path} has no docstring")
            elif found.is_function and f"{_PACKAGE}.{each.name}" in _PUBLIC:
                sections = each.docstring.parse("google")
                said = {one.name for part in sections if part.kind.value == "parameters" for one in part.value}
                asked = [one.name for one in each.parameters]
                lines += [f"{each.path} does not describe {one}" for one in asked if one not in said]
    return sorted(lines)


def change_between(old: Surface, new: Surface) -> Change:
    """Return how ``new`` differs from ``old``: by griffe's rules for Python, and line by line for names."""
    breaking = [_said(each) for each in griffe.find_breaking_changes(_loaded(old.python), _loaded(new.python))]
    gone = sorted(set(old.names) - set(new.names))
    added = sorted(set(new.names) - set(old.names))
    commands = set(map(_command_of, old.names))
    # A command asks for more than it did.
    breaking += [f"{line} is new" for line in added if line.endswith(_REQUIRED) and _command_of(line) in commands]
    breaking += [f"{line} is gone" for line in gone]
    lines = old.python.splitlines()
    added += [line.strip() for line in new.python.splitlines() if line not in set(lines)]
    if breaking:
        return Change(Kind.BREAKING, tuple(breaking), tuple(added))
    return Change(Kind.NONE if old == new else Kind.ADDITION, (), tuple(added))


def _loaded(stub: str) -> Any:
    """Return what griffe knows of a stub; its dataclasses get their constructors only in a module that is loaded."""
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-surface-") as folder:
        Path(folder, f"{_PACKAGE}.py").write_text(f"from dataclasses import dataclass, field\n{stub}", encoding="utf-8")
        return griffe.load(_PACKAGE, search_paths=[folder], try_relative_path=False)


def _said(breakage: griffe.Breakage) -> str:
    """Return a line about what breaks."""
    shown = breakage.explain(griffe.ExplanationStyle.ONE_LINE)
    return re.sub(r"^\S+\.py:\d+: ", "", re.sub(r"\x1b\[[\d;]*m", "", shown))


def is_allowed(change: Kind, old: str, new: str) -> bool:
    """Return whether the version ``new`` may differ from ``old`` by such a change.

    These are the rules of semver.org: what breaks asks for another major version, or before 1.0.0 another minor one;
    what is added asks for another minor version.
    """
    before, after = Version(old), Version(new)
    if change is Kind.NONE:
        return True
    if change is Kind.ADDITION or before.major == 0:
        return (after.major, after.minor) > (before.major, before.minor)
    return after.major > before.major


class _Stub:
    """Collects public names, and those that their signatures name."""

    def __init__(self, package: Any) -> None:
        self._package = package
        self._found: dict[str, Any] = {}
        self._reached: set[str] = set()

    def reach(self, *paths: str) -> None:
        """Add what ``paths`` name, and then all that these reach, if it is of the package."""
        waiting = list(paths)
        # Added to while it is read: first come the names that are given, and then what they name.
        for path in waiting:
            waiting += self._add(path)

    def found(self) -> list[Any]:
        """Return all of them."""
        return list(self._found.values())

    def _add(self, path: str) -> Iterator[str]:
        """Add what a path names, and yield the paths that its signature names."""
        if not path.startswith(f"{_PACKAGE}."):
            return
        try:
            found = self._package[path.removeprefix(f"{_PACKAGE}.")]
            found = found.final_target if found.is_alias else found
        except (KeyError, griffe.AliasResolutionError):
            return  # such as a parameter of a function
        if found.is_module or found.path in self._reached:
            return
        self._reached.add(found.path)
        # Names that can be imported come first, and so have theirs; another of the same name says its room.
        name = f"{found.path.split('.')[1]}_{found.name}" if found.name in self._found else found.name
        self._found[name] = found
        for each in _expressions(found):
            yield from (part.canonical_path for part in each.iterate(flat=True) if isinstance(part, griffe.ExprName))

    def text(self) -> str:
        """Return all of them as the text of a stub."""
        return "\n".join(line for name in sorted(self._found) for line in (*_lines(name, self._found[name]), ""))


def _expressions(found: Any) -> Iterator[griffe.Expr]:
    """Yield the expressions in a signature."""
    given: list[Any] = []
    if found.is_class:
        given += found.bases
        for member in _members(found):
            yield from _expressions(member)
    elif found.is_function:
        for each in (*(found.overloads or ()), found):
            given += [each.returns, *(parameter.annotation for parameter in each.parameters)]
    else:
        given += [found.annotation, found.value if not found.parent.is_class else None]
    yield from (each for each in given if isinstance(each, griffe.Expr))


def _members(found: Any) -> Iterator[Any]:
    """Yield what users of a class see of it, in its order, for fields of dataclasses are parameters in that order."""
    for name, member in found.members.items():
        special = name.startswith("__") and name.endswith("__")
        if member.is_alias or (special and not member.is_function) or (name.startswith("_") and not special):
            continue
        yield member


def _lines(name: str, found: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of a stub for a class, a function or an attribute."""
    if found.is_class:
        for decorator in found.decorators:
            yield f"@{decorator.value}"
        bases = ", ".join(map(str, found.bases))
        yield f"class {name}({bases}):" if bases else f"class {name}:"
        inside = [line for member in _members(found) for line in _lines(member.name, member, "    ")]
        yield from inside or ["    ..."]
    elif found.is_function:
        decorators = [str(each.value) for each in found.decorators]
        overloads = (found.parent.overloads.get(found.name) or []) if hasattr(found.parent, "overloads") else []
        for overload in overloads:
            yield f"{indent}@overload"
            yield f"{indent}def {_signature(overload)}: ..."
        for decorator in decorators:
            yield f"{indent}@{decorator}"
        yield f"{indent}def {_signature(found)}: ..."
    elif "property" in found.labels:
        yield f"{indent}@property"
        yield f"{indent}def {name}(self) -> {found.annotation}: ..."
    else:
        typed = f": {found.annotation}" if found.annotation is not None else ""
        shown = found.value is not None and ("instance-attribute" not in found.labels or not typed)
        value = found.value if typed or "instance-attribute" not in found.labels else "..."
        yield f"{indent}{name}{typed}{f' = {value}' if shown else ''}"


def _signature(function: Any) -> str:
    """Return the signature of a function, in which griffe leaves out the ``self`` of methods."""
    signature = str(function.signature(return_type=True))
    first = next((each.name for each in function.parameters), "")
    if first not in ("self", "cls") or signature.partition("(")[2].startswith(first):
        return signature
    name, _, rest = signature.partition("(")
    return f"{name}({first}{'' if rest.startswith(')') else ', '}{rest}"


def _commands(command: click.Command, words: list[str]) -> Iterator[str]:
    """Yield a line for each command, and for each of its arguments, options and choices."""
    line = " ".join(words)
    yield line
    context = click.Context(command, info_name=words[-1])
    for parameter in command.params:
        required = _REQUIRED if parameter.required else ""
        if isinstance(parameter, click.Option):
            takes = "" if parameter.is_flag or parameter.count else f" {parameter.make_metavar(context)}"
            if isinstance(parameter.type, click.Choice):
                takes = " CHOICE"
            repeated = "..." if parameter.multiple else ""
            spellings = [*parameter.opts, *parameter.secondary_opts]
            yield from (f"{line} {each}{takes.split('[')[0].rstrip()}{repeated}{required}" for each in spellings)
            if isinstance(parameter.type, click.Choice):
                yield from (f"{line} {max(parameter.opts, key=len)} = {each}" for each in parameter.type.choices)
        else:
            yield f"{line} {str(parameter.metavar or parameter.name).strip('[].').upper()}{required}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            within = command.get_command(context, name)
            if within is not None and not within.hidden:
                yield from _commands(within, [*words, name])


def _command_of(line: str) -> str:
    """Return the line of the command whose required argument or option a line names."""
    words = line.removesuffix(_REQUIRED).split()
    return " ".join(words[: next((at for at, word in enumerate(words) if not word.islower() or word[0] == "-"), None)])


def _settings() -> Iterator[str]:
    """Yield the keys of a settings file, those of tables within as well."""

    def keys(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
        for key, value in schema.get("properties", {}).items():
            yield f"settings: {prefix}{key}"
            # What has a level is data: features and findings.
            if key != "levels":
                yield from keys(value, f"{prefix}{key}.")

    yield from keys(settings_schema(), "")


def _pytest_additions() -> Iterator[str]:
    """Yield the options, the settings and the fixtures that the plugin adds to pytest."""

    class Parser:
        """Takes down what is added, where pytest's own would add it."""

        def __init__(self) -> None:
            self.said: list[str] = []

        def getgroup(self, name: str, description: str = "") -> Parser:
            return self

        def addoption(self, *names: str, **_: object) -> None:
            self.said += [f"pytest: option {name}" for name in names]

        def addini(self, name: str, **_: object) -> None:
            self.said.append(f"pytest: setting {name}")

    parser: Any = Parser()
    pytest_plugin.pytest_addoption(parser)
    yield from parser.said
    yield from (f"pytest: fixture {name}" for name in pytest_plugin.__all__ if name.startswith("vhlo_"))


def _advice(change: Change, recorded: str, present: str) -> Iterator[str]:
    """Yield what differs, and what is to be done about it."""
    yield from (f"  breaking: {each}" for each in change.breaking)
    yield from (f"  added: {each}" for each in change.added)
    record = "run scripts/public_surface.py --record, and say it in CHANGELOG.md"
    if recorded == present and change.kind is Kind.BREAKING:
        yield f"If {recorded} is released, this needs a version that may break (see CHANGELOG.md). Then {record}"
    elif recorded == present:
        yield f"If {recorded} is released, this needs another minor version. Then {record}"
    elif not is_allowed(change.kind, recorded, present):
        yield f"{present} may not differ from {recorded} by this: choose another version as CHANGELOG.md says"
    else:
        yield record[0].upper() + record[1:]


def compare(today: Surface, present: str, folder: Path = RECORDED) -> list[str]:
    """Return what is to be done before the surface of today agrees with the records; empty if it does.

    Args:
        today: The surface of today.
        present: The version of today.
        folder: The folder of the records.
    """
    versions = recorded_versions(folder)
    if not versions:
        return ["no surface is recorded: run scripts/public_surface.py --record"]
    problems: list[str] = []
    for old, new in pairwise(versions):
        kind = change_between(Surface.read(old, folder), Surface.read(new, folder)).kind
        if not is_allowed(kind, old, new):
            problems.append(
                f"{new} differs from {old} by a change of kind {kind.name}, which its version does not allow"
            )
    change = change_between(Surface.read(versions[-1], folder), today)
    if change.kind is not Kind.NONE:
        problems += [f"the public surface is not that recorded for {versions[-1]}:"]
        problems += _advice(change, versions[-1], present)
    elif versions[-1] != present:
        problems.append(f"no surface is recorded for {present}: run scripts/public_surface.py --record")
    return problems


def main(arguments: Iterable[str] | None = None) -> int:
    """Compare or record the surface."""
    parser = argparse.ArgumentParser(description="compare the public surface with the recorded one")
    parser.add_argument("--record", action="store_true", help="record it for the version of pyproject.toml")
    options = parser.parse_args(None if arguments is None else list(arguments))
    present = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    today = surface_today()
    if options.record:
        today.write(present)
    problems = compare(today, present)
    print("\n".join(problems) or f"the public surface is that recorded for {present}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
