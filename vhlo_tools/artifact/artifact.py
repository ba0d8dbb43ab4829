"""A portable artifact: bytes, what can be read from them without MLIR, and how they were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

from vhlo_tools.bytecode import decode, encode_chunks
from vhlo_tools.errors import DowngradeError, InvalidProgramError, InvalidVersionError, MalformedArtifactError
from vhlo_tools.files import (
    ARTIFACT_PRODUCER,
    MAGIC,
    FileRange,
    Kind,
    as_bytes,
    is_path,
    join,
    place,
    read_bytes,
    recognise,
    view,
    write_atomically,
)
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, AliasConfig, CallAliases, Form, ProgramAliases
    from vhlo_tools.artifact.inventory import Inventory
    from vhlo_tools.bytecode import File, Section
    from vhlo_tools.compat import Requirements
    from vhlo_tools.files import Buffer, Chunk
    from vhlo_tools.findings import Finding

# Record of how an artifact was made: the command, the target, the library and the options in its manifest

#: The value of an option.
Setting = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Making:
    """How an artifact was made; nothing in it depends on the day, the machine, or the paths of files.

    Attributes:
        command: The command, or the function of the same name.
        target: The target as it was given, such as ``jaxlib==0.4.31``; ``None`` if there was none.
        library: The distribution that wrote it, and its version; ``None`` if its bytes were edited without one.
        options: The options that were given, and are not the defaults.
        source: SHA-256 of the bytes that it was made from, as hexadecimal digits; ``None`` if it was no file.
    """

    command: str
    target: str | None = None
    library: str | None = None
    options: Mapping[str, Setting] = field(default_factory=dict)
    source: str | None = None


def non_default_options(defaults: Mapping[str, object], **options: object) -> dict[str, Setting]:
    """Return changed options as JSON values; ``defaults`` has those other than ``None``, ``False`` or nothing."""
    found: dict[str, Setting] = {}
    for name, value in sorted(options.items()):
        if name in defaults and value == defaults[name]:
            continue
        if name not in defaults and (value is None or value is False or value == ()):
            continue
        if isinstance(value, str | int | float):
            found[name] = value
        elif isinstance(value, set | frozenset):
            found[name] = tuple(sorted(map(str, value)))
        elif isinstance(value, list | tuple):
            found[name] = tuple(map(str, value))
        else:
            found[name] = str(value)
    return found


# A portable artifact: bytes, and the information that can be read from them without a compiler

# The dialects that portable serialization itself writes: the module op and locations belong to `builtin`.
_PORTABLE_DIALECTS = frozenset({"vhlo", "builtin"})


class Artifact:
    """A StableHLO portable artifact: MLIR bytecode of VHLO, written for one version of StableHLO.

    The header and the table of sections are checked on construction; the rest is read on access.

    Args:
        data: The bytes. They are not copied, and must not be changed afterwards.
        name: Its name in messages.
        trusted: The attribute.

    Attributes:
        findings: Findings about how it was written: warnings about features that its consumer may reject.
        trusted: Whether MLIR can read it safely: MLIR wrote it in this process, or has read it in another. Bytes of
            other origin are not trusted, nor are artifacts made from them without MLIR.
        made: How it was made, for its manifest, if this process made it.

    Raises:
        MalformedArtifactError: If ``data`` is not an artifact, or its header or its sections are damaged.
    """

    def __init__(self, data: Buffer, *, name: str = "the artifact", trusted: bool = False) -> None:
        self._chunks: Sequence[Buffer] = (data,)
        self.name = name
        self.findings: tuple[Finding, ...] = ()
        self.trusted = trusted
        self.made: Making | None = None
        self._requirements: Requirements | None = None
        _require_artifact(data, name)
        text = self.file.producer.removeprefix(ARTIFACT_PRODUCER.decode())
        try:
            self._version = Version(text)
        except InvalidVersionError as error:
            raise MalformedArtifactError(
                f"{name} has the producer {self.file.producer!r}, whose version is invalid: {error}",
                offset=bytes(view(data)[: len(MAGIC) + 9 + len(ARTIFACT_PRODUCER)]).index(ARTIFACT_PRODUCER),
                section="header",
            ) from error

    @classmethod
    def open(
        cls, source: str | PathLike[str] | Buffer | Artifact, *, name: str | None = None, unpack: bool = True
    ) -> Artifact:
        """Return the artifact in a file or in bytes.

        Args:
            source: A path, the URL of an object, the bytes themselves, or an artifact, which is returned unchanged.
            name: Its name in messages, by default its path.
            unpack: Whether to extract the artifact of a jax.export file.

        Raises:
            MalformedArtifactError: If ``source`` contains no artifact, or a damaged one.
            OSError: If the file cannot be read.
        """
        if isinstance(source, Artifact):
            return source
        if is_path(source):
            name, data = name or str(source), read_bytes(place(source))
        elif isinstance(source, bytes | bytearray | memoryview | FileRange):
            name, data = name or "the input", as_bytes(source)
        else:
            raise MalformedArtifactError(f"a {type(source).__qualname__} is not an artifact: expected a path or bytes")
        try:
            is_packed = unpack and recognise(data) is Kind.JAX_EXPORT
        except InvalidProgramError:
            is_packed = False
        if is_packed:
            # Imported here, as are the next, because few commands need it.
            from vhlo_tools.files import decode_jax_export

            data = decode_jax_export(data).module
        return cls(data, name=name)

    @property
    def _data(self) -> Buffer:
        return self._chunks[0]

    @cached_property
    def file(self) -> File:
        """Its bytes as a lazily decoded file."""
        return decode(self._data, self.name)

    @property
    def version(self) -> Version:
        """The StableHLO version for which it was written, from its header."""
        return self._version

    @property
    def producer(self) -> str:
        """The producer in its header, ``StableHLO_v#.#.#``."""
        return self.file.producer

    @property
    def bytecode_version(self) -> int:
        """The version of MLIR bytecode in which it is written, 0 to 6."""
        return self.file.version

    @property
    def sections(self) -> tuple[Section, ...]:
        """Its bytecode sections, in the order of the file."""
        return self.file.sections

    @cached_property
    def dialects(self) -> dict[str, list[str]]:
        """The dialects in it, each with the names of the ops used.

        Raises:
            MalformedArtifactError: If the dialect section is damaged.
        """
        return names_by_dialect(self.file)

    def requirements(self) -> Requirements:
        """Return its requirements: the versions that can read it, the oldest downgrade target, and the reasons.

        The properties of the result are computed on access.
        """
        # Imported here so that opening an artifact need not load the rules of every op.
        from vhlo_tools.compat import Requirements

        if self._requirements is None:
            self._requirements = Requirements(self.file, self.version, self.name)
        return self._requirements

    def inventory(self) -> Inventory:
        """Return its contents: ops, types, attributes, functions, aliases and constants.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.inventory import take_inventory

        return take_inventory(self.file)

    def aliases(self) -> AliasConfig:
        """Return the aliases of inputs and outputs of its function ``main``, and the donated inputs.

        Raises:
            AliasError: If XLA would reject its declarations; :meth:`declared_aliases` returns them nevertheless.
            MalformedArtifactError: If it is damaged.
        """
        return self.declared_aliases().declared.config()

    def declared_aliases(self) -> ProgramAliases:
        """Return all declared aliases and donors, valid or not, and the custom calls with aliases of their own.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        # Imported here so that opening an artifact need not load it.
        from vhlo_tools.artifact.aliases import read_aliases

        return read_aliases(self.file, self.name)

    def alias_findings(self) -> list[Finding]:
        """Return findings about its aliases: errors for those that XLA rejects, warnings for probable mistakes.

        Notes name custom calls that the specification does not have, whose aliases are not read.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.aliasing import DROPPED, lint_aliases
        from vhlo_tools.artifact.aliases import mentions_aliases, read_aliases, unknown_calls

        # Only the framework knew of donations that are not in the program.
        dropped = [each for each in self.findings if each.feature == DROPPED]
        dropped += unknown_calls(self.file)
        # Most aliases are as they should be, and then no name of a parameter is shown.
        if not mentions_aliases(self.file) or not lint_aliases(read_aliases(self.file, self.name, names=False)):
            return dropped
        return [*lint_aliases(self.declared_aliases()), *dropped]

    def with_aliases(self, config: AliasConfig, form: Form | None = None) -> Artifact:
        """Return it with the aliases and donors of ``config`` and no others; constants are views into this artifact.

        Args:
            config: The aliases and donors, with the signature of its function ``main``, which :meth:`aliases` returns.
            form: The form in which to write the aliases; by default the present one, or else one that can express them.
                ``argument`` for attributes of arguments, ``module`` for one of the module. Donors are attributes of
                arguments.

        Raises:
            AliasError: If ``config`` has another signature, or ``form`` cannot express it.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.aliases import write_aliases

        file = self.copy_of_file()
        write_aliases(file, config, form)
        return self.edited(file)

    def custom_calls(self) -> tuple[CallAliases, ...]:
        """Return its custom calls, each with its path, target, operand and result shapes, and aliases.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.aliases import read_calls

        return read_calls(self.file, self.name)

    def with_call_aliases(self, aliases: Mapping[str, Iterable[Alias]]) -> Artifact:
        """Return it with other ``output_operand_aliases`` of custom calls; constants are views into this artifact.

        Args:
            aliases: The aliases of results and operands, by the path of a call, as in :meth:`custom_calls`, or by a
                target, for all calls of it. The kind of each must be ``must-alias``.

        Raises:
            AliasError: If there is no such call, or StableHLO and XLA reject one of its aliases.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.aliases import write_call_aliases

        file = self.copy_of_file()
        write_call_aliases(file, aliases, self.name)
        return self.edited(file)

    def with_names(self, parameters: Mapping[int, str], results: Mapping[int, str]) -> Artifact:
        """Return it with names for arguments and results of its function ``main``; others keep theirs.

        Names of arguments are locations, as JAX writes them, which :meth:`stripped` removes; names of results are the
        attributes ``jax.result_info``. No other forms are known that every reader accepts.

        Args:
            parameters: The names, by argument number.
            results: The names, by result number.

        Raises:
            InvalidProgramError: If there is no such function, argument or result.
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.artifact.entry_function import write_names

        file = self.copy_of_file()
        write_names(file, parameters, results)
        return self.edited(file)

    def text(self, *, debug_info: bool = False) -> str:
        """Return it as generic VHLO text, of whatever version it is.

        Entries without a specification, such as attributes of other dialects, are printed by name and cannot be parsed
        again.

        Args:
            debug_info: Whether to print locations.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.bytecode import print_program

        return print_program(self.file, debug_info=debug_info)

    def stripped(self) -> list[Chunk]:
        """Return its bytes without debug information, in pieces; constants are views into this artifact.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        return self.without_locations().chunks

    def without_locations(self) -> Artifact:
        """Return it without debug information; constants are views into this artifact.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        from vhlo_tools.bytecode import strip_locations

        file = self.copy_of_file()
        strip_locations(file)
        return self.edited(file)

    def retargeted(self, target: Version) -> Artifact:
        """Return it retargeted to another version by editing its bytes; constants are views into this artifact.

        Nothing large is copied before it is needed: :meth:`save` copies constants from file to file.

        Args:
            target: Any version in the specification.

        Raises:
            DowngradeError: If it has features that the target does not have. The findings list all of them.
            UnsupportedFeatureError: If it has features that were removed by then, or that cannot be retargeted on
                bytes.
            MalformedArtifactError: If it is damaged.
        """
        # Imported here so that opening an artifact need not load it.
        from vhlo_tools.artifact.retargeting import retarget_file

        requirements = self.requirements()
        found = requirements.findings(target)
        if errors := [each for each in found if each.level == "error"]:
            raise DowngradeError(f"{self.name} cannot be written for {target}; {requirements.reach}", errors)
        file = self.copy_of_file()
        notes = retarget_file(file, target)
        told = {note.feature for note in notes}
        warnings = (each for each in found if each.feature not in told)
        return _Moved(file, target, name=self.name, trusted=self.trusted).with_findings([*warnings, *notes])

    def edited(self, file: File) -> Artifact:
        """Return the artifact in ``file``, an edited copy of this one's; constants are views into this artifact."""
        # Values from another file are written, but cannot be decoded: the bytes have to be decoded again.
        moved = _Moved(file, self.version, name=self.name, trusted=self.trusted, keep=False)
        return moved.with_findings(self.findings)

    def copy_of_file(self) -> File:
        """Return its bytes as a new decoded file, to be edited."""
        return self.file.copy()

    def with_findings(self, findings: Iterable[Finding]) -> Artifact:
        """Return the same artifact with ``findings``."""
        same = copy(self)
        same.findings = tuple(findings)
        return same

    def with_making(self, made: Making) -> Artifact:
        """Return the same artifact with what its manifest says of how it was made."""
        same = copy(self)
        same.made = made
        return same

    def __copy__(self) -> Artifact:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    def __deepcopy__(self, _: object) -> Artifact:
        return self  # Nothing of it changes.

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (bytes(self), self.name, self.trusted, self.findings, self.made)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to ``path``, completely or not at all; a manifest of what was there is removed.

        Args:
            path: The file or object to write; ``.mlirbc`` is the suffix that other tools know.
            force: Whether an existing file may be replaced.

        Raises:
            FileExistsError: If ``path`` exists and ``force`` is not set.
            OSError: If the file cannot be written.
        """
        write_atomically(place(path), self.chunks, force=force)

    @property
    def chunks(self) -> list[Chunk]:
        """Its bytes in pieces; large ones are views into the artifact from which it was made."""
        return [view(chunk) for chunk in self._chunks]

    def __bytes__(self) -> bytes:
        return self._data if isinstance(self._data, bytes) else bytes(self._data)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __eq__(self, other: object) -> bool:
        return view(self._data) == view(other._data) if isinstance(other, Artifact) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._version, len(self._data)))

    def __repr__(self) -> str:
        return f"<Artifact {self.name!r}: StableHLO {self.version}, {len(self)} bytes>"

    def _repr_html_(self) -> str:
        # Imported here, as these are for notebooks alone.
        from vhlo_tools.artifact.inspection import outline_of
        from vhlo_tools.markup import facts

        try:
            return facts(self.name, outline_of(self))
        except MalformedArtifactError as error:
            return facts(self.name, [("is", repr(self)), ("damaged", error)])


class _Moved(Artifact):
    """An artifact in pieces, which are joined only when its bytes are needed."""

    def __init__(self, file: File, version: Version, *, name: str, trusted: bool, keep: bool = True) -> None:
        self._chunks = encode_chunks(file)
        self.name = name
        self.findings = ()
        self.trusted = trusted
        self.made = None
        self._requirements = None
        self._version = version
        self._bytecode_version = file.version
        if keep:
            # The parts are those that were written, and constants are views into the original artifact.
            self.file = file

    @property
    def _data(self) -> Buffer:
        if len(self._chunks) > 1:
            self._chunks = (join(self._chunks),)
        return self._chunks[0]

    def copy_of_file(self) -> File:
        # The file is what became of another one, from which its copy would begin.
        return decode(self._data)

    @property
    def bytecode_version(self) -> int:
        return self._bytecode_version

    @property
    def sections(self) -> tuple[Section, ...]:
        return decode(self._data).sections


def _restored(data: bytes, name: str, trusted: bool, findings: tuple[Finding, ...], made: Making | None) -> Artifact:
    """Return an artifact that was pickled."""
    artifact = Artifact(data, name=name, trusted=trusted).with_findings(findings)
    return artifact if made is None else artifact.with_making(made)


def other_dialects(artifact: Artifact) -> frozenset[str]:
    """Return dialects that are not part of portable serialization, such as ``sdy``."""
    return frozenset(artifact.dialects) - _PORTABLE_DIALECTS


def names_by_dialect(file: File) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {file.dialect(index): [] for index in range(len(file.dialects.names))}
    for op in file.dialects.ops:
        names[file.dialect(op.dialect)].append(file.string(op.name))
    return names


def _require_artifact(data: Buffer, name: str) -> None:
    try:
        kind = recognise(data, name)
    except InvalidProgramError as error:
        raise MalformedArtifactError(str(error), offset=0, section="header") from error
    remedy = "expected a portable artifact; `vhlo serialize` converts it"
    match kind:
        case Kind.PORTABLE_ARTIFACT:
            return
        case Kind.MLIR_BYTECODE:
            found = "ordinary MLIR bytecode, which has no compatibility guarantees"
        case Kind.MLIR_TEXT:
            found = "text"
        case Kind.JAX_EXPORT:
            found = "a jax.export file, which contains an artifact"
            remedy += ", and `vhlo retarget` and the functions of vhlo_tools.integrations.jax accept the file as it is"
        case _:
            found = f"of the kind {kind}"
    raise MalformedArtifactError(f"{name} is {found}: {remedy}", offset=0, section="header")
