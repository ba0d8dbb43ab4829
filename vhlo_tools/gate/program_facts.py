"""Facts about a program that the gate compares between two revisions: its public functions and its aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, Donor
    from vhlo_tools.api import Checked
    from vhlo_tools.artifact import Artifact

_PRIVATE: Final = "private"


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    functions: Mapping[str, str] = field(default_factory=dict)  # types by name: ``(tensor<4xf32>) -> (tensor<4xf32>)``
    #: the use of each aliased or donated input of ``main``, in words
    buffers: Mapping[str, str] = field(default_factory=dict)


def facts_of(checked: Checked) -> ProgramFacts | None:
    """``None`` if no artifact can represent the program."""
    artifact = checked.artifact
    if artifact is None:
        return None
    inventory = artifact.inventory()
    private = _private_functions(artifact)
    functions = {
        each.name: f"({', '.join(each.arguments)}) -> ({', '.join(each.results)})"
        for each in inventory.functions
        if each.name not in private
    }
    buffers = {_input(each): f"{each.kind} with output {_index(each.output_index)}" for each in inventory.aliases}
    buffers.update((_input(each), "a donor") for each in inventory.donors)
    return ProgramFacts(functions, buffers)


def count_functions(checked: Checked) -> int | None:
    """``None`` if no artifact can represent the program."""
    from vhlo_tools.artifact import functions_in

    return None if checked.artifact is None else sum(1 for _ in functions_in(checked.artifact.file, bodies=False))


def _private_functions(artifact: Artifact) -> set[str]:
    from vhlo_tools.artifact import functions_in

    file = artifact.file
    return {
        each.name
        for each in functions_in(file, bodies=False)
        if file.text(each.attributes.get("sym_visibility")) == _PRIVATE
    }


def _input(entry: Alias | Donor) -> str:
    inside = f" at {_index(entry.parameter_index)}" if entry.parameter_index else ""
    return f"input {entry.parameter_number}{inside}"


def _index(index: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, index))}}}"
