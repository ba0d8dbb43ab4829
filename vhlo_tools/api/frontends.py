"""Programs of frameworks: which integration exports them, in one table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast

from vhlo_tools.artifact import Kind, as_bytes, is_saved_model, read_bytes, recognise
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.integrations.model import ExportedModel
    from vhlo_tools.program import ProgramSource

__all__ = ["FRONTENDS", "Frontend", "Weights", "as_program", "export_model", "framework_kind"]

Weights = Literal["constants", "arguments"]


@dataclass(frozen=True, slots=True)
class Frontend:
    """What exports the programs of a framework.

    Attributes:
        module: The name of its module in :mod:`vhlo_tools.integrations`.
        function: The function there, an :class:`Exporter`.
        objects: The classes of objects that are such a program: where a class is from, and its name.
        options: What else it can be told.
    """

    module: str
    function: str
    objects: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


class Exporter(Protocol):
    """The function of a frontend."""

    def __call__(
        self,
        source: ProgramSource,
        target: str | Version,
        *,
        weights: Weights,
        name: str | None,
        allow_other_dialects: bool,
        legalize: bool,
        as_of: date | None,
        provider: str | None,
        **options: Any,
    ) -> ExportedModel:
        """Export ``source``: a path, bytes, or an object of one of the classes of the frontend; with its own options.

        Raises:
            MissingExtraError: If the framework is not installed.
        """


#: What exports each kind of program of a framework. A new kind is a new line here, and of files a sign in
#: `artifact.content`.
FRONTENDS: Final[dict[Kind, Frontend]] = {
    Kind.TORCH_EXPORT: Frontend("torch", "open_model", (("torch.export", "ExportedProgram"),)),
    Kind.SAVED_MODEL: Frontend("tensorflow", "open_saved_model", options=("signature", "batch_size")),
    Kind.JAX_LOWERED: Frontend("jax_stages", "open_lowered", (("jax", "Lowered"),)),
}


def framework_kind(source: ProgramSource, name: str | None = None) -> Kind | None:
    """Return of which framework's kind ``source`` is, or ``None`` if it is something else, a program or not."""
    if isinstance(source, str | PathLike):
        if is_saved_model(source):
            return Kind.SAVED_MODEL
        # A text with a program is no path, and a long one no name of a file.
        if not os.path.isfile(source):  # noqa: PTH113 - a Path of a long text raises
            return None
        data, name = read_bytes(Path(source)), name or str(source)
    elif isinstance(source, bytes | bytearray | memoryview):
        data = as_bytes(source)
    else:
        return _kind_of_object(source)
    try:
        kind = recognise(data, name or "the program")
    except InvalidProgramError:
        return None
    return kind if kind in FRONTENDS else None


def _kind_of_object(source: object) -> Kind | None:
    """Tell by the names of its classes, so that no framework is imported."""
    for kind, frontend in FRONTENDS.items():
        for prefix, class_name in frontend.objects:
            for cls in type(source).__mro__:
                if cls.__name__ == class_name and f"{cls.__module__}.".startswith(f"{prefix}."):
                    return kind
    return None


def export_model(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    weights: Weights = "constants",
    name: str | None = None,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    as_of: date | None = None,
    provider: str | None = None,
    signature: str | None = None,
    batch_size: int | None = None,
) -> ExportedModel:
    """Export a program of a framework, with names for what its ``main`` takes.

    Args:
        program: A ``torch.export.ExportedProgram``, or the path or the bytes of a ``.pt2`` file; the path of the
            folder of a SavedModel of TensorFlow; or a ``jax.stages.Lowered``.
        target: The version to write for, or what it is to be read by, in the grammar of targets.
        weights: Whether the weights are constants, or arguments after the inputs.
        name: What to call the program in messages, by default its path.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay as they are.
        legalize: Whether what portable artifacts cannot hold is rewritten, as far as that is possible.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings whose versions count, by default the installed ones.
        signature: Of a SavedModel, the signature; by default ``serving_default``.
        batch_size: Of a SavedModel, the size of the first dimension of inputs that leave it open.

    Raises:
        InvalidInputError: If it has no such option, or no such signature.
        InvalidProgramError: If it is no program of a framework, or one that cannot be exported.
        MissingExtraError: If the framework is not installed.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target does not have.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    kind = framework_kind(program, name)
    called = name or (str(program) if isinstance(program, str | PathLike) else "the program")
    if kind is None:
        raise InvalidProgramError(
            f"{called} is no program of a framework ({', '.join(FRONTENDS)}): its weights are where they are, "
            "and it has no signature or batch size to choose; "
            "`vhlo constants externalize` makes arguments of the constants of an artifact"
        )
    options = _known_options(kind, called, signature=signature, batch_size=batch_size)
    return _export(kind, program, target, weights, name, allow_other_dialects, legalize, as_of, provider, options)


def as_program(
    program: ProgramSource,
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    name: str | None = None,
    provider: str | None = None,
) -> ProgramSource:
    """Return a program of a framework as an artifact of the newest version, and anything else as it is.

    Args:
        program: Anything.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay in such an artifact.
        legalize: Whether what portable artifacts cannot hold is rewritten in it.
        name: What to call the program in messages.
        provider: The bindings whose newest version counts.

    Raises:
        InvalidProgramError: If it cannot be exported.
        MissingExtraError: If the framework is not installed.
        UnsupportedFeatureError: If it holds what no artifact can hold.
    """
    kind = framework_kind(program, name)
    if kind is None:
        return program
    exported = _export(
        kind, program, "current", "constants", name, allow_other_dialects, legalize, None, provider, options={}
    )
    return exported.artifact


def _known_options(kind: Kind, called: str, **options: str | int | None) -> dict[str, object]:
    """Return the options that are given.

    Raises:
        InvalidInputError: If the frontend has not one of them.
    """
    given: dict[str, object] = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in FRONTENDS[kind].options:
            having = ", ".join(each for each, frontend in FRONTENDS.items() if option in frontend.options)
            spelled = option.replace("_", "-")
            raise InvalidInputError(f"{called} is a {kind}, for which --{spelled} means nothing: it is for {having}")
    return given


def _export(
    kind: Kind,
    program: ProgramSource,
    target: str | Version,
    weights: Weights,
    name: str | None,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
    options: Mapping[str, object],
) -> ExportedModel:
    frontend = FRONTENDS[kind]
    module = import_module(f"vhlo_tools.integrations.{frontend.module}")
    exporter = cast(Exporter, getattr(module, frontend.function))
    return exporter(
        program,
        target,
        weights=weights,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
        **options,
    )
