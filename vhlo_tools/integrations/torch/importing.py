"""Importers of torch programs, behind one interface, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, get_args

from vhlo_tools.bindings import isolation
from vhlo_tools.errors import InvalidInputError, InvalidProgramError, MissingExtraError, ProviderError, installing
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.exported_model import ExportedModel
from vhlo_tools.integrations.proof import ProofError
from vhlo_tools.integrations.torch.lifting import Lifted, lift
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import torch

    from vhlo_tools.artifact import Artifact
    from vhlo_tools.bindings import Module

ImporterName = Literal["auto", "torchax", "torch-mlir"]

#: The default limits of torch-mlir's passes: models of thousands of ops take a minute and one or two gigabytes.
SECONDS: Final = 600.0
MEMORY: Final = 8 << 30


@dataclass(frozen=True, slots=True)
class _Importer:
    packages: tuple[str, ...]  # beside torch
    extra: str  # the extra of this distribution that installs them
    module: str  # with the functions ``decompositions`` and ``import_program``

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)


#: Makes a model of what an importer returned; raises ``ProofError`` if it does not compute what torch does.
Finish = Callable[["Artifact | Module", Lifted, ModuleType], ExportedModel]


def import_program(
    program: torch.export.ExportedProgram,
    name: str,
    importer: str,
    limits: isolation.Limits,
    finish: Finish,
    *,
    constants: bool,
) -> ExportedModel:
    """Import by the first importer whose program can be finished; ``finish`` gets its module, too.

    ``limits`` are those of the child process for torch-mlir; ``constants`` are to become of weights. If several
    importers were tried in vain, the error has the reasons of all.
    """
    refusals: list[InvalidProgramError | ProviderError] = []
    for each in _chosen(importer):
        try:
            module = import_module(f"vhlo_tools.integrations.torch.{_IMPORTERS[each].module}")
            lifted = lift(program, name, module.decompositions(), constants=constants)
            model = finish(module.import_program(lifted, name, limits), lifted, module)
        except (InvalidProgramError, ProviderError) as error:
            refusals.append(error)
            continue
        wrong = [_passed_over(error, each) for error in refusals if isinstance(error, ProofError)]
        return replace(model, artifact=model.artifact.with_findings([*wrong, *model.artifact.findings]))
    raise _combined(refusals)


def _passed_over(error: ProofError, instead: str) -> Finding:
    remedy = f"none is needed: the program is that of {instead}, which computes what torch does"
    return Finding("importer_differs", "note", "op", str(error), remedy=remedy)


def _chosen(importer: str) -> Sequence[str]:
    if importer not in get_args(ImporterName):
        raise InvalidInputError(f"importer is {importer!r}: expected one of {', '.join(get_args(ImporterName))}")
    wanted = list(_IMPORTERS) if importer == "auto" else [importer]
    if chosen := [each for each in wanted if _IMPORTERS[each].is_installed]:
        return chosen
    packages = " or ".join(" and ".join(_IMPORTERS[each].packages) for each in wanted)
    extras = " or ".join(f"{installing(_IMPORTERS[each].extra)}" for each in wanted)
    raise MissingExtraError(f"exporting a PyTorch program needs {packages}, which is not installed: {extras}")


def _combined(refusals: Sequence[InvalidProgramError | ProviderError]) -> InvalidProgramError | ProviderError:
    """A reason that both importers give is given once."""
    first, *others = {str(each): each for each in refusals}.values()
    if not others:
        return first
    diagnostics = [each for error in refusals for each in getattr(error, "diagnostics", ())]
    combined = InvalidProgramError("; ".join(str(each) for each in (first, *others)), diagnostics)
    combined.__cause__ = first
    return combined


#: In the order in which ``auto`` tries them.
_IMPORTERS: Final = {
    "torchax": _Importer(("torchax", "jax"), "torchax", "torchax"),
    "torch-mlir": _Importer(("torch_mlir",), "torch", "torch_mlir"),
}
