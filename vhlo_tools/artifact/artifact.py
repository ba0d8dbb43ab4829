"""A portable artifact: bytes, and what can be read from them without a compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.artifact.content import ARTIFACT_PRODUCER, Kind, recognise
from vhlo_tools.artifact.jax_export import decode_jax_export
from vhlo_tools.artifact.storage import Buffer, as_bytes, read_bytes
from vhlo_tools.bytecode import MAGIC, Chunk, File, Section, decode, encode_chunks, strip_locations
from vhlo_tools.bytecode.printing import print_program
from vhlo_tools.errors import DowngradeError, InvalidProgramError, InvalidVersionError, MalformedArtifactError
from vhlo_tools.files import write_atomically
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, AliasConfig, CallAliases, Form, ProgramAliases
    from vhlo_tools.artifact.inventory import Inventory
    from vhlo_tools.compat import Requirements

__all__ = ["Artifact", "other_dialects"]

# What portable serialization itself writes: the module op and locations are of `builtin`.
_PORTABLE_DIALECTS = frozenset({"vhlo", "builtin"})


class Artifact:
    """A StableHLO portable artifact: MLIR bytecode of VHLO, written for one version of StableHLO.

    The header and the table of sections are checked when the artifact is made; the rest is read when it is asked for.

    Args:
        data: The bytes. They are not copied, and must not be changed afterwards.
        name: What to call it in messages.
        trusted: The attribute.

    Attributes:
        findings: What there is to say of how it was written: warnings about what its consumer may choke on.
        trusted: Whether MLIR can read it without harm: it wrote it in this process, or has read it in another. Bytes
            from elsewhere are not trusted, nor what is made of them without MLIR.

    Raises:
        MalformedArtifactError: If ``data`` is something else, or its header or its sections are damaged.
    """

    def __init__(self, data: Buffer, *, name: str = "the artifact", trusted: bool = False) -> None:
        self._chunks: Sequence[Buffer] = (data,)
        self.name = name
        self.findings: tuple[Finding, ...] = ()
        self.trusted = trusted
        self._requirements: Requirements | None = None
        _require_artifact(data, name)
        text = self.file.producer.removeprefix(ARTIFACT_PRODUCER.decode())
        try:
            self._version = Version(text)
        except InvalidVersionError as error:
            raise MalformedArtifactError(
                f"{name} has the producer {self.file.producer!r}, which ends in no version: {error}",
                offset=bytes(memoryview(data)[: len(MAGIC) + 9 + len(ARTIFACT_PRODUCER)]).index(ARTIFACT_PRODUCER),
                section="header",
            ) from error

    @classmethod
    def open(
        cls, source: str | PathLike[str] | Buffer | Artifact, *, name: str | None = None, unpack: bool = True
    ) -> Artifact:
        """Return the artifact in a file or in bytes.

        Args:
            source: A path, the bytes themselves, or an artifact, which is returned as it is.
            name: What to call it in messages, by default its path.
            unpack: Whether the artifact is also taken out of a jax.export file.

        Raises:
            MalformedArtifactError: If it holds none, or a damaged one.
            OSError: If the file cannot be read.
        """
        if isinstance(source, Artifact):
            return source
        if isinstance(source, str | PathLike):
            name, data = name or str(source), read_bytes(Path(source))
        elif isinstance(source, bytes | bytearray | memoryview):
            name, data = name or "the input", as_bytes(source)
        else:
            raise MalformedArtifactError(f"a {type(source).__qualname__} is no artifact: expected a path or bytes")
        if unpack and _kind_or_none(data) is Kind.JAX_EXPORT:
            return cls(decode_jax_export(data).module, name=name)
        return cls(data, name=name)

    @property
    def _data(self) -> Buffer:
        return self._chunks[0]

    @cached_property
    def file(self) -> File:
        """Its bytes taken apart, lazily."""
        try:
            return decode(memoryview(self._data))
        except MalformedArtifactError as error:
            # Where there are several inputs, it must be said which.
            error.args = (f"{self.name}: {error}",)
            raise

    @property
    def version(self) -> Version:
        """The StableHLO version it was written for, as its header says."""
        return self._version

    @property
    def producer(self) -> str:
        """The producer as its header says, ``StableHLO_v#.#.#``."""
        return self.file.producer

    @property
    def bytecode_version(self) -> int:
        """The version of MLIR bytecode it is written in, 0 to 6."""
        return self.file.version

    @property
    def sections(self) -> tuple[Section, ...]:
        """Its bytecode sections, in the order of the file."""
        return self.file.sections

    @cached_property
    def dialects(self) -> dict[str, list[str]]:
        """The dialects in it, each with the names of the ops that it uses.

        Raises:
            MalformedArtifactError: If their section is damaged.
        """
        return names_by_dialect(self.file)

    def requirements(self) -> Requirements:
        """Return what it requires: who can read it, how far down it can go, and why not further.

        Nothing is computed before it is asked of the result.
        """
        # Not at the top: what opens an artifact should not wait for the rules of every op.
        from vhlo_tools.compat.requirements import Requirements

        if self._requirements is None:
            self._requirements = Requirements(self.file, self.version, self.name)
        return self._requirements

    def inventory(self) -> Inventory:
        """Return what it holds: ops, types, attributes, functions, aliases and constants.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.inventory import take_inventory

        return take_inventory(self.file)

    def aliases(self) -> AliasConfig:
        """Return which outputs of its function ``main`` may be written over which inputs, and which are given away.

        Raises:
            AliasError: If XLA would refuse what it says of that; :meth:`declared_aliases` returns it all the same.
            MalformedArtifactError: If it is damaged.
        """
        return self.declared_aliases().declared.config()

    def declared_aliases(self) -> ProgramAliases:
        """Return all that it says of aliases and donors, right or wrong, with the custom calls that have their own.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        # Not at the top: what only opens artifacts should not wait for it.
        from vhlo_tools.artifact.aliases import read_aliases

        return read_aliases(self.file, self.name)

    def alias_findings(self) -> list[Finding]:
        """Return what is wrong with its aliases: errors for what XLA refuses, warnings for what is hardly meant.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.aliasing import DROPPED, lint_aliases
        from vhlo_tools.artifact.aliases import mentions_aliases

        # Of donations that are not in the program only the framework knew.
        dropped = [each for each in self.findings if each.feature == DROPPED]
        return [*(lint_aliases(self.declared_aliases()) if mentions_aliases(self.file) else ()), *dropped]

    def with_aliases(self, config: AliasConfig, form: Form | None = None) -> Artifact:
        """Return it with the aliases and donors of ``config`` and no others; constants are views into this artifact.

        Args:
            config: The aliases and donors, of the signature of its function ``main``: that of :meth:`aliases`.
            form: Where to write the aliases; by default where they are, or else where they can be. ``argument`` for
                attributes of arguments, ``module`` for one of the module. Donors are attributes of arguments.

        Raises:
            AliasError: If ``config`` is of another signature, or ``form`` cannot say it.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.aliases import write_aliases

        file = self.copy_of_file()
        write_aliases(file, config, form)
        return self.edited(file)

    def custom_calls(self) -> tuple[CallAliases, ...]:
        """Return its custom calls: where each stands, what it calls, takes and gives, and which aliases it has.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.call_aliases import read_calls

        return read_calls(self.file, self.name)

    def with_call_aliases(self, aliases: Mapping[str, Iterable[Alias]]) -> Artifact:
        """Return it with other ``output_operand_aliases`` of custom calls; constants are views into this artifact.

        Args:
            aliases: Which results are written over which operands, by the path of a call, as :meth:`custom_calls` has
                it, or by a target, for all calls of it. Each must be: the kind is ``must-alias``.

        Raises:
            AliasError: If there is no such call, or an alias of it is one that StableHLO and XLA refuse.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.call_aliases import write_call_aliases

        file = self.copy_of_file()
        write_call_aliases(file, aliases, self.name)
        return self.edited(file)

    def with_names(self, parameters: Mapping[int, str], results: Mapping[int, str]) -> Artifact:
        """Return it with names for arguments and results of its function ``main``; others keep theirs.

        Names of arguments are locations, as JAX writes them, which :meth:`stripped` takes away; those of results are
        the attributes ``jax.result_info``. No others are known that every reader takes.

        Args:
            parameters: The names by the numbers of arguments.
            results: The names by the numbers of results.

        Raises:
            InvalidProgramError: If there is no such function, argument or result.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.value_names import write_names

        file = self.copy_of_file()
        write_names(file, parameters, results)
        return self.edited(file)

    def text(self, *, debug_info: bool = False) -> str:
        """Return it as generic VHLO text, of whatever version it is.

        What no specification describes, such as attributes of other dialects, is named and cannot be parsed again.

        Args:
            debug_info: Whether to print locations.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        return print_program(self.file, debug_info=debug_info)

    def stripped(self) -> list[Chunk]:
        """Return its bytes without debug information, in pieces; constants are views into this artifact.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        file = decode(memoryview(self._data))
        strip_locations(file)
        return encode_chunks(file)

    def retargeted(self, target: Version) -> Artifact:
        """Return it at another version, moved there on its bytes; constants are views into this artifact.

        Nothing large is held before it is asked for: :meth:`save` copies constants from file to file.

        Args:
            target: Any version that the specification knows.

        Raises:
            DowngradeError: If it holds what the target does not have. The findings are all that it holds.
            UnsupportedFeatureError: If it holds what is gone by then, or what cannot be moved in bytes.
            MalformedArtifactError: If it is damaged.
        """
        # Not at the top: what only opens artifacts should not wait for it.
        from vhlo_tools.retargeting import retarget_file

        requirements = self.requirements()
        found = requirements.findings(target)
        if errors := [each for each in found if each.level == "error"]:
            reach = f"it can be written for StableHLO {requirements.downgradable_to} or later"
            raise DowngradeError(f"{self.name} cannot be written for {target}; {reach}", errors)
        file = decode(memoryview(self._data))
        notes = retarget_file(file, target)
        told = {note.feature for note in notes}
        warnings = (each for each in found if each.feature not in told)
        return _Moved(file, target, name=self.name, trusted=self.trusted).with_findings([*warnings, *notes])

    def edited(self, file: File) -> Artifact:
        """Return the artifact that ``file`` is, which was made of this one and edited; constants are views."""
        # Values from another file are written, and cannot be looked into: the bytes are taken apart again.
        moved = _Moved(file, self.version, name=self.name, trusted=self.trusted, keep=False)
        return moved.with_findings(self.findings)

    def copy_of_file(self) -> File:
        """Return its bytes taken apart once more, to be edited."""
        return decode(memoryview(self._data))

    def with_findings(self, findings: Iterable[Finding]) -> Artifact:
        """Return the same artifact with ``findings`` said of it."""
        same = copy(self)
        same.findings = tuple(findings)
        return same

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to ``path``, whole or not at all.

        Args:
            path: Where; ``.mlirbc`` is the suffix that other tools know.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If it cannot be written.
        """
        write_atomically(Path(path), self.chunks, force=force)

    @property
    def chunks(self) -> list[Chunk]:
        """Its bytes in pieces, large ones views of what it was made from."""
        return [memoryview(chunk) for chunk in self._chunks]

    def __bytes__(self) -> bytes:
        return self._data if isinstance(self._data, bytes) else bytes(self._data)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __eq__(self, other: object) -> bool:
        return memoryview(self._data) == memoryview(other._data) if isinstance(other, Artifact) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._version, len(self._data)))

    def __repr__(self) -> str:
        return f"<Artifact {self.name!r}: StableHLO {self.version}, {len(self)} bytes>"


class _Moved(Artifact):
    """An artifact in pieces, which are put together only if somebody wants its bytes."""

    def __init__(self, file: File, version: Version, *, name: str, trusted: bool, keep: bool = True) -> None:
        self._chunks = encode_chunks(file)
        self.name = name
        self.findings = ()
        self.trusted = trusted
        self._requirements = None
        self._version = version
        self._bytecode_version = file.version
        if keep:
            # Its parts are those that were written, and constants in it are views into what it was made of.
            self.file = file

    @property
    def _data(self) -> Buffer:
        if len(self._chunks) > 1:
            self._chunks = (b"".join(self._chunks),)
        return self._chunks[0]

    @property
    def bytecode_version(self) -> int:
        return self._bytecode_version

    @property
    def sections(self) -> tuple[Section, ...]:
        return decode(memoryview(self._data)).sections


def other_dialects(artifact: Artifact) -> frozenset[str]:
    """Return the dialects in ``artifact`` that are no part of portable serialization, such as ``sdy``."""
    return frozenset(artifact.dialects) - _PORTABLE_DIALECTS


def names_by_dialect(file: File) -> dict[str, list[str]]:
    """Return the dialects of a bytecode file, each with the names of the ops that it uses."""
    names: dict[str, list[str]] = {file.dialect(index): [] for index in range(len(file.dialects.names))}
    for op in file.dialects.ops:
        names[file.dialect(op.dialect)].append(file.string(op.name))
    return names


def _kind_or_none(data: Buffer) -> Kind | None:
    try:
        return recognise(data)
    except InvalidProgramError:
        return None


def _require_artifact(data: Buffer, name: str) -> None:
    try:
        kind = recognise(data, name)
    except InvalidProgramError as error:
        raise MalformedArtifactError(str(error), offset=0, section="header") from error
    if kind is Kind.PORTABLE_ARTIFACT:
        return
    found = {
        Kind.MLIR_BYTECODE: "ordinary MLIR bytecode, which promises no compatibility",
        Kind.MLIR_TEXT: "text",
        Kind.JAX_EXPORT: "a jax.export file, which holds an artifact",
    }[kind]
    whole = (
        ", and `vhlo retarget`, `vhlo strip` and the functions of vhlo_tools.integrations.jax take the file as it is"
        if kind is Kind.JAX_EXPORT
        else ""
    )
    raise MalformedArtifactError(
        f"{name} is {found}: expected a portable artifact; `vhlo serialize` makes one of it{whole}",
        offset=0,
        section="header",
    )
