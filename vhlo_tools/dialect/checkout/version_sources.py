"""Versions of StableHLO: ``Version.h`` and ``Version.cpp``, the version log of ``VhloDialect.td``, and git."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import Final

from vhlo_tools.dialect.checkout.files import Checkout, body_from, plain_code, version_in
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.version import Version

_HEADER: Final = "stablehlo/dialect/Version.h"
_SOURCE: Final = "stablehlo/dialect/Version.cpp"
_DIALECT: Final = "stablehlo/dialect/VhloDialect.td"
_SECONDS: Final = 120


def read_current(checkout: Checkout) -> Version:
    """Read the current version without its patch number; without it nothing can be compared."""
    version = _of_method(checkout, "getCurrentVersion")
    if version is None:
        raise InvalidSpecificationError(
            f"{checkout.folder / _HEADER} has no getCurrentVersion() {{ return Version(#, #, #); }}: the version of "
            "the checkout is not known"
        )
    return version.minor_release


def read_minimum(checkout: Checkout) -> Version | None:
    version = _of_method(checkout, "getMinimumVersion")
    if version is None:
        checkout.miss(_HEADER, "getMinimumVersion() { return Version(#, #, #); }", "the oldest version")
    return version


def _of_method(checkout: Checkout, name: str) -> Version | None:
    code = plain_code(checkout.text(_HEADER))
    place = code.find(f"Version {name}()")
    return version_in(body_from(code, place)) if place >= 0 else None


def version_log(checkout: Checkout) -> dict[Version, str]:
    text = checkout.text(_DIALECT)
    _, found, log = text.partition("Version log:")
    lines = re.findall(r"^\s*(\d{1,9}\.\d{1,9}\.\d{1,9}):\s*(\S.*?)\s*$", log.partition("}]")[0], re.MULTILINE)
    if not found or not lines:
        checkout.miss(
            _DIALECT, "Version log: with lines #.#.#: TEXT", "which versions there are, and what they brought"
        )
    return {Version(version): text for version, text in lines if _is_version(version)}


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except ValueError:
        return False
    return True


# if (*this < Version(0, 12, 0)) return 1;
_BELOW: Final = re.compile(r"\*this\s*<=?\s*([^)]*\))\s*\)\s*return\s+(\d{1,3})\s*;")


def bytecode_versions(checkout: Checkout, versions: Collection[Version]) -> dict[Version, int]:
    code = plain_code(checkout.text(_SOURCE)) if checkout.has(_SOURCE) else ""
    place = code.find("Version::getBytecodeVersion()")
    rules = _BELOW.findall(body_from(code, place)) if place >= 0 else []
    if not rules:
        checkout.miss(_SOURCE, "getBytecodeVersion() with lines if (*this < Version(#, #, #)) return #;", "bytecode")
    found: dict[Version, int] = {}
    for version in versions:
        for bound, number in rules:
            below = version_in(bound)
            if "getCurrentVersion" in bound or (below is not None and version < below):
                found[version] = int(number)
                break
    return found


def dates_of(checkout: Checkout, versions: Collection[Version]) -> dict[Version, tuple[date, str]]:
    """Date versions by upstream's tag (``tag``), or else by the first commit that set the version (``commit``)."""
    if not (checkout.folder / ".git").exists():
        return {}
    found: dict[Version, tuple[date, str]] = {}
    for version in versions:
        tagged = _git(checkout.folder, "log", "-1", "--format=%cs", f"refs/tags/v{version}", "--")
        numbers = f"Version({version.major}, {version.minor}, 0)"
        text = f"getCurrentVersion() {{ return {numbers}; }}"
        day = tagged or _git(checkout.folder, "log", "--reverse", "--format=%cs", f"-S{text}", "--", _HEADER)
        if day:
            found[version] = (date.fromisoformat(day), "tag" if tagged else "commit")
    return found


# A checkout's own settings may name programs: none of those that reading its history could start is started.
_HARMLESS: Final = (
    *("-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "protocol.allow=never", "-c", "core.pager=cat", "--no-pager"),
)


def _git(folder: Path, command: str, *arguments: str) -> str | None:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    options = ["--no-ext-diff", "--no-textconv"]
    whole = ["git", *_HARMLESS, "-C", str(folder), command, *options, *arguments]
    try:
        ended = subprocess.run(
            whole, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = ended.stdout.decode(errors="replace").split() if ended.returncode == 0 else []
    return lines[0] if lines and re.fullmatch(r"\d{4}-\d\d-\d\d", lines[0]) else None
