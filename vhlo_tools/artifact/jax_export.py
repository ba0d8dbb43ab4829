"""The files of jax.export: a FlatBuffer with a portable artifact inside, and with others for its derivatives.

What leads to an artifact and describes how it is called is read from the bytes, without jax. A file of any size is
looked into only where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from vhlo_tools.artifact.flatbuffer import Reader, Table
from vhlo_tools.artifact.flatbuffer_editing import replace_vectors
from vhlo_tools.artifact.jax_layout import JAX_EXPORT
from vhlo_tools.artifact.storage import Buffer
from vhlo_tools.bytecode import MAGIC, Chunk
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["JaxExport", "decode_jax_export", "is_jax_export", "replace_modules"]

_ROOT: Final = "Exported"
_MODULE: Final = "mlir_module_serialized"
# How many derivatives are looked at. Each holds a program of its own; nobody has asked for a fourth.
_MOST_LEVELS: Final = 64
_CHECKS: Final = ("platform", "custom_call", "shape_assertions")


@dataclass(frozen=True, slots=True)
class JaxExport:
    """What a jax.export file says of the artifact it holds.

    Attributes:
        function_name: The name of the exported function.
        platforms: The platforms it was lowered for.
        calling_convention_version: The version of JAX's calling convention that it follows.
        kept_arguments: The flat arguments of the function that the artifact's ``main`` still takes.
        module: The bytes of the artifact, as a view into the file.
        serialization_version: The version of the format as the file says; jax before 0.12 says 2 or 3 of all.
        jax_version: The release of jax that wrote the file, where it says so.
        devices: For how many devices the function was lowered.
        ordered_effects: The types of its ordered effects, for each of which ``main`` takes a token.
        unordered_effects: The types of its other effects.
        disabled_checks: The safety checks that were off at export.
        uses_global_constants: Whether the artifact depends on shapes or on the platform.
        table: The table that says so, for what else there is in it.
    """

    function_name: str
    platforms: tuple[str, ...]
    calling_convention_version: int
    kept_arguments: tuple[int, ...]
    module: memoryview
    serialization_version: int
    jax_version: str | None
    devices: int
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[str, ...]
    uses_global_constants: bool
    table: Table = field(repr=False, compare=False)

    def vjp(self) -> JaxExport | None:
        """Return the function's vector-Jacobian product, if the file has it.

        Raises:
            MalformedArtifactError: If it is damaged.
        """
        table = self.table.again().table("vjp")
        return None if table is None else _decode(table)

    def levels(self) -> Iterator[JaxExport]:
        """Yield the function, its vector-Jacobian product, the one of that, and so on.

        Raises:
            MalformedArtifactError: If one is damaged, or there are unreasonably many.
        """
        level: JaxExport | None = self
        for _ in range(_MOST_LEVELS):
            if level is None:
                return
            yield level
            level = level.vjp()
        raise self.table.reader.malformed(f"has more than {_MOST_LEVELS} derivatives", self.table.position)


def is_jax_export(data: memoryview) -> bool:
    """Tell whether ``data`` is a jax.export file, which it is if MLIR bytecode is found where one keeps it."""
    try:
        return bytes(_root(data).bytes(_MODULE)[: len(MAGIC)]) == MAGIC
    except MalformedArtifactError:
        return False


def decode_jax_export(data: Buffer) -> JaxExport:
    """Read a jax.export file.

    Raises:
        MalformedArtifactError: If it is not one, or is damaged.
    """
    return _decode(_root(memoryview(data)))


def replace_modules(data: Buffer, replace: Callable[[int, memoryview], Sequence[Chunk]]) -> list[Chunk]:
    """Return a jax.export file in pieces, with other artifacts inside and all else as it was.

    A file with fields that this version of the toolkit does not know, as a newer jax may write, grows by what the
    artifact grows by, and keeps zeros where the old one was (see :func:`~.flatbuffer_editing.replace_vectors`).

    Args:
        data: The file.
        replace: Given 0 for the function, 1 for its vector-Jacobian product and so on, and the bytes of the artifact,
            returns those to put in their place, in pieces.

    Raises:
        MalformedArtifactError: If it is not one, or is damaged.
        InvalidProgramError: If the result would be larger than the format allows.
    """
    root = _root(memoryview(data))
    replacements = {}
    for number, level in enumerate(_decode(root).levels()):
        vector = level.table.vector(_MODULE)
        if vector is not None:
            replacements[vector] = list(replace(number, level.module))
    return replace_vectors(root, replacements)


def _root(data: memoryview) -> Table:
    return Reader(data, JAX_EXPORT).root(_ROOT)


def _decode(table: Table) -> JaxExport:
    return JaxExport(
        function_name=table.text("function_name"),
        platforms=tuple(table.texts("platforms")),
        calling_convention_version=table.number("calling_convention_version"),
        kept_arguments=table.numbers("module_kept_var_idx"),
        module=table.bytes(_MODULE),
        serialization_version=table.number("serialization_version"),
        jax_version=table.text("jax_version") or None,
        devices=table.number("nr_devices") or table.number("nr_devices_short"),
        ordered_effects=_effects(table, "ordered_effects"),
        unordered_effects=_effects(table, "unordered_effects"),
        disabled_checks=tuple(map(_check, table.tables("disabled_checks"))),
        uses_global_constants=bool(table.number("uses_global_constants")),
        table=table,
    )


def _effects(table: Table, name: str) -> tuple[str, ...]:
    # As Python prints a class.
    texts = (effect.text("type_name") for effect in table.tables(name))
    return tuple(text.removeprefix("<class '").removesuffix("'>") for text in texts)


def _check(table: Table) -> str:
    kind = table.number("kind")
    name = _CHECKS[kind] if 0 <= kind < len(_CHECKS) else f"check {kind}"
    target = table.text("custom_call_target")
    return f"{name} {target}" if target else name
