"""Models of Keras 3 as portable artifacts, through whichever backend Keras runs on: JAX, PyTorch or TensorFlow.

With each of them ``main`` takes the inputs, in the order of ``keras.tree.flatten``, and then, if they are arguments,
all of ``model.weights``, in that order and under the paths that Keras gives them. It returns the outputs, in the order
of ``keras.tree.flatten``. Models run as in inference (``training=False``): what becomes of their weights is left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model import ExportedModel, serialize_module
from vhlo_tools.integrations.naming import joined, unique
from vhlo_tools.integrations.shapes import fixed_shapes
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

__all__ = ["export"]

_PURPOSE: Final = "exporting a Keras model"


@dataclass(frozen=True, slots=True)
class _Settings:
    """How a program becomes an artifact, whatever the backend."""

    target: str | Version
    name: str
    allow_other_dialects: bool
    legalize: bool
    as_of: date | None
    provider: str | None


@dataclass(frozen=True, slots=True)
class _Argument:
    """The shape and the type of an argument, in the words of Keras."""

    shape: tuple[int, ...]
    dtype: str


def export(
    model: Any,
    *example_inputs: Any,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "constants",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    legalize: bool = True,
    allow_other_dialects: bool = False,
    name: str | None = None,
    as_of: date | None = None,
    provider: str | None = None,
) -> ExportedModel:
    """Export a model of Keras 3, as it is in inference.

    Args:
        model: A model or a layer.
        example_inputs: For each argument of its ``call`` an array, anything else with a shape and a dtype, or a nest of
            these. A model that states its inputs needs none.
        target: The version to write for, or what is to read it, in the grammar of targets.
        weights: Whether its weights become constants, or arguments after the inputs.
        batch_size: The size of the first dimension of inputs that leave it open, as those of models do.
        shapes: The shapes of inputs that leave others open, by name.
        legalize: Whether what portable artifacts cannot hold is rewritten.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        name: What to call it in messages, by default the name of the model.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The MLIR bindings whose versions count, by default the installed ones.

    Raises:
        MissingExtraError: If Keras or its backend is not installed.
        InvalidInputError: If an input leaves its shape open, or there is no input of a name in ``shapes``.
        InvalidProgramError: If the model does not say what its inputs are, or the backend cannot trace it.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target does not have.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    require_extra("keras", _PURPOSE, "keras")
    import keras

    name = name or str(model.name)
    arguments, inputs, arguments_of_model = _inputs(keras, model, example_inputs, batch_size, shapes or {}, name)
    _build(keras, model, arguments_of_model(arguments), name)
    variables = list(model.weights)
    values = {
        path: _array(keras, variable)
        for path, variable in zip(unique((each.path for each in variables), inputs), variables, strict=True)
    }
    arguments += [_Argument(tuple(each.shape), keras.backend.standardize_dtype(each.dtype)) for each in variables]
    outputs: list[str] = []

    def flat(*tensors: Any) -> tuple[Any, ...]:
        """Call the model with its inputs and its weights, and note what its outputs are called."""
        inside = dict(zip(map(id, variables), tensors[len(inputs) :], strict=True))
        # What is no weight, such as the state of a random generator, changes nothing in inference.
        states = [[inside.get(id(each), each.value) for each in group] for group in _groups(model)]
        given, options = arguments_of_model(tensors[: len(inputs)]), _options(model)
        result, _ = model.stateless_call(*states, *given, **options)
        leaves = keras.tree.flatten_with_path(result)
        outputs[:] = unique(joined((tuple(map(str, path)) for path, _ in leaves), "output"))
        return tuple(leaf for _, leaf in leaves)

    settings = _Settings(target, name, allow_other_dialects, legalize, as_of, provider)
    backend = keras.backend.backend()
    if backend not in _BACKENDS:
        raise InvalidProgramError(f"Keras runs on {backend}: expected one of {', '.join(_BACKENDS)} as its backend")
    artifact = _BACKENDS[backend](flat, arguments, settings)
    exported = ExportedModel.named(artifact, inputs, tuple(outputs), values)
    return exported if weights == "arguments" else exported.bound()


def _inputs(
    keras: Any,
    model: Any,
    examples: Sequence[Any],
    batch_size: int | None,
    shapes: Mapping[str, Sequence[int]],
    name: str,
) -> tuple[list[_Argument], tuple[str, ...], Callable[[Sequence[Any]], list[Any]]]:
    """Return the inputs of a model, their names, and what makes the arguments of its ``call`` of them.

    Raises:
        InvalidInputError: If one leaves its shape open.
        InvalidProgramError: If the model does not say what its inputs are.
    """
    if examples:
        structure: Any = list(examples)
        leaves = keras.tree.flatten_with_path(structure)
        parameters = list(inspect.signature(model.call).parameters)
        names = joined(((*parameters[path[0] : path[0] + 1], *map(str, path[1:])) for path, _ in leaves), "input")
        tensors = [leaf for _, leaf in leaves]
    else:
        tensors = list(getattr(model, "inputs", None) or ())
        if not tensors:
            raise InvalidProgramError(f"{name} does not say what its inputs are: give an example of each")
        structure = [_structure_of(model, tensors)]
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


def _structure_of(model: Any, tensors: Sequence[Any]) -> Any:
    """Return the nest in which a model takes its inputs."""
    try:
        return model.input
    except AttributeError:
        # A Sequential, which has one input.
        return tensors[0] if len(tensors) == 1 else list(tensors)


def _build(keras: Any, model: Any, inputs: Sequence[Any], name: str) -> None:
    """Let a model make its weights, if it has not yet."""
    if model.built:
        return
    try:
        model(*keras.tree.map_structure(lambda each: keras.ops.zeros(each.shape, each.dtype), list(inputs)))
    except Exception as error:
        raise InvalidProgramError(f"Keras cannot build {name}: {_first_line(error)}") from error


def _groups(model: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the variables of a model as ``stateless_call`` takes them."""
    return model.trainable_variables, model.non_trainable_variables


def _options(model: Any) -> dict[str, bool]:
    """Return what makes a model run as in inference, where its ``call`` can be told."""
    parameters = inspect.signature(model.call).parameters.values()
    told = any(each.name == "training" or each.kind is each.VAR_KEYWORD for each in parameters)
    return {"training": False} if told else {}


def _array(keras: Any, variable: Any) -> np.ndarray[Any, Any]:
    """Return a copy of a weight, for the model may go on learning."""
    # The copy is a tensor: variables of TensorFlow become arrays only with a warning.
    value: np.ndarray[Any, Any] = keras.ops.convert_to_numpy(keras.ops.copy(variable.value))
    return value


_Flat = Callable[..., tuple[Any, ...]]


def _through_jax(flat: _Flat, arguments: Sequence[_Argument], settings: _Settings) -> Artifact:
    require_extra("jax", f"{_PURPOSE} on JAX", "jax")
    import jax

    # Of 64 bits JAX has none, unless it is told to.
    specs = [jax.ShapeDtypeStruct(each.shape, jax.dtypes.canonicalize_dtype(each.dtype)) for each in arguments]
    # JAX would leave out weights that inference does not use.
    jitted = jax.jit(flat, keep_unused=True)
    try:
        module = jitted.lower(*specs).compiler_ir("stablehlo")
    except Exception as error:
        raise InvalidProgramError(f"JAX cannot trace {settings.name}: {_first_line(error)}") from error
    return serialize_module(
        module,
        settings.target,
        name=settings.name,
        allow_other_dialects=settings.allow_other_dialects,
        legalize=settings.legalize,
        as_of=settings.as_of,
        provider=settings.provider,
    )


def _through_tensorflow(flat: _Flat, arguments: Sequence[_Argument], settings: _Settings) -> Artifact:
    require_extra("tensorflow", f"{_PURPOSE} on TensorFlow", "tensorflow")
    import tensorflow as tf

    from vhlo_tools.integrations import tensorflow

    specs = [tf.TensorSpec(each.shape, each.dtype) for each in arguments]
    # What it captures beside its arguments is no weight.
    return tensorflow.export(
        tf.function(flat, autograph=False),
        *specs,
        target=settings.target,
        weights="constants",
        legalize=settings.legalize,
        allow_other_dialects=settings.allow_other_dialects,
        name=settings.name,
        as_of=settings.as_of,
        provider=settings.provider,
    ).artifact


def _through_torch(flat: _Flat, arguments: Sequence[_Argument], settings: _Settings) -> Artifact:
    require_extra("torch", f"{_PURPOSE} on PyTorch", "torch", "torch_mlir")
    import keras
    import torch

    from vhlo_tools.integrations.torch import export as export_module

    class Flat(torch.nn.Module):  # type: ignore[misc]
        """A module without parameters, for all that the model has are arguments."""

        def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
            return flat(*tensors)

    examples = [keras.ops.zeros(each.shape, each.dtype) for each in arguments]
    with torch.no_grad():
        return export_module(
            Flat(),
            examples,
            target=settings.target,
            weights="constants",
            legalize=settings.legalize,
            allow_other_dialects=settings.allow_other_dialects,
            name=settings.name,
            as_of=settings.as_of,
            provider=settings.provider,
        ).artifact


_BACKENDS: Final[dict[str, Callable[[_Flat, Sequence[_Argument], _Settings], Artifact]]] = {
    "jax": _through_jax,
    "tensorflow": _through_tensorflow,
    "torch": _through_torch,
}


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
