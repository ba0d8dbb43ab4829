"""Reader of jax.export files: a FlatBuffer with a portable artifact inside, and with others for its derivatives.

The path to an artifact and its calling information are read from the bytes, without jax. Of a file of any size, only
these parts are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import MAGIC
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.formats.flatbuffer import FlatBufferReader
from vhlo_tools.formats.flatbuffer_editing import replace_vectors
from vhlo_tools.formats.jax_export.schema import JAX_EXPORT
from vhlo_tools.mapping import view
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Chunk
    from vhlo_tools.formats.flatbuffer import Table
    from vhlo_tools.formats.storage import Buffer
    from vhlo_tools.mapping import View

_ROOT: Final = "Exported"
_MODULE: Final = "mlir_module_serialized"
# The limit on the number of derivatives, each with a program of its own; real files have at most a few.
_MOST_LEVELS: Final = 64
_CHECKS: Final = ("platform", "custom_call", "shape_assertions")


@dataclass(frozen=True, slots=True)
class JaxExport:
    """The description of the artifact in a jax.export file.

    Attributes:
        function_name: The name of the exported function.
        platforms: The platforms for which it was lowered.
        calling_convention_version: The version of JAX's calling convention that it follows.
        kept_arguments: The flat arguments of the function that the artifact's ``main`` still has.
        module: The bytes of the artifact, as a view into the file.
        serialization_version: The version of the format in the file; jax before 0.12 writes 2 or 3 in all files.
        jax_version: The release of jax that wrote the file, if it is recorded.
        devices: The number of devices for which the function was lowered.
        ordered_effects: The types of its ordered effects, for each of which ``main`` has a token.
        unordered_effects: The types of its other effects.
        disabled_checks: The safety checks that were off at export.
        uses_global_constants: Whether the artifact depends on shapes or on the platform.
        table: The table with these values, for access to its other fields.
    """

    function_name: str
    platforms: tuple[str, ...]
    calling_convention_version: int
    kept_arguments: tuple[int, ...]
    module: View
    serialization_version: int
    jax_version: str | None
    devices: int
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_checks: tuple[str, ...]
    uses_global_constants: bool
    table: Table = field(repr=False, compare=False)

    def vjp(self) -> JaxExport | None:
        """Return the function's vector-Jacobian product, or ``None`` if the file does not contain it.

        Raises:
            MalformedArtifactError: If the file is damaged.
        """
        table = self.table.again().table("vjp")
        return None if table is None else _decode(table)

    def levels(self) -> Iterator[JaxExport]:
        """Yield the function, its vector-Jacobian product, the vector-Jacobian product of that, and so on.

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


def is_jax_export(data: View) -> bool:
    """Whether MLIR bytecode is found in the field for the artifact."""
    try:
        return bytes(_root(data).bytes(_MODULE)[: len(MAGIC)]) == MAGIC
    except MalformedArtifactError:
        return False


def decode_jax_export(data: Buffer) -> JaxExport:
    return _decode(_root(view(data)))


def replace_modules(data: Buffer, replace: Callable[[int, View], Sequence[Chunk]]) -> list[Chunk]:
    """Return a file in pieces, with the artifacts replaced; ``replace`` gets 0 for the function, 1 for its vjp etc.

    With fields unknown to this toolkit, as a newer jax may write, a larger artifact makes the file grow by its whole
    size, with zeros in place of the old one (see :func:`~.flatbuffer_editing.replace_vectors`).
    """
    root = _root(view(data))
    replacements = {}
    for number, level in enumerate(_decode(root).levels()):
        vector = level.table.vector(_MODULE)
        if vector is not None:
            replacements[vector] = list(replace(number, level.module))
    return replace_vectors(root, replacements)


def _root(data: View) -> Table:
    return FlatBufferReader(data, JAX_EXPORT).root(_ROOT)


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
    # The names are recorded as Python prints a class.
    texts = (effect.text("type_name") for effect in table.tables(name))
    return tuple(text.removeprefix("<class '").removesuffix("'>") for text in texts)


def _check(table: Table) -> str:
    kind = table.number("kind")
    name = _CHECKS[kind] if 0 <= kind < len(_CHECKS) else f"check {kind}"
    target = table.text("custom_call_target")
    return f"{name} {target}" if target else name
