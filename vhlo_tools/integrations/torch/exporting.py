"""Export modules, programs of torch.export and their files as artifacts."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, get_args

from vhlo_tools.bindings.isolation import Limits
from vhlo_tools.conversion import REWRITTEN
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.files import FileRange, ViewFile, as_bytes
from vhlo_tools.integrations.exported_model import ExportedModel, bind_arguments, serialize_module
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.proof import LEAST_SECONDS, unproven
from vhlo_tools.integrations.torch.export_errors import explained, quiet_failure
from vhlo_tools.integrations.torch.importing import MEMORY, SECONDS, ImporterName, import_program
from vhlo_tools.integrations.torch.joint_graphs import with_plain_outputs
from vhlo_tools.integrations.torch.lifting import Lifted, lift
from vhlo_tools.integrations.torch.proof import prove, random_ops
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from types import ModuleType

    import torch

    from vhlo_tools.program import ExportOptions, ProgramSource

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
    importer: ImporterName = "auto",
    import_timeout: float | None = SECONDS,
    import_memory: int | None = MEMORY,
    verify: bool | None = None,
    name: str | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a PyTorch module as a portable artifact; the module is not changed.

    ``main`` accepts the tensors of the inputs, in the order of the parameters of ``forward``; Python numbers become
    part of the program. It returns the tensors of the outputs, followed by the new values of buffers and inputs that
    the module changes, such as the statistics of a BatchNorm in training mode. A joint graph of torch.export returns
    gradients in between: ``gradients.`` and the name of a parameter or input.

    Args:
        model: The module, in the desired mode (``model.eval()``), or a program that torch.export made of it.
        args: Example inputs; none for an exported program.
        kwargs: Example inputs by name; none for an exported program.
        target: The target version or consumer, in the target grammar.
        weights: ``constants`` writes parameters and buffers into the artifact. With ``arguments``, ``main`` accepts
            those that it reads after the inputs: parameters and then buffers, in the order and under the names of the
            module, one with several names under its first.
        dynamic_shapes: As in ``torch.export.export``; none for an exported program.
        importer: ``torchax``, ``torch-mlir``, or ``auto``: torchax if it is installed and can be imported beside this
            torch, otherwise torch-mlir; if both are there, torch-mlir is tried for what torchax refuses.
        import_timeout: The time limit in seconds of torch-mlir's passes, which run in a child process; ``None`` for no
            limit.
        import_memory: Their limit of memory in bytes; ``None`` for no limit.
        verify: Whether the artifact is run on the example inputs, and compared with what torch computes eagerly. By
            default it is if there are example inputs and no random numbers, within the time that the export took (at
            least ten seconds); a note among the findings says why it was not. Of importers that are tried, one whose
            program differs is passed over.
        name: The name of the program in messages, by default the class of the module.
        options: See :class:`vhlo_tools.program.ExportOptions`.

    Returns:
        The artifact, with the names of inputs and outputs, and with the weights if they are arguments. Names are those
        of the parameters of ``forward``, and of paths within them: ``tokens``, ``state.0``.

    Raises:
        MissingExtraError: If torch or the importer is not installed.
        ProviderError: If the importer cannot be imported beside this torch; with the versions that fit.
        InvalidProgramError: If torch or the importers cannot export it, or it does not compute what torch does; the
            message names the op, or the reason.
        InvalidInputError: If there is no such importer.
        UnsupportedFeatureError: If it contains something that no artifact can represent.
        DowngradeError: If it needs a feature newer than the target.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    require_extra("torch", _PURPOSE, "torch")
    if weights not in get_args(Weights):
        raise ValueError(f"weights is {weights!r}: expected one of {', '.join(get_args(Weights))}")
    started = monotonic()
    program, name = _exported(model, args, kwargs, dynamic_shapes, name)
    constants = weights == "constants"
    limits = Limits(seconds=import_timeout, memory=import_memory, output=None)
    examples = program.example_inputs if args is None and kwargs is None else (args or (), kwargs or {})

    def finish(imported: Any, lifted: Lifted, importer: ModuleType) -> ExportedModel:
        random = list(random_ops(lifted.program))
        artifact = serialize_module(imported, target, name=name, **options)
        # The user did not write the ops of the importer, and has no use for notes about their legalization.
        findings = [*random, *(each for each in artifact.findings if each.feature != REWRITTEN)]
        hidden = {f"constant{number}": value for number, value in enumerate(lifted.hidden)}
        bound = {**(lifted.weights if constants else {}), **hidden}
        artifact = bind_arguments(artifact, bound).with_findings(findings)
        # Copied, because the model may be trained further.
        values = {} if constants else {name: value.copy() for name, value in lifted.weights.items()}
        exported = ExportedModel.named(artifact, lifted.inputs, lifted.outputs, values)
        if verify is False:
            return exported
        reason = "it draws random numbers" if random else None if examples else "there are no example inputs"
        if reason is None:
            again = partial(lift, program, name, importer.decompositions(), constants=constants)
            reason = prove(
                exported, program, examples, again, importer, limits, max(LEAST_SECONDS, monotonic() - started)
            )
        if reason is None:
            return exported
        if verify:
            raise InvalidProgramError(f"{name} cannot be compared with what torch computes: {reason}")
        return replace(exported, artifact=exported.artifact.with_findings([*findings, unproven("torch", reason)]))

    return import_program(program, name, importer, limits, finish, constants=constants)


def open_model(
    source: ProgramSource, target: str | Version, *, name: str | None = None, **options: Any
) -> ExportedModel:
    """Export an ``ExportedProgram`` of torch.export, or a ``.pt2`` file, by path or bytes.

    The options are those of :func:`export`. torch unpickles parts of the file: open only trusted files.
    """
    require_extra("torch", _PURPOSE, "torch")
    if isinstance(source, str | PathLike):
        name, program = name or str(source), _read(fspath(source), name or str(source))
    elif isinstance(source, bytes | bytearray | memoryview | FileRange):
        name = name or "the input"
        program = _read(io.BufferedReader(ViewFile(as_bytes(source))), name)
    else:
        program = source
    return export(program, target=target, name=name, **options)


def _exported(
    model: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, name: str | None
) -> tuple[torch.export.ExportedProgram, str]:
    """Return ``model`` as an exported program, and its name in messages."""
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        if args is not None or kwargs is not None or dynamic_shapes is not None:
            raise InvalidProgramError(
                "an exported program already has its inputs and shapes: omit args and similar arguments"
            )
        return with_plain_outputs(model), name or "the exported program"
    if not isinstance(model, torch.nn.Module):
        raise InvalidProgramError(
            f"a {type(model).__module__}.{type(model).__qualname__} is neither a torch.nn.Module nor an ExportedProgram"
        )
    if args is None and kwargs is None:
        raise InvalidProgramError("exporting a torch.nn.Module requires example inputs: args, kwargs or both")
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
