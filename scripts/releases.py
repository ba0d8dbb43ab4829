"""Keep the tables of releases: `releases.py [--write] [PACKAGE | RELEASE ...]`.

It asks the package index which releases of jaxlib, jax, tensorflow, torch-mlir, iree-base-compiler and of the plugins
libtpu, jax-cuda12-pjrt and jax-cuda13-pjrt there are, installs those that dialect_specs/releases.toml and
dialect_specs/jax_export/releases.toml do not have, each in an environment of its own, and asks them for their StableHLO
versions, or tries which artifacts they read. `--write` adds them to the tables. A RELEASE, such as jaxlib==0.4.31, is
asked even if it is known, and compared with what the table has; `--again` does that with all of a PACKAGE. `--remove`
removes environments that it made, once they were asked. What a release reads is told best with the newest library
installed, which writes artifacts of the newest features.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from packaging.version import Version
from release_probing import Probing, probe, probe_jax

from vhlo_tools import VhloToolsError
from vhlo_tools.releases import PackageRelease, find_interpreters, made_environment, released_on, run_uv

ROOT: Final = Path(__file__).resolve().parents[1]
#: What shows the faults of a new compiler, in a quarter of an hour.
SWEEP: Final = "python tests/conformance/engine_sweep.py --count 20000 --jobs 2 --record"
#: The package that asks the index; it is the index's ordinary client.
PIP: Final = "pip>=25.1"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of releases."""

    path: Path  # its file
    #: the packages in it, each with the first release that is of interest, and a comment that stands before its entries
    packages: Mapping[str, tuple[str, str]]
    #: returns the entry of a release, without its name and its day, and doubts about it
    probe: Callable[[str], tuple[dict[str, Any], tuple[str, ...]]]
    named: bool  # whether entries name their package. They stand by day, others by version


def entry_of(requirement: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the entry of a release that reads artifacts, without its name and its day, and doubts about it."""
    found = probe(requirement)
    windows = {f"week_{name.removeprefix('WEEK_')}": version for name, version in found.windows.items()}
    entry = {"stablehlo": found.stablehlo, "minimum": found.minimum, **windows, "python": found.python}
    return entry | ({"probed": True} if found.probed else {}), found.doubts


def _jax_entry_of(requirement: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = probe_jax(requirement)
    release = str(PackageRelease.parse(requirement).version)
    entry: dict[str, Any] = {"jaxlib": found.jaxlib} if found.jaxlib != release else {}
    entry |= {"serialization_version": found.serialization_version, "calling_convention": found.calling_convention}
    return entry | ({"always": list(found.always)} if found.always else {}), found.doubts


def tables() -> tuple[Table, ...]:
    """Return the tables."""
    specs = ROOT / "dialect_specs"
    readers = {
        "jaxlib": ("0.4.13", "jaxlib: each was installed and asked."),
        "tensorflow": ("2.16", "tensorflow-cpu, which is the same for machines without GPU, was installed and asked."),
        "torch-mlir": ("20260101", "Installed and asked (its private _stablehlo module)."),
        "iree-base-compiler": ("3.0", "Reads only, and has no version query: given artifacts of every version."),
        "libtpu": ("0.0.1", "The compiler of TPUs, a plugin of PJRT: asked through its interface, without a TPU."),
        "jax-cuda12-pjrt": ("0.4.23", "The compiler of GPUs for CUDA 12, asked in the same way, without a GPU."),
        "jax-cuda13-pjrt": ("0.7.2", "The same for CUDA 13."),
    }
    return (
        Table(specs / "releases.toml", readers, entry_of, True),
        Table(specs / "jax_export" / "releases.toml", {"jax": ("0.4.30", "")}, _jax_entry_of, False),
    )


def available(package: str) -> list[Version]:
    """Return the final releases of a package that the index has for some Python of this machine, oldest first.

    Raises:
        ReleaseEnvironmentError: If the index cannot be asked.
    """
    asked = {"tensorflow": "tensorflow-cpu"}.get(package, package)
    found: set[Version] = set()
    for major, minor in find_interpreters((3, 9)):
        options = ["--json", "--only-binary", ":all:", "--python-version", f"{major}.{minor}"]
        try:
            said = run_uv("tool", "run", "--from", PIP, "pip", "index", "versions", asked, *options, folder=ROOT)
        except VhloToolsError:
            continue  # nothing for this Python
        found |= {Version(each) for each in json.loads(said)["versions"]}
    return sorted(each for each in found if not each.is_prerelease)


def wanted(table: Table, known: list[dict[str, Any]], names: list[str], *, again: bool) -> Iterator[tuple[str, str]]:
    """Yield the packages and releases to ask, of those that are named, or of all."""
    have = {(each.get("package", "jax"), each["release"]) for each in known}
    for package, (first, _) in table.packages.items():
        single = [each.partition("==")[2] for each in names if each.startswith(f"{package}==")]
        yield from ((package, each) for each in single)
        if package in names or not names:
            for version in available(package):
                if version >= Version(first) and (again or (package, str(version)) not in have):
                    yield package, str(version)


def merged(table: Table, known: list[dict[str, Any]], new: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries with new ones, which replace those of the same release, in the order of the table."""
    entries = {(each.get("package", "jax"), each["release"]): each for each in (*known, *new)}
    order = list(table.packages)
    return sorted(
        entries.values(),
        key=lambda each: (
            order.index(each.get("package", "jax")),
            each["date"] if table.named else date.min,
            Version(each["release"]),
        ),
    )


def written(table: Table, entries: Iterable[dict[str, Any]]) -> str:
    """Return the file of a table: its first comment as it stands, and the entries."""
    lines = table.path.read_text().splitlines()
    head = lines[: next(number for number, line in enumerate(lines) if line.startswith("[["))]
    comments = {f"# {comment}" for _, comment in table.packages.values()}
    while head and (not head[-1].strip() or head[-1] in comments):
        head.pop()
    out, package = head, ""
    for entry in entries:
        if table.named and entry["package"] != package:
            package = entry["package"]
            out += ["", f"# {table.packages[package][1]}"]
        out += ["", "[[release]]", *(f"{key} = {_text(value)}" for key, value in entry.items())]
    return "\n".join(out) + "\n"


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | bool | int | list) else str(value)


def work(table: Table, names: list[str], *, again: bool, write: bool, remove: bool) -> bool:
    """Ask the releases of a table, say what was found, and write it; return whether all is as the table has it."""
    known = tomllib.loads(table.path.read_text())["release"]
    before = {(each.get("package", "jax"), each["release"]): each for each in known}
    same = True
    for package, release in wanted(table, known, names, again=again):
        requirement = f"{package}=={release}"
        was_made = made_environment(PackageRelease.parse(requirement)) is not None
        try:
            facts, doubts = table.probe(requirement)
            head = {"package": package, "release": release} if table.named else {"release": release}
            old = before.get((package, release))
            # The day of the first wheel; for old entries the date on its files, a day or two before.
            entry = {**head, "date": old["date"] if old else released_on(requirement), **facts}
        except (Probing, VhloToolsError) as error:
            print(f"{requirement}: no entry: {str(error).splitlines()[0]}", flush=True)
            continue
        finally:
            if remove and not was_made and (python := made_environment(PackageRelease.parse(requirement))):
                shutil.rmtree(python.parents[1])
        changed = {key: value for key, value in entry.items() if old is not None and old.get(key) != value}
        same &= old is not None and not changed
        state = "new" if old is None else f"changed: {changed}" if changed else "as it stands"
        print(
            f"{requirement}: {state}: {', '.join(f'{key} {_text(value)}' for key, value in facts.items())}", flush=True
        )
        for doubt in doubts:
            print(f"  look at: {doubt}", flush=True)
        if old is None and package == "jaxlib":
            print(f"  judge it, in an environment with {requirement}: {SWEEP}", flush=True)
        if write:
            # At once: the next one may be the last.
            known = merged(table, known, [entry])
            table.path.write_text(written(table, known))
    return same


def main() -> int:
    """Ask releases."""
    parser = argparse.ArgumentParser(description="keep the tables of releases")
    parser.add_argument("names", nargs="*", metavar="PACKAGE|RELEASE", help="by default all packages")
    parser.add_argument("--again", action="store_true", help="ask known releases too")
    parser.add_argument("--write", action="store_true", help="write what was found into the tables")
    parser.add_argument("--remove", action="store_true", help="remove the environments that were made")
    options = parser.parse_args()
    packages = {package for table in tables() for package in table.packages}
    if unknown := [each for each in options.names if each.partition("==")[0] not in packages]:
        parser.error(f"{unknown[0]} is no release of {', '.join(sorted(packages))}")
    how = {"again": options.again, "write": options.write, "remove": options.remove}
    same = [work(table, options.names, **how) for table in tables()]
    return 0 if all(same) or options.write else 1


if __name__ == "__main__":
    sys.exit(main())
