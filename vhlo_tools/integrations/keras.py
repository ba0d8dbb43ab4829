"""Keras 3 models as portable artifacts, through the backend of Keras: JAX, PyTorch or TensorFlow.

With each backend ``main`` accepts the inputs, in the order of ``keras.tree.flatten``, followed, if they are arguments,
by all of ``model.weights``, in that order and under the paths that Keras assigns. It returns the outputs, in the order
of ``keras.tree.flatten``. Models run in inference mode (``training=False``): updates of their weights are omitted.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.integrations.exported_model import ExportedModel, fixed_shapes, joined, serialize_module, unique
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.proof import first_words, verified
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ExportOptions

# Random numbers that a Keras model draws while it is traced, from states that no program has as an argument

_OWN: Final = str(Path(__file__).parents[1])
#: Folders of packages whose lines are not the user's.
_FRAMEWORKS: Final = re.compile(r"/(?:site|dist)-packages/(?:jax|keras|keras_hub|tensorflow|torch)/|<")
_RANDOM: Final = "/keras/src/random/random.py"


@contextmanager
def recorded_draws() -> Iterator[dict[Finding, None]]:
    """Record draws from ``keras.random.SeedGenerator``: a finding for each generator and line of user code."""
    import keras

    # In order; a function may be traced more than once.
    draws: dict[Finding, None] = {}
    generator: Any = keras.random.SeedGenerator
    draw = generator.next

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        draws[_finding(str(self.state.path), sys._getframe(1))] = None
        return draw(self, *args, **kwargs)

    generator.next = recorded
    try:
        yield draws
    finally:
        generator.next = draw


def _finding(generator: str, frame: FrameType | None) -> Finding:
    op, place = "keras.random", None
    while frame is not None:
        file, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        if file.endswith(_RANDOM):
            op = f"keras.random.{name}"
        if file.startswith(_OWN):
            break
        if not _FRAMEWORKS.search(file):
            place = SourceLocation(frame.f_code.co_filename, frame.f_lineno)
            break
        frame = frame.f_back
    return Finding(
        "random_state",
        "warning",
        "op",
        f"{op} draws from the state of {generator}, which is a constant of the program: every call draws the same "
        f"numbers",
        op=op,
        location=place,
        remedy="make the random numbers, or an integer from which they are drawn, an input of the model",
    )


_PURPOSE: Final = "exporting a Keras model"


@dataclass(frozen=True, slots=True)
class _Argument:
    shape: tuple[int, ...]
    dtype: str  # Keras's name


def export(
    model: Any,
    *example_inputs: Any,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "constants",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    name: str | None = None,
    verify: bool | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedModel:
    """Export a Keras 3 model in inference mode.

    Args:
        model: A model or a layer.
        example_inputs: For each argument of its ``call`` an array, any other value with a shape and a dtype, or a nest
            of these. A model that declares its inputs needs none.
        target: The target version or consumer, in the target grammar.
        weights: Whether the weights become constants, or arguments after the inputs.
        batch_size: The size of the first dimension of inputs that leave it open, as most models do.
        shapes: The shapes of inputs that leave other dimensions open, by name.
        name: The name of the model in messages, by default its own name.
        verify: Whether results on the example inputs, or without them on random inputs, are compared with those of
            Keras; by default where the examples are arrays, and a note among the findings says why it was not done.
        options: See :class:`vhlo_tools.program.ExportOptions`.

    Raises:
        MissingExtraError: If Keras or its backend is not installed.
        InvalidInputError: If the shape of an input remains open, or ``shapes`` names an input that does not exist.
        InvalidProgramError: If the model does not declare its inputs, the backend cannot trace it, or the program does
            not compute what Keras does.
        UnsupportedFeatureError: If it contains something that no artifact can represent.
        DowngradeError: If it needs a feature newer than the target.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    require_extra("keras", _PURPOSE, "keras")
    import keras

    started = monotonic()
    name = name or str(model.name)
    arguments, inputs, arguments_of_model = _inputs(keras, model, example_inputs, batch_size, shapes or {}, name)
    if strings := [each for each, argument in zip(inputs, arguments, strict=True) if argument.dtype == "string"]:
        raise UnsupportedFeatureError(
            f"{name} cannot be written as a portable artifact", _strings(keras, model, strings, name)
        )
    _build(keras, model, arguments_of_model(arguments), name)
    variables = list(model.weights)
    # Copies, because the model may be trained further; of the tensors, for a variable of TensorFlow would warn.
    values: dict[str, np.ndarray[Any, Any]] = {
        path: keras.ops.convert_to_numpy(keras.ops.copy(variable.value))
        for path, variable in zip(unique((each.path for each in variables), inputs), variables, strict=True)
    }
    arguments += [_Argument(tuple(each.shape), keras.backend.standardize_dtype(each.dtype)) for each in variables]
    outputs: list[str] = []

    def flat(*tensors: Any) -> tuple[Any, ...]:
        """Call the model with its inputs and its weights, and record the names of its outputs."""
        inside = dict(zip(map(id, variables), tensors[len(inputs) :], strict=True))
        # Variables that are not weights, such as the state of a random generator, have no effect in inference.
        groups = (model.trainable_variables, model.non_trainable_variables)
        states = [[inside.get(id(each), each.value) for each in group] for group in groups]
        given = arguments_of_model(tensors[: len(inputs)])
        result, _ = model.stateless_call(*states, *given, **_in_inference(model))
        leaves = keras.tree.flatten_with_path(result)
        outputs[:] = unique(joined((tuple(map(str, path)) for path, _ in leaves), "output"))
        return tuple(leaf for _, leaf in leaves)

    writing: Any = {"target": target, "name": name, **options}
    backend = keras.backend.backend()
    if backend not in _BACKENDS:
        raise InvalidProgramError(f"Keras runs on {backend}: expected one of {', '.join(_BACKENDS)} as its backend")
    with recorded_draws() as draws:
        artifact = _BACKENDS[backend](flat, arguments, writing)
    artifact = artifact.with_findings([*draws, *artifact.findings])
    exported = ExportedModel.named(artifact, inputs, tuple(outputs), values)
    exported = exported if weights == "arguments" else exported.bound()

    def compute(tensors: Sequence[Any]) -> list[Any]:
        given = arguments_of_model([keras.ops.convert_to_tensor(each) for each in tensors])
        results = keras.tree.flatten(model(*given, **_in_inference(model)))
        return [keras.ops.convert_to_numpy(keras.ops.stop_gradient(each)) for each in results]

    examples = _examples(keras, example_inputs, arguments[: len(inputs)])
    return verified(exported, "Keras", compute, examples, verify=verify, started=started)


def _in_inference(model: Any) -> dict[str, bool]:
    parameters = inspect.signature(model.call).parameters.values()
    is_told = any(each.name == "training" or each.kind is each.VAR_KEYWORD for each in parameters)
    return {"training": False} if is_told else {}


def _examples(keras: Any, examples: Sequence[Any], arguments: Sequence[_Argument]) -> list[Any] | None:
    """Return the example inputs as arrays, in the types of the program, if all of them are."""
    leaves = keras.tree.flatten(list(examples))
    if (
        not leaves
        or not all(hasattr(each, "__array__") for each in leaves)
        or any(map(keras.utils.is_keras_tensor, leaves))
    ):
        return None
    found = [
        keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(each, dtype=argument.dtype))
        for each, argument in zip(leaves, arguments, strict=True)
    ]
    return (
        found
        if all(tuple(each.shape) == argument.shape for each, argument in zip(found, arguments, strict=True))
        else None
    )


def _inputs(
    keras: Any,
    model: Any,
    examples: Sequence[Any],
    batch_size: int | None,
    shapes: Mapping[str, Sequence[int]],
    name: str,
) -> tuple[list[_Argument], tuple[str, ...], Callable[[Sequence[Any]], list[Any]]]:
    """Return the inputs, their names, and a function that packs values as the arguments of the model's ``call``."""
    if examples:
        structure: Any = list(examples)
        leaves = keras.tree.flatten_with_path(structure)
        parameters = list(inspect.signature(model.call).parameters)
        names = joined(((*parameters[path[0] : path[0] + 1], *map(str, path[1:])) for path, _ in leaves), "input")
        tensors = [leaf for _, leaf in leaves]
    else:
        tensors = list(getattr(model, "inputs", None) or ())
        if not tensors:
            raise InvalidProgramError(f"{name} does not specify its inputs: give an example of each")
        try:
            structure = [model.input]
        except AttributeError:
            # A Sequential model, which has one input.
            structure = [tensors[0] if len(tensors) == 1 else tensors]
        names = [each.name for each in tensors]
    unnamed = [each for each in tensors if not (hasattr(each, "shape") and hasattr(each, "dtype"))]
    if unnamed:
        raise InvalidInputError(f"an example input of {name} is a {type(unnamed[0]).__qualname__}: expected an array")
    named = unique(names)
    fixed = fixed_shapes(
        {each: tuple(tensor.shape) for each, tensor in zip(named, tensors, strict=True)}, batch_size, shapes, name
    )
    found = [
        _Argument(shape, keras.backend.standardize_dtype(tensor.dtype))
        for shape, tensor in zip(fixed, tensors, strict=True)
    ]

    def packed(values: Sequence[Any]) -> list[Any]:
        result: list[Any] = keras.tree.pack_sequence_as(structure, list(values))
        return result

    return found, named, packed


def _strings(keras: Any, model: Any, inputs: Sequence[str], name: str) -> list[Finding]:
    """Return a finding for each input of strings, with the layers that take strings."""
    layers = [each for each in getattr(model, "layers", ()) if not isinstance(each, keras.layers.InputLayer)]
    taking = [
        f"{layer.name} ({type(layer).__name__})"
        for layer in layers
        if any(each.dtype == "string" for each in keras.tree.flatten(getattr(layer, "input", [])))
    ]
    users = f": {', '.join(taking)} takes it" if taking else ""
    kind, remedy = type(model).__name__, "compute numbers of the strings outside of the model"
    return [
        Finding(
            "keras_type",
            "error",
            "type",
            f"the input {each} of {name} is a tensor of strings, which StableHLO does not support{users}",
            op=taking[0].rpartition("(")[2].rstrip(")") if taking else kind,
            remedy=remedy,
        )
        for each in inputs
    ]


def _build(keras: Any, model: Any, inputs: Sequence[Any], name: str) -> None:
    """Make a model create its weights, if it is not built yet."""
    if model.built:
        return
    try:
        model(*keras.tree.map_structure(lambda each: keras.ops.zeros(each.shape, each.dtype), list(inputs)))
    except Exception as error:
        raise InvalidProgramError(f"Keras cannot build {name}: {_first_line(error)}") from error


_Flat = Callable[..., tuple[Any, ...]]


def _through_jax(flat: _Flat, arguments: Sequence[_Argument], writing: Any) -> Artifact:
    require_extra("jax", f"{_PURPOSE} on JAX", "jax")
    import jax

    # JAX replaces 64-bit types by 32-bit types unless configured otherwise.
    specs = [jax.ShapeDtypeStruct(each.shape, jax.dtypes.canonicalize_dtype(each.dtype)) for each in arguments]
    # Otherwise JAX would drop weights that inference does not use.
    jitted = jax.jit(flat, keep_unused=True)
    try:
        module = jitted.lower(*specs).compiler_ir("stablehlo")
    except Exception as error:
        raise InvalidProgramError(f"JAX cannot trace {writing['name']}: {_first_line(error)}") from error
    return serialize_module(module, **writing)


def _through_tensorflow(flat: _Flat, arguments: Sequence[_Argument], writing: Any) -> Artifact:
    require_extra("tensorflow", f"{_PURPOSE} on TensorFlow", "tensorflow")
    import tensorflow as tf

    from vhlo_tools.integrations import tensorflow

    specs = [tf.TensorSpec(each.shape, each.dtype) for each in arguments]
    # The tensors that it captures beside its arguments are not weights.
    return tensorflow.export(
        tf.function(flat, autograph=False), *specs, weights="constants", verify=False, **writing
    ).artifact


def _through_torch(flat: _Flat, arguments: Sequence[_Argument], writing: Any) -> Artifact:
    require_extra("torch", f"{_PURPOSE} on PyTorch", "torch")
    import keras
    import torch

    from vhlo_tools.integrations.torch import export as export_module

    class Flat(torch.nn.Module):  # type: ignore[misc]
        """A module without parameters, because all weights of the model are arguments."""

        def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
            return flat(*tensors)

    examples = [keras.ops.zeros(each.shape, each.dtype) for each in arguments]
    with torch.no_grad():
        # Its results are compared on the inputs of the model, which these zeros are not.
        return export_module(Flat(), examples, weights="constants", verify=False, **writing).artifact


_BACKENDS: Final[dict[str, Callable[[_Flat, Sequence[_Argument], Any], Artifact]]] = {
    "jax": _through_jax,
    "tensorflow": _through_tensorflow,
    "torch": _through_torch,
}


def _first_line(error: Exception) -> str:
    return first_words(str(error)) or type(error).__name__
