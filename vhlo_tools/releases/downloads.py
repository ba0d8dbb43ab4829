"""Download size of an environment, from a dry-run resolution."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, Final

from packaging.tags import Tag, compatible_tags, cpython_tags, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from vhlo_tools.records import dataclass
from vhlo_tools.releases.environments import (
    PackageRelease,
    UnfitInterpreterError,
    find_interpreters,
    made_environment,
    run_uv,
)

_OLDEST_PYTHON: Final = (3, 8)


@dataclass(frozen=True, slots=True)
class Download:
    release: PackageRelease
    #: Bytes of all wheels, of which uv may have some already; 0 if the environment is made, None if the index does not
    #: say.
    size: int | None


def download_of(requirement: str) -> Download:
    release = PackageRelease.parse(requirement)
    if made_environment(release):
        return Download(release, 0)
    packages, python = _resolved(release)
    # The tags of wheels that a CPython of this machine installs, best first.
    platforms = list(dict.fromkeys(tag.platform for tag in sys_tags()))
    tags = [
        *cpython_tags(python, platforms=platforms),
        *compatible_tags(python, interpreter=f"cp{python[0]}{python[1]}", platforms=platforms),
    ]
    sizes = [_wheel_size(package.get("wheels", ()), tags) for package in packages]
    return Download(release, None if None in sizes else sum(size for size in sizes if size))


def released_on(requirement: str) -> date | None:
    """Return the day of the first wheel of a release on the package index; ``None`` if the index does not say."""
    release = PackageRelease.parse(requirement)
    packages, _ = _resolved(release)
    wanted = release.kind.installed or release.package
    wheels = [wheel for each in packages if each["name"] == wanted for wheel in each.get("wheels", ())]
    times = [wheel["upload-time"] for wheel in wheels if "upload-time" in wheel]
    return min(time.date() for time in times) if times else None


def oldest_python(requirement: str) -> tuple[int, int]:
    """Return the oldest Python of this machine that a release has wheels for."""
    return _resolved(PackageRelease.parse(requirement), oldest=True)[1]


def _resolved(release: PackageRelease, *, oldest: bool = False) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    """Return the packages that a release needs, and the newest (or oldest) Python of this machine that has them."""
    refusal: UnfitInterpreterError | None = None
    for version in sorted(find_interpreters(_OLDEST_PYTHON), reverse=not oldest):
        try:
            return _locked_packages(release, version), version
        except UnfitInterpreterError as error:
            refusal = refusal or error
    raise refusal or UnfitInterpreterError(f"{release}: no CPython was found on this machine")


def _locked_packages(release: PackageRelease, python: tuple[int, int]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "requirements.txt").write_text("\n".join(release.requirements()))
        (folder / "overrides.txt").write_text(release.overrides())
        options = ["--quiet", "--only-binary", ":all:", "--python-version", f"{python[0]}.{python[1]}"]
        options += ["--overrides", "overrides.txt", "--format", "pylock.toml"]
        found = run_uv("pip", "compile", *options, "requirements.txt", folder=folder)
    packages: list[dict[str, Any]] = tomllib.loads(found).get("packages", [])
    return packages


def _wheel_size(wheels: Iterable[dict[str, Any]], tags: list[Tag]) -> int | None:
    """Return the size of the wheel that would be installed, if it is known."""
    sizes: dict[int, int | None] = {}
    rank = {tag: number for number, tag in enumerate(tags)}
    for wheel in wheels:
        try:
            fitting = parse_wheel_filename(wheel["url"].rpartition("/")[2])[3]
        except (InvalidWheelFilename, KeyError):
            continue
        if ranks := [rank[tag] for tag in fitting if tag in rank]:
            sizes[min(ranks)] = wheel.get("size")
    return sizes[min(sizes)] if sizes else None
