"""Graphs of torch.fx: edits, and evaluation of what is constant."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from math import log
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.torch.export_errors import described, user_line
from vhlo_tools.integrations.torch.jax_repairs import JAX_REPAIRS
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch.fx import GraphModule, Node

# Convert torch tensors to numpy arrays


def as_numpy(tensor: torch.Tensor, name: str) -> np.ndarray[Any, Any]:
    """The array shares the memory of a contiguous CPU tensor; ``name`` is for messages."""
    import ml_dtypes
    import numpy as np
    import torch

    if not is_dense(tensor):
        kind = "without values" if tensor.device.type == "meta" else "sparse or quantized"
        raise InvalidProgramError(f"{name} is a tensor {kind}: expected a dense tensor of numbers")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    try:
        # Element types that numpy has from ml_dtypes, which uses torch's names.
        other = getattr(ml_dtypes, str(plain.dtype).removeprefix("torch."), None)
        if other is None:
            whole: np.ndarray[Any, Any] = plain.numpy()
        else:
            bits = {1: torch.uint8, 2: torch.int16}[plain.element_size()]
            whole = plain.view(bits).numpy().view(np.dtype(other))
    except (KeyError, RuntimeError, TypeError) as error:
        raise InvalidProgramError(f"{name} is a {plain.dtype} that cannot be converted to an array: {error}") from error
    return whole


def is_dense(tensor: torch.Tensor) -> bool:
    import torch

    return bool(tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type != "meta")


# Edits of exported programs before they are decomposed

#: The ops that take tensors of indices, which may be negative.
_INDEXED: Final = ("aten.index.Tensor", "aten.index_put.default")
#: The ops with bounds along a dimension, with the places of the dimension, of the start and of the end.
_BOUNDED: Final = {"aten.slice.Tensor": (1, 2, 3), "aten.slice_scatter.default": (2, 3, 4)}


def copied_graph(program: torch.export.ExportedProgram) -> torch.fx.Graph:
    graph = copy.deepcopy(program.graph)
    for node, original in zip(graph.nodes, program.graph.nodes, strict=True):
        # A copy renames nodes that are called as functions of Python, and the signature has their names.
        node.name = original.name
    return graph


def prepared(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program in which views are reshapes; the program itself is not changed.

    torch checks that the strides of a tensor permit a view. Decompositions give results other strides than the ops that
    they replace, those of attention for instance, so that it would refuse a program that it accepted before.
    """
    import torch
    from torch.export import ExportedProgram

    aten = torch.ops.aten
    graph = copied_graph(program)
    for node in graph.nodes:
        if node.op == "call_function" and node.target in (aten.view.default, aten._unsafe_view.default):
            node.target = aten.reshape.default
    signature = copy.deepcopy(program.graph_signature)
    joined = _join_buffers(graph, signature, {**program.constants, **program.state_dict})
    made = ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=signature,
        state_dict=program.state_dict,
        range_constraints=copy.copy(program.range_constraints),
        module_call_graph=copy.deepcopy(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants={name: value for name, value in program.constants.items() if name not in joined},
        verifiers=list(program.verifiers),
    )
    # Now that the program is verified, which refuses functions.
    for node in made.graph.nodes:
        if str(node.target) == "flex_attention":
            query, key, value, score, (*blocks, mask), *others = node.args
            functions = (getattr(made.graph_module, each.target) for each in (score, mask))
            node.target, node.args = _attention(*functions), (query, key, value, tuple(blocks), *others)
            made.graph_module.recompile()
    return made


def _join_buffers(graph: torch.fx.Graph, signature: Any, values: Mapping[str, Any]) -> set[str]:
    """Read buffers, in place, where constants have their memory; return the names of these constants.

    torch decomposes no program that writes there by both. Caches of transformers are held as buffers, and as tensors of
    an object that is none of the module's.
    """
    from torch.export.graph_signature import InputKind

    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    constants = [spec for spec in signature.input_specs if spec.kind is InputKind.CONSTANT_TENSOR]
    buffers = [spec for spec in signature.input_specs if spec.kind is InputKind.BUFFER] if constants else []

    def memory(spec: Any) -> Any:
        value = values[spec.target]
        return value.data_ptr(), value.shape, value.stride(), value.dtype

    known = {memory(spec): nodes[spec.arg.name] for spec in buffers}
    joined = [spec for spec in constants if buffers and memory(spec) in known]
    for spec in joined:
        nodes[spec.arg.name].replace_all_uses_with(known[memory(spec)])
        graph.erase_node(nodes[spec.arg.name])
        signature.input_specs.remove(spec)
    return {spec.target for spec in joined}


def _attention(score: Any, mask: Any) -> Callable[..., Any]:
    """Return torch's flex_attention without blocks that are left out, of which a decomposition makes ops of ATen."""
    import torch
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    def attention(
        query: Any, key: Any, value: Any, _blocks: Any, scale: float, _: Any, scored: Any = (), masked: Any = ()
    ) -> Any:
        shared = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(shared, 1) for each in (key, value))
        wide = torch.promote_types(query.dtype, torch.float32)
        scores = query.to(wide) @ key.to(wide).mT * scale
        indices = [torch.arange(size) for size in scores.shape]
        scored_by = _vmap_for_bhqkv(score, prefix=(0,), suffix=(None,) * len(scored))
        kept_by = _vmap_for_bhqkv(mask, prefix=(), suffix=(None,) * len(masked))
        with TransformGetItemToIndex():
            scores = torch.where(kept_by(*indices, *masked), scored_by(scores, *indices, *scored), -torch.inf)
        weights = torch._safe_softmax(scores, -1).to(query.dtype)
        return weights @ value, scores.logsumexp(-1) / log(2), scores.amax(-1) / log(2)

    return attention


def count_from_the_start(graph: torch.fx.Graph) -> None:
    """Replace, in place, bounds of slices that count from the end of a dimension of known size, or lie beyond it.

    With a few negative bounds torch-mlir 20261001 takes all the memory that there is.
    """
    for node in graph.nodes:
        if node.op != "call_function" or str(node.target) not in _BOUNDED:
            continue
        at_dimension, *places = _BOUNDED[str(node.target)]
        sizes = node.args[0].meta["val"].shape
        size = sizes[node.args[at_dimension] if len(node.args) > at_dimension else 0]
        if isinstance(size, int):
            args = list(node.args)
            for place in places:
                if place < len(args) and isinstance(args[place], int):
                    bound = args[place]
                    args[place] = min(max(bound + size if bound < 0 else bound, 0), size)
            node.args = tuple(args)


def forget_generated_lines(module: GraphModule) -> None:
    """Remove, in place, lines of code that is in no file, such as that of a traced step, from the places of nodes."""
    for each in module.modules():
        for node in getattr(getattr(each, "graph", None), "nodes", ()):
            if frames := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = _GENERATED.sub("", frames)


_GENERATED: Final = re.compile(r'(?<! ) *File "<eval_with_key>[^"]*", line \d+')


def wrap_indices(graph: torch.fx.Graph) -> None:
    """Add, in place, the size of its dimension to each negative index of a tensor.

    torch-mlir 20261001 takes indices as they are, so that StableHLO clamps negative ones to 0.
    """
    import torch

    for node in [each for each in graph.nodes if each.op == "call_function" and str(each.target) in _INDEXED]:
        tensor, indices, *others = node.args
        wrapped = list(indices)
        # A mask stands for as many dimensions as it has.
        dimension = 0
        for place, index in enumerate(indices):
            value = None if index is None else index.meta["val"]
            if value is not None and value.dtype in (torch.int32, torch.int64):
                with graph.inserting_before(node):
                    wrapped[place] = _wrapped(graph, node, tensor, dimension, index)
            dimension += value.ndim if value is not None and value.dtype == torch.bool else 1
        node.args = (tensor, wrapped, *others)


def _wrapped(graph: torch.fx.Graph, user: torch.fx.Node, tensor: torch.fx.Node, dimension: int, index: Any) -> Any:
    import torch

    aten = torch.ops.aten

    def call(op: Any, *args: Any) -> torch.fx.Node:
        values = torch.fx.map_arg(args, lambda each: each.meta["val"])
        node = graph.call_function(op, args)
        with index.meta["val"].fake_mode:
            node.meta = {"val": op(*values), "stack_trace": user.meta.get("stack_trace")}
        return node

    size: Any = tensor.meta["val"].shape[dimension]
    if not isinstance(size, int):
        size = call(aten.sym_size.int, tensor, dimension)
    negative, moved = call(aten.lt.Scalar, index, 0), call(aten.add.Scalar, index, size)
    return call(aten.where.self, negative, moved, index)


# Evaluate graphs of torch.export on values of JAX, op by op, with the ops of torchax


@dataclass(frozen=True, slots=True)
class GraphEvaluator:
    """Evaluates graphs while JAX traces.

    Each result gets the type that torch recorded for it, and must have the shape: torchax follows JAX's rules of
    promotion in places.
    """

    operators: Mapping[Any, Any]  # torchax's ``Operator`` by overload or packet of overloads
    element_types: Mapping[Any, Any]  # types of JAX by those of torch
    name: str  # of the program, in messages

    def evaluate(self, module: GraphModule, values: Sequence[Any]) -> tuple[Any, ...]:
        """``values`` are those of the placeholders, in order; an op that torchax lacks is an error with its line."""
        import torch

        results: dict[Node, Any] = {}
        given = iter(values)
        for node in module.graph.nodes:
            match node.op:
                case "placeholder":
                    results[node] = next(given)
                case "get_attr":
                    value = attrgetter(str(node.target))(module)
                    is_tensor = isinstance(value, torch.Tensor)
                    results[node] = as_numpy(value, f"{self.name}: {node.target}") if is_tensor else value
                case "output":
                    found = torch.fx.map_arg(node.args[0], results.__getitem__)
                    return tuple(found) if isinstance(found, list | tuple) else (found,)
                case _:
                    results[node] = self._call(node, results)
        raise InvalidProgramError(f"{self.name} has a graph without outputs")

    def _call(self, node: Node, results: Mapping[Node, Any]) -> Any:
        import torch

        given = self._as_floats(node, results)
        args = torch.fx.map_arg(node.args, given.__getitem__)
        kwargs = torch.fx.map_arg(node.kwargs, given.__getitem__)
        try:
            call, line = partial(self._function(node), *args, **kwargs), user_line(node)
            # From a frame with the file and number of the line, which JAX takes as its source location.
            found = _frame_at(line.file, line.line)(call) if line else call()
        except InvalidProgramError:
            raise
        except Exception as error:
            import jax

            values = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
            needs = isinstance(error, (*values, jax.errors.TracerIntegerConversionError))
            reason = "torchax needs the values of its operands" if needs else "torchax does not have this form of it"
            raise self._refusal(node, reason) from error
        return self._checked(node, node.meta.get("val"), found)

    def _as_floats(self, node: Node, results: Mapping[Node, Any]) -> Mapping[Node, Any]:
        """Return the results with the operands of a node, as floats if it computes floats of integers alone."""
        import torch

        recorded = node.meta.get("val")
        tags = getattr(node.target, "tags", ())
        if torch.Tag.pointwise not in tags or not isinstance(recorded, torch.Tensor):
            return results
        kinds = [value.dtype for each in node.all_input_nodes if hasattr(value := each.meta.get("val"), "dtype")]
        if not recorded.dtype.is_floating_point or any(each.is_floating_point or each.is_complex for each in kinds):
            return results
        # torchax leaves booleans and some integers as they are.
        kind = self.element_types[recorded.dtype]
        arrays = {each: results[each] for each in node.all_input_nodes if hasattr(results[each], "astype")}
        return {**results, **{each: value.astype(kind) for each, value in arrays.items()}}

    def _function(self, node: Node) -> Callable[..., Any]:
        import torch

        target: Any = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            if target.name() not in _HIGHER_ORDER:
                raise self._refusal(node, "this kind of control flow has no form in StableHLO")
            return lambda *args: _HIGHER_ORDER[target.name()](self.evaluate, *args)
        if not isinstance(target, torch._ops.OpOverload):
            # Arithmetic of sizes, and items of tuples.
            own_or_python: Callable[..., Any] = _PYTHON.get(getattr(target, "__name__", ""), target)
            return own_or_python
        if own := _OWN.get(str(target)) or JAX_REPAIRS.get(str(target)):
            return own
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise self._refusal(node, "it draws random numbers: pass them as an input")
        for key in (target, target.overloadpacket):
            operator = self.operators.get(key)
            if operator is not None and operator.is_jax_function and not operator.needs_env:
                function: Callable[..., Any] = operator.func
                return function
        raise self._refusal(node, "torchax does not have it")

    def _checked(self, node: Node, recorded: Any, found: Any) -> Any:
        """Give a result the types that torch recorded."""
        import jax.numpy as jnp
        import torch

        if isinstance(recorded, list | tuple):
            each = zip(recorded, found, strict=False)
            return tuple(self._checked(node, one, other) for one, other in each)
        if not isinstance(recorded, torch.Tensor) or found is None:
            return found
        value = jnp.asarray(found, self.element_types[recorded.dtype])
        wanted = tuple(recorded.shape)
        static = [(one, other) for one, other in zip(wanted, value.shape, strict=False) if isinstance(one, int)]
        if len(wanted) != value.ndim or any(isinstance(b, int) and a != b for a, b in static):
            raise self._refusal(node, f"torchax gives it the shape {value.shape}, and torch {wanted}")
        return value

    def _refusal(self, node: Node, reason: str) -> InvalidProgramError:
        return InvalidProgramError(f"torchax cannot convert {self.name} to StableHLO: {described(node)} ({reason})")


def _cond(evaluate: Any, predicate: Any, true: Any, false: Any, operands: Sequence[Any] = ()) -> Any:
    import jax

    return jax.lax.cond(predicate, lambda: evaluate(true, operands), lambda: evaluate(false, operands))


def _while_loop(evaluate: Any, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    import jax

    def holds(values: Any) -> Any:
        return evaluate(condition, (*values, *others))[0].reshape(())

    return jax.lax.while_loop(holds, lambda values: evaluate(body, (*values, *others)), tuple(carried))


def _scan(evaluate: Any, body: Any, carried: Sequence[Any], arrays: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    import jax

    def step(values: Any, slices: Any) -> Any:
        results = evaluate(body, (*values, *slices, *others))
        return results[: len(carried)], results[len(carried) :]

    last, stacked = jax.lax.scan(step, tuple(carried), tuple(arrays))
    return (*last, *stacked)


def _map(evaluate: Any, body: Any, arrays: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    import jax

    return jax.lax.map(lambda slices: evaluate(body, (*slices, *others)), tuple(arrays))


_HIGHER_ORDER: Final[dict[str, Callable[..., Any]]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
}


def _number(size: Any) -> Any:
    import jax.numpy as jnp

    return float(size) if isinstance(size, int) else jnp.asarray(size, jnp.float64)


#: Functions of Python on sizes, for symbolic dimensions of JAX; others work as they are.
_PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "sym_max": lambda one, other: import_module("jax.core").max_dim(one, other),
    "sym_min": lambda one, other: import_module("jax.core").min_dim(one, other),
    "sym_float": _number,
}


def _convolution_backward(gradient: Any, value: Any, kernel: Any, bias: Any, *others: Any) -> Any:
    """Return the gradients of a convolution: of its operand, its kernel and its bias."""
    import jax
    import torch

    own = import_module("torchax.ops.ops_registry").all_aten_ops
    key = torch.ops.aten.convolution
    forward = (own.get(key.default) or own[key]).func
    _, backward = jax.vjp(lambda one, other: forward(one, other, None, *others[:-1]), value, kernel)
    return (*backward(gradient), gradient.sum((0, *range(2, gradient.ndim))))


#: Ops that torchax lacks, or that need a symbolic dimension where torchax asks for a number.
_OWN: Final[dict[str, Callable[..., Any]]] = {
    "aten.sym_size.int": lambda value, dimension: value.shape[dimension],
    "aten.sym_numel.default": lambda value: value.size,
    "aten.convolution_backward.default": _convolution_backward,
    # torch.export has checked assertions on sizes.
    **dict.fromkeys(
        (
            *("aten._assert_scalar.default", "aten._assert_async.msg", "aten._assert_tensor_metadata.default"),
            *("aten.sym_constrain_range_for_size.default", "aten.sym_constrain_range.default"),
        ),
        lambda *_, **__: None,
    ),
    **dict.fromkeys(
        ("aten.lift_fresh_copy.default", "aten.detach.default", "aten.alias.default"), lambda value, *_, **__: value
    ),
}


@lru_cache(maxsize=1 << 12)
def _frame_at(file: str, line: int) -> Callable[[Callable[[], Any]], Any]:
    tree = ast.parse("def forward(function): return function()")
    for node in ast.walk(tree):
        for attribute in node._attributes:
            setattr(node, attribute, line if attribute.endswith("lineno") else 0)
    defined: dict[str, Any] = {}
    exec(compile(tree, file, "exec"), defined)
    frame: Callable[[Callable[[], Any]], Any] = defined["forward"]
    return frame
