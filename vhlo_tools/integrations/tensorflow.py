"""TensorFlow functions and SavedModels as portable artifacts.

``main`` accepts the inputs in the order of ``tf.nest.flatten``, followed by the values that the function captures, in
the order of first use: variables, and tensors that were created outside of it. It returns the outputs, in the order of
``tf.nest.flatten``, followed by the new values of assigned variables, in the order of their arguments; each of these
may overwrite its argument, as the aliases of the artifact state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.exported_model import (
    ExportedModel,
    fixed_shapes,
    joined,
    paths_of,
    serialize_module,
    unique,
)
from vhlo_tools.integrations.proof import first_words, verified
from vhlo_tools.integrations.tensorflow_graphs import (
    FunctionGraphs,
    RecordedPlaces,
    branches_of_other_shapes,
    explained_refusal,
    growing_arrays,
    ops_of_open_sizes,
    owner_of,
    recorded_places,
    variable_names,
    variables_of,
    with_user_locations,
)
from vhlo_tools.integrations.tensorflow_import import import_tensorflow
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ExportOptions, ProgramSource

#: The signature that TensorFlow's own tools use by default.
SERVING: Final = "serving_default"

# The type of `structured_input_signature` of every kind of `ConcreteFunction`.
_Structure = tuple[tuple[Any, ...], dict[str, Any]]


def export(
    function: Callable[..., Any],
    *arguments: Any,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "arguments",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    platform: str = "CPU",
    name: str | None = None,
    owner: Any = None,
    verify: bool | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a TensorFlow function.

    Args:
        function: A Python function, a ``tf.function``, a method of a ``tf.Module``, or a ``ConcreteFunction``.
        arguments: For each positional argument a ``tf.TensorSpec``, an array or a nest of these, or a Python value,
            which becomes part of the program. None are needed if the function has an input signature.
        target: The target version or consumer, in the target grammar.
        weights: Whether variables, and tensors that the function captures, remain arguments, or become constants.
        batch_size: The size of the first dimension of inputs that leave it open.
        shapes: The shapes of inputs that leave other dimensions open, by name.
        platform: The platform that XLA compiles for; few programs depend on it.
        name: The name of the function in messages, by default its own name.
        owner: The object whose attributes name variables, by default the object whose method the function is.
        verify: Whether results on ``arguments``, or on random inputs where they are no arrays, are compared with
            TensorFlow's; by default where all are arrays, and a note among the findings says why it was not done.
            Variables keep their values.
        options: See :class:`vhlo_tools.program.ExportOptions`.

    Raises:
        MissingExtraError: If TensorFlow is not installed.
        InvalidInputError: If the shape of an input remains open, ``shapes`` names an input that does not exist, or
            variables that the function assigns to are to become constants.
        InvalidProgramError: If TensorFlow cannot trace or compile the function, or the program does not compute what
            TensorFlow does.
        UnsupportedFeatureError: If it contains an op or a type that XLA lacks or that no artifact can represent.
        DowngradeError: If it needs a feature newer than the target.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    return _export(
        function,
        arguments,
        {},
        target=target,
        weights=weights,
        batch_size=batch_size,
        shapes=shapes,
        platform=platform,
        name=name,
        owner=owner,
        verify=verify,
        **options,
    )


def _export(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    recorded: RecordedPlaces,
    *,
    target: str | Version,
    weights: Literal["arguments", "constants"],
    batch_size: int | None,
    shapes: Mapping[str, Sequence[int]] | None,
    platform: str,
    name: str | None,
    owner: Any,
    verify: bool | None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    tf = import_tensorflow("exporting a TensorFlow function")
    started = monotonic()
    name = name or str(getattr(function, "__name__", None) or getattr(function, "name", None) or "the function")
    traced = _traced(tf, function, arguments, name)
    call = _SignatureCall.of(tf, traced, name, recorded)
    declared = [spec.shape for spec in call.specs]
    # Python values have no shape.
    given = [leaf.shape for leaf in tf.nest.flatten(arguments) if getattr(leaf, "shape", None) is not None]
    if len(given) == len(declared):
        declared = [tf.TensorShape(own).merge_with(shape) for own, shape in zip(given, declared, strict=True)]
    open_shapes = {
        each: None if shape.rank is None else shape.as_list() for each, shape in zip(call.inputs, declared, strict=True)
    }
    specs = [
        tf.TensorSpec(shape, spec.dtype)
        for shape, spec in zip(fixed_shapes(open_shapes, batch_size, shapes or {}, name), call.specs, strict=True)
    ]

    def flat(*inputs: Any) -> Any:
        positional, keywords = call.filled(tf, inputs)
        return traced(*positional, **keywords)

    # TensorFlow exposes only the program of a tf.function; all arguments of this one are tensors of known shape.
    compiled = tf.function(flat, jit_compile=True, autograph=False)
    try:
        concrete = compiled.get_concrete_function(*specs)
    except Exception as error:
        raise InvalidProgramError(f"TensorFlow cannot trace {name} for these shapes: {_first_line(error)}") from error
    graphs = FunctionGraphs(concrete, recorded)
    owner = owner_of(function) if owner is None else owner
    variables = (*traced.variables, *concrete.variables, *variables_of(tf, owner))
    known = variable_names(tf, owner, variables)
    captured, held = _captured(concrete, graphs, variables, known, (*call.inputs, *call.outputs), name)
    growing = list(growing_arrays(tf, graphs))
    if lost := [each for each in growing if each.level == "error"]:
        raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", lost)
    text = _compiled(compiled, specs, platform, graphs, name)
    try:
        artifact = serialize_module(text, target, name=name, **options)
    except InvalidProgramError as error:
        if findings := [*branches_of_other_shapes(graphs), *ops_of_open_sizes(text, graphs)]:
            raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", findings) from error
        raise
    artifact = artifact.with_findings([*graphs.random_ops(), *growing, *artifact.findings])
    updated = _updated(artifact, call, list(captured), name)
    if weights == "constants" and updated:
        raise InvalidInputError(
            f"{name} assigns to {', '.join(updated)} (by {graphs.assigning(concrete, held[updated[0]])}), which cannot "
            "be constants: export its weights as arguments (--weights)"
        )
    model = ExportedModel.named(artifact, call.inputs, (*call.outputs, *updated), captured)
    model = model if weights == "arguments" else model.bound()

    def compute(inputs: Sequence[Any]) -> list[Any]:
        positional, keywords = call.filled(tf, [tf.constant(each) for each in inputs])
        try:
            results = [each for each in tf.nest.flatten(traced(*positional, **keywords)) if each is not None]
            return [each.numpy() for each in (*results, *(held[each] for each in updated))]
        finally:
            for each in updated:
                held[each].assign(captured[each])

    examples = _examples(tf, arguments, specs)
    reason = graphs.ambiguous()
    return verified(model, "TensorFlow", compute, examples, verify=verify, started=started, reason=reason)


def _examples(tf: Any, arguments: Sequence[Any], specs: Sequence[Any]) -> list[Any] | None:
    """Return the arguments as arrays, if all of them are."""
    leaves = [leaf for leaf in tf.nest.flatten(arguments) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
    if not leaves or len(leaves) != len(specs) or any(isinstance(leaf, tf.TypeSpec) for leaf in leaves):
        return None
    found = [leaf.numpy() if isinstance(leaf, tf.Tensor | tf.Variable) else leaf for leaf in leaves]
    fits = all(tuple(each.shape) == tuple(spec.shape) for each, spec in zip(found, specs, strict=True))
    return found if fits else None


def export_saved_model(
    path: str | PathLike[str],
    signature: str = SERVING,
    *,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "arguments",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    platform: str = "CPU",
    name: str | None = None,
    verify: bool | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a signature of a SavedModel. Loading a SavedModel runs its ops: load only trusted ones.

    Args:
        path: The folder.
        signature: The name of the signature.
        target: As in :func:`export`, like all arguments that follow.
        weights: Whether variables, and tensors that the function captures, remain arguments, or become constants.
        batch_size: The size of the first dimension of inputs that leave it open, as most signatures do.
        shapes: The shapes of inputs that leave other dimensions open, by name.
        platform: The platform that XLA compiles for.
        name: The name of the SavedModel in messages, by default its path.
        verify: Whether results on random inputs are compared with TensorFlow's; by default they are not.
        options: See :class:`vhlo_tools.program.ExportOptions`.

    Raises:
        MissingExtraError: If TensorFlow is not installed.
        InvalidProgramError: If the folder is not a SavedModel, or a damaged one.
        InvalidInputError: If it has no such signature; in addition all errors of :func:`export`.
    """
    tf = import_tensorflow("reading a SavedModel")
    name = name or str(path)
    try:
        loaded = tf.saved_model.load(str(Path(path)))
    except Exception as error:
        raise InvalidProgramError(
            f"{name} is not a SavedModel that TensorFlow can read: {_first_line(error)}"
        ) from error
    signatures = loaded.signatures
    if signature not in signatures:
        known = ", ".join(sorted(signatures)) or "none"
        raise InvalidInputError(f"{name} has no signature {signature!r}; its signatures are: {known}")
    return _export(
        signatures[signature],
        (),
        recorded_places(Path(path)),
        target=target,
        weights=weights,
        batch_size=batch_size,
        shapes=shapes,
        platform=platform,
        name=name,
        owner=loaded,
        verify=verify,
        **options,
    )


def open_saved_model(
    source: ProgramSource, target: str | Version, *, signature: str = SERVING, **options: Any
) -> ExportedModel:
    """As :func:`export_saved_model`, for :data:`vhlo_tools.api.frontends.FRONTENDS`."""
    return export_saved_model(str(source), signature, target=target, **options)


@dataclass(frozen=True, slots=True)
class _SignatureCall:
    """The signature of a traced function, for calling it with flat inputs."""

    structure: _Structure  # positional and keyword arguments, with a ``TensorSpec`` for each input
    specs: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, tf: Any, traced: Any, name: str, recorded: RecordedPlaces) -> _SignatureCall:
        """An input or output that no StableHLO program can have is an ``UnsupportedFeatureError``."""
        structure = traced.structured_input_signature
        leaves = tf.nest.flatten(structure)
        paths = [*_paths(tf, structure[0], _parameters(traced)), *_paths(tf, structure[1], None)]
        specs: list[Any] = []
        names: list[str] = []
        for path, leaf in zip(joined(paths, "input"), leaves, strict=True):
            if isinstance(leaf, tf.TypeSpec):
                try:
                    _check_type(tf, leaf, tf.TensorSpec, f"the input {path} of {name}", name)
                except UnsupportedFeatureError as error:
                    graphs, first = FunctionGraphs(traced, recorded), len(specs)
                    found = [
                        replace(error.findings[0], op=used.type, location=graphs.place_of(used))
                        for tensor in traced.graph.inputs[first : first + 1]
                        for used in graphs.users(tensor)
                    ]
                    raise UnsupportedFeatureError(error.summary, found or error.findings) from None
                specs.append(leaf)
                names.append(path)
        outputs = []
        returned = traced.structured_outputs
        for path, leaf in zip(joined(_paths(tf, returned, None), "output"), tf.nest.flatten(returned), strict=True):
            if leaf is not None:
                _check_type(tf, leaf, tf.Tensor | tf.TensorSpec, f"the output {path} of {name}", name)
                outputs.append(path)
        return cls(structure, tuple(specs), unique(names), unique(outputs))

    def filled(self, tf: Any, inputs: Sequence[Any]) -> _Structure:
        rest = iter(inputs)
        leaves = [next(rest) if isinstance(leaf, tf.TypeSpec) else leaf for leaf in tf.nest.flatten(self.structure)]
        filled: _Structure = tf.nest.pack_sequence_as(self.structure, leaves)
        return filled


def _paths(tf: Any, structure: Any, parameters: Sequence[str] | None) -> list[tuple[str, ...]]:
    """Return the path to each leaf, starting with a parameter name; only indices, for nests of other types."""
    paths = list(paths_of(structure))
    number = len(tf.nest.flatten(structure))
    if len(paths) != number:
        return [(str(index),) for index in range(number)]
    if parameters is None:
        return paths
    return [(parameters[int(first)], *rest) for first, *rest in paths]


def _parameters(traced: Any) -> list[str]:
    """Return the names as TensorFlow reports them; indices where it does not."""
    number = len(traced.structured_input_signature[0])
    known = [each for each in getattr(traced.function_type, "parameters", {}) if each != "self"][:number]
    return [*known, *map(str, range(len(known), number))]


def _check_type(tf: Any, leaf: Any, dense: Any, what: str, name: str) -> None:
    kind = None if isinstance(leaf, dense) else type(leaf).__name__
    if kind is None and leaf.dtype in (tf.string, tf.resource, tf.variant):
        kind = f"tensor of type {leaf.dtype.name}"
    if kind is not None:
        finding = Finding("tensorflow_type", "error", "type", f"{what} is a {kind}, which StableHLO does not support")
        raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", [finding])


def _traced(tf: Any, function: Callable[..., Any], arguments: Sequence[Any], name: str) -> Any:
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        return function
    staged: Any = function if hasattr(function, "get_concrete_function") else tf.function(function)
    try:
        return staged.get_concrete_function(*tf.nest.map_structure(lambda leaf: _spec_of(tf, leaf), arguments))
    except Exception as error:
        raise InvalidProgramError(f"TensorFlow cannot trace {name}: {_first_line(error)}") from error


def _spec_of(tf: Any, leaf: Any) -> Any:
    """Return the spec of an array; return any other value unchanged."""
    if isinstance(leaf, tf.TypeSpec) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    return tf.TensorSpec(leaf.shape, leaf.dtype)


def _compiled(function: Any, specs: Sequence[Any], platform: str, graphs: FunctionGraphs, name: str) -> str:
    """Compile a function to text of StableHLO and a few ops of MHLO.

    Ops that XLA lacks, or whose shapes depend on values, are an ``UnsupportedFeatureError`` with findings.
    """
    try:
        text: str = function.experimental_get_compiler_ir(*specs)(stage="stablehlo", platform_name=platform)
    except Exception as error:
        if findings := list(explained_refusal(str(error), graphs)):
            raise UnsupportedFeatureError(f"XLA cannot compile {name}", findings) from error
        raise InvalidProgramError(f"XLA cannot compile {name}: {_first_line(error)}") from error
    return with_user_locations(_TOTAL_ORDER.sub(" : (", text), graphs)


#: What no reader of the program accepts: XlaBuilder's order of floats, of integers.
_TOTAL_ORDER: Final = re.compile(r", +TOTALORDER : \((?=tensor<(?:[\dx?]*x)?u?i\d+[,>])")


def _captured(
    concrete: Any,
    graphs: FunctionGraphs,
    known: Iterable[Any],
    called: Mapping[int, str],
    taken: Sequence[str],
    name: str,
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Return the values that are captured by name, in the order of the arguments, and the variables among them."""
    variables = {id(each.handle): each for each in known}
    names, values, held = [], [], []
    inside, outside = concrete.graph.inputs, concrete.captured_inputs
    for inner, tensor in zip(inside[len(inside) - len(outside) :], outside, strict=True):
        variable = variables.get(id(tensor))
        if variable is None and tensor.dtype.name in ("resource", "variant", "string"):
            findings = [
                Finding(
                    "tensorflow_type",
                    "error",
                    "type",
                    f"{used.type}{node} uses a {tensor.dtype.name} from outside of {name} that is not a variable, such "
                    f"as a lookup table or the state of a generator",
                    op=used.type,
                    location=place,
                    remedy="move its users out of the exported function",
                )
                for used in graphs.users(inner)
                for place in (graphs.place(used.name),)
                for node in ("" if place else f" ({used.name})",)
            ]
            raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", findings)
        names.append("captured" if variable is None else called[id(tensor)])
        values.append(tensor.numpy() if variable is None else variable.numpy())
        held.append(variable)
    called_by = unique(names, taken)
    return dict(zip(called_by, values, strict=True)), dict(zip(called_by, held, strict=True))


def _updated(artifact: Artifact, call: _SignatureCall, weights: Sequence[str], name: str) -> list[str]:
    """Return the names of the variables whose new values follow the outputs; check that ``main`` has that signature."""
    inventory = artifact.inventory()
    main = next(each for each in inventory.functions if each.name == "main")
    before, returned = len(call.inputs), len(call.outputs)
    aliases = sorted(
        (each.output_index[0] if each.output_index else 0, each.parameter_number) for each in inventory.aliases
    )
    fits = [output for output, _ in aliases] == list(range(returned, len(main.results)))
    if not fits or len(main.arguments) != before + len(weights) or any(number < before for _, number in aliases):
        raise InvalidProgramError(
            f"TensorFlow compiled {name} to a program with {len(main.arguments)} arguments and {len(main.results)} "
            f"results: expected {before} inputs, {len(weights)} variables or tensors, {returned} outputs, and the new "
            f"value of each assigned variable, in its shape"
        )
    return [weights[number - before] for _, number in aliases]


def _first_line(error: Exception) -> str:
    """Return the relevant line of a TensorFlow error message."""
    lines = [line.strip() for line in str(error).replace("Failed getting HLO text: '", "").splitlines()]
    said = [line.rstrip("'") for line in lines if line]
    if not said:
        return type(error).__name__
    # AutoGraph's messages start with the call stack and end with the error.
    return said[-1] if said[0] == _IN_USER_CODE else first_words("\n".join(said))


_IN_USER_CODE: Final = "in user code:"
