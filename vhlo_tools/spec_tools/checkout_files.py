"""Files of a checkout of openxla/stablehlo: TableGen records and the sources of versions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec_tools.survey import Unread
from vhlo_tools.version import Version

# Files of a checkout of openxla/stablehlo, or of a fork of it
#
# A checkout is read as data, and may be hostile: only ``llvm-tblgen``, which has no side effects, runs on it, and what
# cannot be read is an :class:`InvalidSpecificationError` that names the file.

#: What a checkout has at least.
_NEEDED: Final = "stablehlo/dialect/VhloOps.td"
# The largest of upstream's has 80 kB, and the longest body in one of them 6 kB.
_LARGEST: Final = 1 << 20
_LONGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Checkout:
    folder: Path  # the root, which contains the folder ``stablehlo``
    unread: list[Unread] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path) -> Checkout:
        if not (folder / _NEEDED).is_file():
            raise InvalidSpecificationError(
                f"{folder} is no checkout of StableHLO: it has no {_NEEDED}; name the folder that `git clone "
                f"https://github.com/openxla/stablehlo` makes, or that of a fork"
            )
        return cls(folder)

    def has(self, file: str) -> bool:
        return (self.folder / file).is_file()

    def text(self, file: str) -> str:
        path = self.folder / file
        try:
            if not path.is_file():
                raise InvalidSpecificationError(f"{path} is missing: expected a whole checkout of StableHLO")
            if path.stat().st_size > _LARGEST:
                raise InvalidSpecificationError(f"{path} is larger than any source file: expected at most 1 MB")
            return path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise InvalidSpecificationError(f"{path} cannot be read: {error.strerror}") from None

    def miss(self, place: str, expected: str, unknown: str) -> None:
        self.unread.append(Unread(place, expected, unknown))


# Either may be left open: it then ends with the line, or with the file.
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BRACE = re.compile("[{}]")
_VERSION = re.compile(r"Version\(\s*\"?\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\"?\s*\)")


def plain_code(text: str) -> str:
    """Remove the comments of C++ and keep the line numbers."""

    def replaced(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n") or " "

    return _COMMENT.sub(replaced, text)


def body_from(text: str, start: int) -> str:
    """Return the text between the next ``{`` and its ``}``; empty if longer than any handwritten body."""
    begin = text.find("{", start, start + _LONGEST)
    depth = 0
    for brace in _BRACE.finditer(text, begin, begin + _LONGEST) if begin >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[begin + 1 : brace.start()]
    return ""


def split_arguments(text: str) -> list[str]:
    """Split the arguments of a call, whose text begins behind its ``(``, at the commas of the call itself."""
    arguments, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        if character == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += character
    return [" ".join(argument.split()) for argument in arguments]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def version_in(text: str) -> Version | None:
    match = _VERSION.search(text)
    return Version(".".join(str(int(number)) for number in match.groups())) if match else None


# Read TableGen files with ``llvm-tblgen`` into records as JSON

_BASE: Final = Path("mlir", "IR", "AttrTypeBase.td")
_OPS: Final = "stablehlo/dialect/VhloOps.td"
_PATTERNS: Final = "stablehlo/transforms/VhloToVersionPatterns.td"
_INSTALL: Final = (
    "install LLVM's TableGen and MLIR's headers (on Debian and Ubuntu: apt install llvm-19 libmlir-19-dev), or name "
    "them with --tblgen and --mlir-include"
)
# Newer than MLIR 19, whose files are otherwise enough for VHLO of any version.
_STUB: Final = 'class APIntParameter<string desc> : AttrOrTypeParameter<"::llvm::APInt", desc>;\n'
_SECONDS: Final = 120
_LARGEST_RECORDS: Final = 1 << 26
_MEMORY: Final = 2 << 30
_NEWEST: Final = 40
_OLDEST: Final = 15


@dataclass(frozen=True, slots=True)
class TableGen:
    program: Path
    include: Path  # the folder that has ``mlir/IR/AttrTypeBase.td``

    @property
    def stub(self) -> str:
        """Definitions that VHLO uses and these files of MLIR lack."""
        text = (self.include / _BASE).read_text(encoding="utf-8", errors="replace")
        return "" if re.search(r"^class APIntParameter\b", text, re.MULTILINE) else _STUB


def find_tablegen(program: Path | None = None, include: Path | None = None) -> TableGen:
    """Find the newest ``llvm-tblgen`` on ``PATH`` that has MLIR's TableGen files beside it."""
    if include is not None and not (include / _BASE).is_file():
        raise InvalidSpecificationError(f"{include} has no {_BASE}: name the folder of MLIR's TableGen files")
    names = ["llvm-tblgen", *(f"llvm-tblgen-{number}" for number in range(_NEWEST, _OLDEST - 1, -1))]
    wanted = [str(program)] if program is not None else names
    # A distribution may have one without MLIR's files in front of one that has them.
    folders = [None] if program is not None else os.get_exec_path()
    programs = [Path(found) for name in wanted for folder in folders if (found := shutil.which(name, path=folder))]
    if not programs:
        what = f"{program} is no program" if program is not None else "there is no llvm-tblgen"
        raise InvalidSpecificationError(f"{what}: {_INSTALL}")
    for each in programs:
        beside = include or each.resolve().parent.parent / "include"
        if (beside / _BASE).is_file():
            return TableGen(each, beside)
    raise InvalidSpecificationError(f"{programs[0]} has no {_BASE} of MLIR beside it: {_INSTALL}")


class Records:
    """Records that ``llvm-tblgen --dump-json`` wrote, read as untrusted data."""

    def __init__(self, data: Mapping[str, Any], folder: Path) -> None:
        self._data = data
        self._folder = folder

    def instances(self, name: str) -> Iterator[Mapping[str, Any]]:
        yield from (self.record(each) for each in self._data.get("!instanceof", {}).get(name, ()))

    def record(self, name: object) -> Mapping[str, Any]:
        wanted = name.get("def") if isinstance(name, Mapping) else name
        found = self._data.get(wanted) if isinstance(wanted, str) else None
        if not isinstance(found, Mapping):
            raise InvalidSpecificationError(f"llvm-tblgen wrote no record {printable(str(wanted))[:80]}")
        return found

    def is_a(self, name: object, kind: str) -> bool:
        return isinstance(name, Mapping) and kind in self.record(name).get("!superclasses", ())

    def place(self, record: Mapping[str, Any]) -> str:
        file, _, line = str((record.get("!locs") or ["?:0"])[-1]).rpartition(":")
        name = Path(file).name
        folder = next((f for f in ("dialect", "transforms") if (self._folder / "stablehlo" / f / name).is_file()), None)
        return printable(f"stablehlo/{folder}/{name}:{line}" if folder else f"{name}:{line}")


def read_records(checkout: Checkout, tablegen: TableGen) -> Records:
    # Before 0.20.0 there was no step between versions of an op, and no file of patterns.
    files = [_OPS, *([_PATTERNS] if checkout.has(_PATTERNS) else [])]
    root = f'include "{_BASE.as_posix()}"\n{tablegen.stub}' + "".join(f'include "{file}"\n' for file in files)
    with TemporaryDirectory() as temporary:
        source, target = Path(temporary, "vhlo.td"), Path(temporary, "vhlo.json")
        source.write_text(root, encoding="utf-8")
        _run(tablegen, checkout.folder, source, target)
        if not target.is_file() or target.stat().st_size > _LARGEST_RECORDS:
            raise InvalidSpecificationError(f"{tablegen.program} wrote no records of {checkout.folder}, or too many")
        try:
            data = json.loads(target.read_bytes())
        except (ValueError, RecursionError) as error:
            raise InvalidSpecificationError(f"{tablegen.program} wrote no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("!instanceof"), dict):
        raise InvalidSpecificationError(f"{tablegen.program} wrote no records: expected an object with !instanceof")
    return Records(data, checkout.folder)


def _run(tablegen: TableGen, folder: Path, source: Path, target: Path) -> None:
    command: list[str | Path] = [
        tablegen.program,
        "--dump-json",
        "-I",
        folder,
        "-I",
        tablegen.include,
        source,
        "-o",
        target,
    ]
    try:
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        ) as process:
            _limit(process.pid)
            try:
                _, errors = process.communicate(timeout=_SECONDS)
            except BaseException:
                process.kill()
                raise
    except OSError as error:
        raise InvalidSpecificationError(
            f"{tablegen.program} cannot be run: {error.strerror or error}: {_INSTALL}"
        ) from None
    except subprocess.TimeoutExpired:
        raise InvalidSpecificationError(f"{tablegen.program} did not end within {_SECONDS} seconds") from None
    if process.returncode:
        said = errors.decode(errors="replace").replace(f"{folder}/", "").strip().splitlines()
        code = f"it ended with {process.returncode}: it crashed, or met its limit of memory or output"
        first = next((line for line in said if "error:" in line.lower()), code)
        raise InvalidSpecificationError(f"llvm-tblgen refuses the files of {folder}: {printable(first)[:300]}")


def _limit(process: int) -> None:
    """Limit memory and output of a process, where the system can (Linux): loops of TableGen have no limit."""
    try:
        import resource
    except ImportError:
        return
    if hasattr(resource, "prlimit"):
        with suppress(OSError):
            resource.prlimit(process, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            resource.prlimit(process, resource.RLIMIT_FSIZE, (_LARGEST_RECORDS, _LARGEST_RECORDS))


# Versions of StableHLO: ``Version.h`` and ``Version.cpp``, the version log of ``VhloDialect.td``, and git

_HEADER: Final = "stablehlo/dialect/Version.h"
_SOURCE: Final = "stablehlo/dialect/Version.cpp"
_DIALECT: Final = "stablehlo/dialect/VhloDialect.td"


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
