"""Lift the weights of exported programs to inputs, in the order and with the names that an artifact shows.

torch-mlir writes weights into a module through Python lists, number by number; inputs avoid that cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.torch.export_errors import described, explained, input_names, output_names
from vhlo_tools.integrations.torch.graphs import (
    as_numpy,
    count_from_the_start,
    forget_generated_lines,
    is_dense,
    prepared,
)
from vhlo_tools.integrations.torch.shared_decompositions import shared_decompositions
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch.export.graph_signature import InputSpec, OutputSpec
    from torch.fx import Node

# A small tensor that is not a weight remains visible to torch-mlir as a value, because it may be a size.
_SMALL: Final = 64


@dataclass(frozen=True, slots=True)
class Lifted:
    program: torch.export.ExportedProgram  # the inputs first, then ``weights`` and ``hidden``
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: dict[str, np.ndarray[Any, Any]]  # parameters and buffers, in the memory of the model
    hidden: tuple[np.ndarray[Any, Any], ...]  # large tensors that are neither; these always become constants
    small: tuple[torch.Tensor, ...]  # small ones: constants of the program, after all of its inputs


def lift(
    program: torch.export.ExportedProgram,
    name: str,
    decompositions: Mapping[Any, Callable[..., Any]],
    *,
    constants: bool,
) -> Lifted:
    """Decompose ``program`` with the table of an importer, and make its weights inputs.

    With ``constants``, a program that changes its weights is rejected.
    """
    inputs, outputs = input_names(program), output_names(program)
    with explained(f"torch cannot decompose {name}"):
        # This returns a new program, whose graph may be changed.
        decomposed = prepared(program).run_decompositions({**decompositions, **shared_decompositions()})
    count_from_the_start(decomposed.graph)
    forget_generated_lines(decomposed.graph_module)
    return _Lifting(decomposed, name).run(inputs, outputs, constants=constants)


class _Lifting:
    """The lifting of one program, on a graph that is changed in place."""

    def __init__(self, program: torch.export.ExportedProgram, name: str) -> None:
        self.program = program
        self.name = name
        self.nodes: dict[str, Node] = {node.name: node for node in program.graph.nodes}

    def run(self, inputs: tuple[str, ...], outputs: tuple[str, ...], *, constants: bool) -> Lifted:
        from torch.export import ExportedProgram
        from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec

        signature = self.program.graph_signature
        by_kind: dict[InputKind, list[InputSpec]] = {kind: [] for kind in InputKind}
        for spec in signature.input_specs:
            by_kind[spec.kind].append(spec)
        if by_kind[InputKind.TOKEN]:
            ordered = (node for node in self.program.graph.nodes if str(node.target) == "with_effects")
            effects = ", ".join(sorted({str(node.args[1]) for node in ordered})) or "a token"
            raise InvalidProgramError(f"{self.name} has a side effect that no artifact can represent: {effects}")
        for spec in by_kind[InputKind.CUSTOM_OBJ]:
            raise InvalidProgramError(f"{self.name} contains {spec.target}, an object that is not a tensor")
        changed = [spec for spec in signature.output_specs if spec.target and spec.kind.name.endswith("_MUTATION")]
        written = {spec.target for spec in changed if not spec.kind.name.startswith("USER_INPUT")}
        if constants and written:
            first = described(next(self.nodes[spec.arg.name] for spec in changed if spec.target in written))
            raise InvalidProgramError(
                f"{self.name} changes its weights {', '.join(sorted(written))} (by {first}), which is impossible for "
                f"constants: call model.eval() before it is exported, if that is what a layer does in training alone, "
                f"or make the weights arguments, so that their new values are results"
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
            small=tuple(self._value(spec) for spec in small),
        )

    def _tensors_of(self, specs: list[InputSpec], names: tuple[str, ...]) -> Iterator[tuple[str, InputSpec]]:
        """Yield the tensor inputs by name, and remove constant inputs, which are not inputs of the artifact."""
        from torch.export.graph_signature import ConstantArgument, TensorArgument

        for spec, name in zip(specs, names, strict=True):
            if isinstance(spec.arg, TensorArgument):
                yield name, spec
            elif isinstance(spec.arg, ConstantArgument):
                self.program.graph.erase_node(self.nodes[spec.arg.name])
            else:
                raise InvalidProgramError(
                    f"{self.name} has the argument {name}, a number that is only known at run time: pass it as a tensor"
                )

    def _without_aliases(self, specs: list[InputSpec], written: set[str]) -> list[InputSpec]:
        """Return the weights that the program reads, each weight with several names once, under the first name."""
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
        """Move the program's outputs before the values that it changes, which torch puts first; return both by name."""
        from torch.export.graph_signature import ConstantArgument, OutputKind, OutputSpec, TensorArgument

        (output,) = (node for node in self.program.graph.nodes if node.op == "output")
        values = dict(zip(map(id, specs), output.args[0], strict=True))
        given = [spec for spec in specs if spec.kind == OutputKind.USER_OUTPUT]
        if len(given) + len(changed) != len(specs):
            other = next(spec for spec in specs if spec not in given and spec not in changed)
            raise InvalidProgramError(f"{self.name} returns a {other.kind.name}, which is not a tensor")
        results, ordered = {}, []
        named = [*zip(names, given, strict=True), *((inputs.get(spec.target, spec.target), spec) for spec in changed)]
        for name, spec in named:
            if isinstance(spec.arg, ConstantArgument) and spec.arg.value is None:
                continue
            if not isinstance(spec.arg, TensorArgument):
                raise InvalidProgramError(f"{self.name} returns {name}, {_kind(spec.arg)}: expected tensors and None")
            results[name] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)
            ordered.append(values[id(spec)])
        output.args = (tuple(ordered),)
        return results

    def _value(self, spec: InputSpec) -> torch.Tensor:
        persistent = spec.target in self.program.state_dict
        value: torch.Tensor = (self.program.state_dict if persistent else self.program.constants)[spec.target]
        if is_dense(value):
            return value
        used = "".join(f", of {described(user)}" for user in list(self.nodes[spec.arg.name].users)[:1])
        raise InvalidProgramError(
            f"{self.name}: {spec.target}{used}, is a tensor of {value.layout}: expected a dense tensor of numbers; "
            f"to_dense() makes one"
        )


def _kind(argument: Any) -> str:
    """Describe what a program returns that is not a tensor."""
    from torch.export.graph_signature import ConstantArgument

    if not isinstance(argument, ConstantArgument):
        kinds = {"SymIntArgument": "an int", "SymFloatArgument": "a float", "SymBoolArgument": "a bool"}
        kind = kinds.get(type(argument).__name__, "an object")
        return f"{kind} that is only known at run time (a tensor can have it)" if kind != "an object" else kind
    kind, shown = type(argument.value).__name__, repr(argument.value)
    advice = f" (torch.tensor({shown}) is one)" if isinstance(argument.value, bool | int | float) else ""
    return f"the {kind} {shown if len(shown) < 40 else shown[:40] + '...'}, which is not a tensor{advice}"
