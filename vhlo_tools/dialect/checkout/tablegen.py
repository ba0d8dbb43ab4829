"""Read TableGen files with ``llvm-tblgen`` into records as JSON."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from vhlo_tools.dialect.checkout.files import Checkout
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

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
_LARGEST: Final = 1 << 26
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
    programs = [Path(found) for name in wanted if (found := shutil.which(name))]
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
        if not target.is_file() or target.stat().st_size > _LARGEST:
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
            resource.prlimit(process, resource.RLIMIT_FSIZE, (_LARGEST, _LARGEST))
