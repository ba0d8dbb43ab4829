"""From a module, a program that torch.export made, or its file, to an artifact."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.artifact import ViewFile, as_bytes
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model import ExportedModel, serialize_module
from vhlo_tools.integrations.torch.refusals import explained, quiet_failure
from vhlo_tools.portable import REWRITTEN
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import torch

    from vhlo_tools.program import ProgramSource

__all__ = ["export", "open_model"]

Weights = Literal["constants", "arguments"]

_PURPOSE: Final = "exporting a PyTorch program"


def export(
    model: torch.nn.Module | torch.export.ExportedProgram,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str | Version = "current",
    weights: Weights = "constants",
    dynamic_shapes: Any = None,
    name: str | None = None,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    as_of: date | None = None,
    provider: str | None = None,
) -> ExportedModel:
    """Export a PyTorch module as a portable artifact; the module stays as it is.

    ``main`` takes the tensors of the inputs, in the order of the parameters of ``forward``; Python numbers become part
    of the program. It gives the tensors of the outputs, and then what becomes of buffers and inputs that the module
    changes, such as the statistics of a BatchNorm in training mode.

    Args:
        model: The module, in the mode that is wanted (``model.eval()``), or a program that torch.export made of it.
        args: Example inputs; none for an exported program.
        kwargs: Example inputs by name; none for an exported program.
        target: The version to write for, or what it is to be read by, in the grammar of targets.
        weights: ``constants`` writes parameters and buffers into the artifact. With ``arguments``, ``main`` takes those
            that it reads after the inputs: parameters and then buffers, in the order and by the names that the module
            gives them, one that has several names by its first.
        dynamic_shapes: As in ``torch.export.export``; none for an exported program.
        name: What to call the program in messages, by default the class of the module.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        legalize: Whether what portable artifacts cannot hold is rewritten, as far as that is possible.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings whose versions count, by default the installed ones.

    Returns:
        The artifact, with the names of inputs and outputs, and with the weights if these are arguments. Names are those
        of the parameters of ``forward``, and of paths in them: ``tokens``, ``state.0``.

    Raises:
        MissingExtraError: If torch or torch-mlir is not installed.
        InvalidProgramError: If torch or torch-mlir cannot export it; the message names the op, or the reason.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target does not have.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    require_extra("torch", _PURPOSE, "torch", "torch_mlir")
    if weights not in get_args(Weights):
        raise ValueError(f"weights are {weights!r}: expected one of {', '.join(get_args(Weights))}")
    from vhlo_tools.integrations.torch.importing import import_program
    from vhlo_tools.integrations.torch.lifting import lift

    program, name = _exported(model, args, kwargs, dynamic_shapes, name)
    lifted = lift(program, name, constants=weights == "constants")
    module = import_program(lifted, name, constants=weights == "constants")
    artifact = serialize_module(
        module,
        target,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
    )
    # What torch-mlir wrote is nobody's own words, and how it was rewritten is of no use to anyone.
    artifact = artifact.with_findings([each for each in artifact.findings if each.feature != REWRITTEN])
    # Copies, for the model may go on learning.
    values = {name: value.copy() for name, value in lifted.weights.items()} if weights == "arguments" else {}
    return ExportedModel.named(artifact, lifted.inputs, lifted.outputs, values)


def open_model(
    source: ProgramSource,
    target: str | Version,
    *,
    weights: Weights,
    name: str | None,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
) -> ExportedModel:
    """Export what torch.export made: an ``ExportedProgram``, or the path or the bytes of a ``.pt2`` file.

    torch reads the file, and unpickles parts of it: it is to be trusted as a program is that one runs.

    Args:
        source: The program.
        target: As in :func:`export`, like all that follows.
        weights: ``constants`` or ``arguments``.
        name: What to call it in messages.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        legalize: Whether what portable artifacts cannot hold is rewritten.
        as_of: The day that windows in ``target`` count back from.
        provider: The bindings whose versions count.

    Raises:
        MissingExtraError: If torch or torch-mlir is not installed.
        InvalidProgramError: If torch cannot read it, or it cannot be exported.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target does not have.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    require_extra("torch", _PURPOSE, "torch", "torch_mlir")
    if isinstance(source, str | PathLike):
        name, program = name or str(source), _read(fspath(source), name or str(source))
    elif isinstance(source, bytes | bytearray | memoryview):
        name = name or "the input"
        program = _read(io.BufferedReader(ViewFile(as_bytes(source))), name)
    else:
        program = source
    return export(
        program,
        target=target,
        weights=weights,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
    )


def _exported(
    model: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, name: str | None
) -> tuple[torch.export.ExportedProgram, str]:
    """Return ``model`` as an exported program, and what to call it."""
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        if args is not None or kwargs is not None or dynamic_shapes is not None:
            raise InvalidProgramError("an exported program has its inputs and shapes: leave args and the like out")
        return model, name or "the exported program"
    if not isinstance(model, torch.nn.Module):
        raise InvalidProgramError(
            f"a {type(model).__module__}.{type(model).__qualname__} is no torch.nn.Module and no ExportedProgram"
        )
    if args is None and kwargs is None:
        raise InvalidProgramError("exporting a torch.nn.Module takes example inputs: args, kwargs or both")
    if isinstance(args, torch.Tensor) or not isinstance(args, Sequence | None):
        raise InvalidProgramError(f"args is a {type(args).__qualname__}: expected a tuple of the inputs of forward")
    name = name or type(model).__qualname__
    with explained(f"torch.export cannot export {name}"), quiet_failure():
        exported = torch.export.export(
            model, tuple(args or ()), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False
        )
    return exported, name


def _read(source: Any, name: str) -> torch.export.ExportedProgram:
    import torch

    with explained(f"torch {torch.__version__} cannot read {name}"):
        return torch.export.load(source)
