"""Exported programs with their weights as inputs, in the order and by the names that an artifact shows.

torch-mlir writes weights into a module by way of Python lists, number by number; what is an input it leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.torch.decompositions import decompositions
from vhlo_tools.integrations.torch.naming import input_names, output_names
from vhlo_tools.integrations.torch.refusals import explained
from vhlo_tools.integrations.torch.values import as_numpy

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch.export.graph_signature import InputSpec, OutputSpec
    from torch.fx import Node

__all__ = ["Lifted", "lift"]

# A tensor that is no weight and has no more elements stays where torch-mlir sees its value, for it may be a size.
_SMALL: Final = 64


@dataclass(frozen=True, slots=True)
class Lifted:
    """A program whose weights are inputs.

    Attributes:
        program: It: its inputs first, then ``weights`` and ``hidden``.
        inputs: The names of the inputs.
        outputs: The names of the outputs.
        weights: The values of parameters and buffers by name, in the memory of the model.
        hidden: Values of large tensors that are neither, and become constants in any case.
    """

    program: torch.export.ExportedProgram
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: dict[str, np.ndarray[Any, Any]]
    hidden: tuple[np.ndarray[Any, Any], ...]


def lift(program: torch.export.ExportedProgram, name: str, *, constants: bool) -> Lifted:
    """Return ``program``, decomposed for torch-mlir, with its weights as inputs.

    Args:
        program: The program, which stays as it is.
        name: What to call it in messages.
        constants: Whether weights will be constants, so that a program that changes them is refused.

    Raises:
        InvalidProgramError: If something of it has no form in an artifact; the message names it.
    """
    inputs, outputs = input_names(program), output_names(program)
    with explained(f"torch cannot decompose {name}"):
        # A new program, whose graph may be changed.
        decomposed = program.run_decompositions(decompositions())
    return _Lifting(decomposed, name).run(inputs, outputs, constants=constants)


class _Lifting:
    """The steps of it, on a graph that is changed."""

    def __init__(self, program: torch.export.ExportedProgram, name: str) -> None:
        self.program = program
        self.name = name
        self.nodes: dict[str, Node] = {node.name: node for node in program.graph.nodes}

    def run(self, inputs: tuple[str, ...], outputs: tuple[str, ...], *, constants: bool) -> Lifted:
        """Take the steps."""
        from torch.export import ExportedProgram
        from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec

        signature = self.program.graph_signature
        by_kind: dict[InputKind, list[InputSpec]] = {kind: [] for kind in InputKind}
        for spec in signature.input_specs:
            by_kind[spec.kind].append(spec)
        for _ in by_kind[InputKind.TOKEN]:
            raise InvalidProgramError(f"{self.name} has an effect that no artifact can hold: {self._effects()}")
        for spec in by_kind[InputKind.CUSTOM_OBJ]:
            raise InvalidProgramError(f"{self.name} holds {spec.target}, an object that is no tensor")
        changed = [spec for spec in signature.output_specs if spec.target and spec.kind.name.endswith("_MUTATION")]
        written = {spec.target for spec in changed if not spec.kind.name.startswith("USER_INPUT")}
        if constants and written:
            raise InvalidProgramError(
                f"{self.name} changes its weights {', '.join(sorted(written))}, which constants cannot: call "
                "model.eval() before it is exported, or make the weights arguments, and their new values are results"
            )
        tensors = dict(self._tensors_of(by_kind[InputKind.USER_INPUT], inputs))
        read = self._without_aliases([*by_kind[InputKind.PARAMETER], *by_kind[InputKind.BUFFER]], written)
        small: list[InputSpec] = []
        large: list[InputSpec] = []
        for spec in filter(self._is_read, by_kind[InputKind.CONSTANT_TENSOR]):
            (small if self._value(spec).numel() <= _SMALL else large).append(spec)

        called = {spec.arg.name: name for name, spec in tensors.items()}
        results = self._order_outputs(signature.output_specs, outputs, changed, called)
        arguments = [*tensors.values(), *read, *large]
        first = next(node for node in self.program.graph.nodes if node.op != "placeholder")
        for spec in [*arguments, *small]:
            first.prepend(self.nodes[spec.arg.name])
        specs = [InputSpec(InputKind.USER_INPUT, spec.arg, None) for spec in arguments]
        lifted = ExportedProgram(
            root=self.program.graph_module,
            graph=self.program.graph,
            graph_signature=ExportGraphSignature([*specs, *small], list(results.values())),
            state_dict={},
            range_constraints=self.program.range_constraints,
            module_call_graph=self.program.module_call_graph,
            constants=self.program.constants,
            verifiers=[self.program.verifier],
        )
        return Lifted(
            program=lifted,
            inputs=tuple(tensors),
            outputs=tuple(results),
            weights={spec.target: as_numpy(self._value(spec), f"{self.name}: {spec.target}") for spec in read},
            hidden=tuple(as_numpy(self._value(spec), f"{self.name}: {spec.target}") for spec in large),
        )

    def _tensors_of(self, specs: list[InputSpec], names: tuple[str, ...]) -> Iterator[tuple[str, InputSpec]]:
        """Yield the inputs that are tensors, by name; what is known beforehand is no input of the artifact."""
        from torch.export.graph_signature import ConstantArgument, TensorArgument

        for spec, name in zip(specs, names, strict=True):
            if isinstance(spec.arg, TensorArgument):
                yield name, spec
            elif isinstance(spec.arg, ConstantArgument):
                self.program.graph.erase_node(self.nodes[spec.arg.name])
            else:
                raise InvalidProgramError(
                    f"{self.name} takes {name}, a number that is not known beforehand: pass it as a tensor"
                )

    def _without_aliases(self, specs: list[InputSpec], written: set[str]) -> list[InputSpec]:
        """Return those that the program reads, one with several names by its first."""
        first: dict[object, InputSpec] = {}
        for spec in specs:
            value = self._value(spec)
            same = (spec.kind, value.data_ptr(), value.shape, value.stride(), value.dtype)
            known = first.setdefault(spec.target if spec.target in written or not value.numel() else same, spec)
            if known is not spec:
                self.nodes[spec.arg.name].replace_all_uses_with(self.nodes[known.arg.name])
        kept = [spec for spec in first.values() if self.nodes[spec.arg.name].users]
        for spec in specs:
            if not self.nodes[spec.arg.name].users:
                self.program.graph.erase_node(self.nodes[spec.arg.name])
        return kept

    def _is_read(self, spec: InputSpec) -> bool:
        if not self.nodes[spec.arg.name].users:
            self.program.graph.erase_node(self.nodes[spec.arg.name])
            return False
        return True

    def _order_outputs(
        self, specs: list[OutputSpec], names: tuple[str, ...], changed: list[OutputSpec], inputs: dict[str, str]
    ) -> dict[str, OutputSpec]:
        """Put what the program gives before what it changes, which torch has first; return both by name."""
        from torch.export.graph_signature import ConstantArgument, OutputKind, OutputSpec, TensorArgument

        (output,) = (node for node in self.program.graph.nodes if node.op == "output")
        values = dict(zip(map(id, specs), output.args[0], strict=True))
        given = [spec for spec in specs if spec.kind == OutputKind.USER_OUTPUT]
        if len(given) + len(changed) != len(specs):
            other = next(spec for spec in specs if spec not in given and spec not in changed)
            raise InvalidProgramError(f"{self.name} gives a {other.kind.name}, which is no tensor")
        results, ordered = {}, []
        named = [*zip(names, given, strict=True), *((inputs.get(spec.target, spec.target), spec) for spec in changed)]
        for name, spec in named:
            if isinstance(spec.arg, ConstantArgument) and spec.arg.value is None:
                continue
            if not isinstance(spec.arg, TensorArgument):
                raise InvalidProgramError(f"{self.name} gives {name}, which is no tensor: expected tensors and None")
            results[name] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)
            ordered.append(values[id(spec)])
        output.args = (tuple(ordered),)
        return results

    def _effects(self) -> str:
        """Return the ops that do more than give results."""
        ordered = (node for node in self.program.graph.nodes if str(node.target) == "with_effects")
        return ", ".join(sorted({str(node.args[1]) for node in ordered})) or "a token"

    def _value(self, spec: InputSpec) -> torch.Tensor:
        persistent = spec.target in self.program.state_dict
        value: torch.Tensor = (self.program.state_dict if persistent else self.program.constants)[spec.target]
        return value
