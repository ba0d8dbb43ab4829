"""Cache of findings, by the digest of a file and of all that its findings depend on."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

import vhlo_tools
from vhlo_tools.files import open_regular, write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.gate.examination import Examination, Examiner, ProgramFacts
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.version import InvalidVersionError, Version

if TYPE_CHECKING:
    from vhlo_tools.gate.report_model import Question

# Cache key of everything but the program: the digest of whatever else findings depend on

#: The distributions that read programs: bindings, and the frameworks of exported programs.
_LIBRARIES: Final = (
    *("flatbuffers", "jax", "jaxlib", "ml_dtypes", "numpy", "stablehlo", "tensorflow", "tensorflow-cpu", "torch"),
    *("torch-mlir", "torchax"),
)
_PROVIDER: Final = "VHLO_TOOLS_PROVIDER"
_READ: Final = (".py", ".toml")


def context_digest(examiner: Examiner, questions: Sequence[Question], *, facts: bool = False) -> bytes:
    """Digest everything that an examination depends on, except the program and its name.

    Questions count by what they resolve to: ``12w`` changes once another version is the newest of the window.
    """
    asked = []
    for each in questions:
        readers = [one for one in each.target.consumers if each.reading or one.loses]
        asked.append((each.reading, str(each.target.version), readers))
    return hashlib.sha256(repr((_environment(), examiner, asked, facts)).encode("utf-8", "surrogatepass")).digest()


@cache
def _environment() -> tuple[object, ...]:
    provider = os.environ.get(_PROVIDER)
    installed: dict[str, str | None] = dict.fromkeys(_LIBRARIES)
    for each in _LIBRARIES:
        with suppress(PackageNotFoundError):
            installed[each] = version(each)
    return (_toolkit(), platform.python_version(), provider, installed)


def _toolkit() -> str:
    """Digest the sources: the version stays the same while somebody edits a checkout or mends an installed package."""
    package = Path(vhlo_tools.__file__).parent
    digest = hashlib.sha256()
    for top in (package, package.parent / "dialect_specs"):
        found = (f"{folder}/{name}" for folder, _, names in os.walk(top) for name in names if name.endswith(_READ))
        for path in sorted(found):
            data = Path(path).read_bytes()
            digest.update(f"{os.path.relpath(path, top)}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


# Findings of earlier runs, by content: a folder of segments, each written once and never changed
#
# A run reads all segments at its start, and writes one with its findings at its end, so concurrent runs need no locks.
# When there are many segments, a run merges them into one, and removes those that it has read. A segment that cannot be
# read, for whatever reason, is removed: it only costs time.
#
# A segment of the right types is believed: whoever can write to the folder can decide what the findings of a program
# are. The folder deserves the trust of the programs' checkout, and no more.

_SUFFIX: Final = ".findings"
_FORMAT: Final = 2
_HASH: Final = 32
#: More segments than this are written again as one.
_SEGMENTS: Final = 8
#: The most bytes of all segments together; what was not used for longest goes first.
_LARGEST: Final = 1 << 26
_DAY: Final = 86_400
#: Findings that were not used for so many days go.
_OLD: Final = 60
#: Findings are marked as used once in so many days, so that most runs need not write.
_STAMPED: Final = 7
_TAG: Final = """Signature: 8a477f597d28d172789f06886806bc55
# This folder holds findings of `vhlo check`. It can be deleted at any time.
# The signature is that of https://bford.info/cachedir/.
"""


class _Entry(NamedTuple):
    #: The day of the last use, counted from 1970.
    day: int
    value: bytes


class _Segment(msgspec.Struct, frozen=True, array_like=True):
    format: int
    #: Each value once: most programs have no findings, and many have those of a program that they are a copy of.
    values: list[bytes]
    #: The day of the last use and the index of the value, by key.
    entries: dict[bytes, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Kept:
    findings: tuple[tuple[Finding, ...], ...]
    facts: ProgramFacts | None
    functions: int | None
    kind: str | None
    version: Version | None
    digest: bytes | None = None  # of what is found by its identity


def _from_version(value: Any) -> str:
    if isinstance(value, Version):
        return str(value)
    raise NotImplementedError(type(value))


def _to_version(kind: type[Any], value: Any) -> Any:
    if kind is not Version:
        raise NotImplementedError(kind)
    try:
        return Version(value)
    except InvalidVersionError as error:
        raise ValueError(str(error)) from error


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_from_version)
_DECODER: Final = msgspec.msgpack.Decoder(_Kept, dec_hook=_to_version)
_SEGMENT_DECODER: Final = msgspec.msgpack.Decoder(_Segment)
_DAMAGED: Final = (msgspec.DecodeError, ValueError, IndexError, RecursionError, MemoryError, OSError)


class FindingsCache:
    """Findings of earlier runs, as a context manager: leaving it writes what was added.

    Without a folder, findings are kept for this run only. ``today`` is in days since 1970.
    """

    def __init__(self, folder: Path | None = None, *, today: int | None = None) -> None:
        self._folder = folder
        self._today = int(time.time() // _DAY) if today is None else today
        self._segments: list[Path] = []
        self._entries: dict[bytes, _Entry] = {}
        self._added: dict[bytes, _Entry] = {}
        self._decoded: dict[bytes, _Kept] = {}
        # Whether a segment says what cannot be.
        self._rewrites = False
        self._size = 0  # of what was added
        if folder is not None:
            self._read(folder)

    def get(self, context: bytes, digest: bytes, name: str, questions: int = 1) -> Examination | None:
        """``context`` is from :func:`.cache_context.context_digest`, ``digest`` is the program's SHA-256."""
        # Only what says the name depends on it.
        kept = self._kept(_key(context, digest), questions) or self._kept(_key(context, digest, name), questions)
        return None if kept is None else _examination(kept, digest, None)

    def get_version(self, context: bytes, identity: str, name: str, questions: int = 1) -> Examination | None:
        """Return that of a version of a file or an object, which has not been read."""
        kept = self._kept(_key(context, _of_version(identity), name), questions)
        return None if kept is None else _examination(kept, kept.digest, identity)

    def _kept(self, key: bytes, questions: int) -> _Kept | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        kept = self._value(entry)
        if kept is None or len(kept.findings) != questions:
            self._rewrites = True
            return None
        if entry.day + _STAMPED < self._today:
            self._add(key, entry.value)
        return kept

    def put(self, context: bytes, name: str, examination: Examination) -> bool:
        """Keep an examination; return whether it holds for equal programs of other names.

        Errors are not kept: a crash, a limit or a full disk may be gone the next time.
        """
        found = examination
        if found.error is not None:
            return False
        kept = _Kept(found.findings, found.facts, found.functions, found.kind, found.version)
        if found.identity is not None:
            value = _ENCODER.encode(replace(kept, digest=found.digest))
            self._add(_key(context, _of_version(found.identity), name), value)
        if found.digest is None:
            return False
        named = _says(found, name)
        self._add(_key(context, found.digest, name if named else None), _ENCODER.encode(kept))
        return not named

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What was found before an interruption is as good.
        if self._folder is not None and self._added:
            with suppress(OSError):
                self._write(self._folder)

    def _add(self, key: bytes, value: bytes) -> None:
        # No more than what is kept: there may be very many programs.
        if self._size < _LARGEST // 2:
            self._size += len(key) + len(value)
            self._added[key] = self._entries[key] = _Entry(self._today, value)

    def _value(self, entry: _Entry) -> _Kept | None:
        # Most programs have no findings: few values are different.
        known = self._decoded.get(entry.value)
        if known is None:
            try:
                known = _DECODER.decode(entry.value)
            except _DAMAGED:
                return None
            self._decoded[entry.value] = known
        return known

    def _read(self, folder: Path) -> None:
        left = 2 * _LARGEST
        for path in _segments_in(folder):
            try:
                with open_regular(path) as file:
                    left -= os.fstat(file.fileno()).st_size
                    data = file.read() if left >= 0 else b""
                body = memoryview(data)[_HASH:]
                if hashlib.sha256(body).digest() != data[:_HASH]:
                    raise ValueError("the digest is that of other bytes")
                segment = _SEGMENT_DECODER.decode(body)
                if segment.format != _FORMAT:
                    raise ValueError("another format")
                found = {key: _Entry(day, segment.values[index]) for key, (day, index) in segment.entries.items()}
            except FileNotFoundError:
                continue
            except _DAMAGED:
                with suppress(OSError):
                    path.unlink()
                continue
            self._segments.append(path)
            for key, entry in found.items():
                known = self._entries.get(key)
                if known is None or known.day < entry.day:
                    self._entries[key] = entry

    def _write(self, folder: Path) -> None:
        _make(folder)
        joins = self._rewrites or len(self._segments) >= _SEGMENTS
        entries = self._pruned() if joins else self._added
        values: dict[bytes, int] = {}
        indices = {key: (day, values.setdefault(value, len(values))) for key, (day, value) in entries.items()}
        body = msgspec.msgpack.encode(_Segment(_FORMAT, list(values), indices))
        path = folder / f"{os.urandom(8).hex()}{_SUFFIX}"
        write_atomically(path, [hashlib.sha256(body).digest(), body])
        self._added = {}
        for old in self._segments if joins else ():
            old.unlink(missing_ok=True)

    def _pruned(self) -> dict[bytes, _Entry]:
        """Return the entries worth keeping, the latest first, as far as they fit in half of the limit."""
        left, kept, values = _LARGEST // 2, dict[bytes, _Entry](), set[bytes]()
        for key, entry in sorted(self._entries.items(), key=lambda item: item[1].day, reverse=True):
            left -= len(key) + (0 if entry.value in values else len(entry.value))
            values.add(entry.value)
            if left < 0 or entry.day + _OLD < self._today:
                break
            kept[key] = entry
        return kept


def _examination(kept: _Kept, digest: bytes | None, identity: str | None) -> Examination:
    found = Examination(kept.findings, kept.facts, kept.functions, kept.kind, kept.version)
    return replace(found, digest=digest, identity=identity)


def _of_version(identity: str) -> bytes:
    return hashlib.sha256(b"version " + identity.encode("utf-8", "surrogatepass")).digest()


def _key(context: bytes, digest: bytes, name: str | None = None) -> bytes:
    named = b"" if name is None else b"\0" + name.encode("utf-8", "surrogatepass")
    return hashlib.sha256(context + digest + named).digest()[:20]


def _says(examination: Examination, name: str) -> bool:
    """Whether a text of the examination may come from the name of the program."""
    names = {name, printable(name)}
    for findings in examination.findings:
        for finding in findings:
            place = finding.location.file if finding.location else None
            texts = (finding.message, finding.op, finding.remedy, finding.path, finding.function, place)
            if any(each in text for text in texts if text for each in names):
                return True
    return False


def _segments_in(folder: Path) -> Sequence[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.name.endswith(_SUFFIX))
    except OSError:
        return ()


def _make(folder: Path) -> None:
    """Make the folder, which git and backups leave out; an existing folder is left as it is."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    (folder / ".gitignore").write_text("*\n", encoding="ascii")
    (folder / "CACHEDIR.TAG").write_text(_TAG, encoding="ascii")
