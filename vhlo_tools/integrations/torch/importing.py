"""Importers of torch programs, behind one interface, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from vhlo_tools.bindings import isolation
from vhlo_tools.errors import InvalidInputError, InvalidProgramError, MissingExtraError, ProviderError
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
class ImportSettings:
    #: ``auto`` is torchax if it can be imported, otherwise torch-mlir, and the other one for programs that the first
    #: refuses
    importer: ImporterName
    constants: bool  # weights become constants
    limits: isolation.Limits  # of the child process for torch-mlir


@dataclass(frozen=True, slots=True)
class Imported:
    program: Artifact | Module  # an artifact or a module; ``main`` takes inputs, weights and hidden tensors
    lifted: Lifted  # the program before, with the names and values of these


@dataclass(frozen=True, slots=True)
class _Importer:
    packages: tuple[str, ...]  # beside torch
    extra: str  # the extra of this distribution that installs them
    decompositions: Callable[[], dict[Any, Callable[..., Any]]]
    convert: Callable[[Lifted, str, ImportSettings], Any]

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)


def import_program(program: torch.export.ExportedProgram, name: str, settings: ImportSettings) -> Imported:
    """If both importers were tried, the error has the reasons of both."""
    refusals: list[InvalidProgramError | ProviderError] = []
    for each in _chosen(settings.importer):
        try:
            importer = _IMPORTERS[each]
            lifted = lift(program, name, importer.decompositions(), constants=settings.constants)
            return Imported(importer.convert(lifted, name, settings), lifted)
        except (InvalidProgramError, ProviderError) as error:
            refusals.append(error)
    raise _combined(refusals)


def _chosen(importer: str) -> Sequence[str]:
    if importer not in get_args(ImporterName):
        raise InvalidInputError(f"importer is {importer!r}: expected one of {', '.join(get_args(ImporterName))}")
    wanted = list(_IMPORTERS) if importer == "auto" else [importer]
    if chosen := [each for each in wanted if _IMPORTERS[each].is_installed]:
        return chosen
    packages = " or ".join(" and ".join(_IMPORTERS[each].packages) for each in wanted)
    extras = " or ".join(f"pip install 'vhlo-tools[{_IMPORTERS[each].extra}]'" for each in wanted)
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


def _torchax_decompositions() -> dict[Any, Callable[..., Any]]:
    from vhlo_tools.integrations.torch import torchax as torchax_importer

    return torchax_importer.decompositions()


def _with_torchax(lifted: Lifted, name: str, _: ImportSettings) -> Artifact:
    from vhlo_tools.integrations.torch import torchax as torchax_importer

    return torchax_importer.import_program(lifted, name)


def _torch_mlir_decompositions() -> dict[Any, Callable[..., Any]]:
    from vhlo_tools.integrations.torch import torch_mlir as torch_mlir_importer

    return torch_mlir_importer.decompositions()


def _with_torch_mlir(lifted: Lifted, name: str, settings: ImportSettings) -> Module:
    from vhlo_tools.integrations.torch import torch_mlir as torch_mlir_importer

    return torch_mlir_importer.import_program(lifted, name, settings.limits)


#: In the order in which ``auto`` tries them.
_IMPORTERS: Final = {
    "torchax": _Importer(("torchax", "jax"), "torchax", _torchax_decompositions, _with_torchax),
    "torch-mlir": _Importer(("torch_mlir",), "torch", _torch_mlir_decompositions, _with_torch_mlir),
}
