"""Functions and SavedModels of TensorFlow as portable artifacts.

``main`` takes the inputs in the order of ``tf.nest.flatten``, and then what the function captures, in the order in
which it uses it first: variables, and tensors that were made outside of it. It returns the outputs, in the order of
``tf.nest.flatten``, and then the new values of the variables that it assigns to, in the order of their arguments; each
of these may be written over its argument, as the aliases of the artifact say.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidInputError, InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model import ExportedModel, serialize_module
from vhlo_tools.integrations.naming import joined, paths_of, unique
from vhlo_tools.integrations.shapes import fixed_shapes
from vhlo_tools.integrations.variables import owner_of, variable_names
from vhlo_tools.version import Version

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.program import ProgramSource

__all__ = ["SERVING", "export", "export_saved_model", "open_saved_model"]

#: The signature that TensorFlow's own tools take where none is named.
SERVING: Final = "serving_default"

# Where `ConcreteFunction`s of every kind have what they were called with.
_Structure = tuple[tuple[Any, ...], dict[str, Any]]


def export(
    function: Callable[..., Any],
    *arguments: Any,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "arguments",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    platform: str = "CPU",
    legalize: bool = True,
    allow_other_dialects: bool = False,
    name: str | None = None,
    owner: Any = None,
    as_of: date | None = None,
    provider: str | None = None,
) -> ExportedModel:
    """Export a function of TensorFlow.

    Args:
        function: A Python function, a ``tf.function``, a method of a ``tf.Module``, or a ``ConcreteFunction``.
        arguments: For each of its positional arguments a ``tf.TensorSpec``, an array or a nest of these, or a Python
            value, which becomes part of the program. None are needed if the function has an input signature.
        target: The version to write for, or what is to read it, in the grammar of targets.
        weights: Whether variables, and tensors that the function captures, stay arguments, or become constants.
        batch_size: The size of the first dimension of inputs that leave it open.
        shapes: The shapes of inputs that leave others open, by name.
        platform: What XLA compiles for; of few functions the program depends on it.
        legalize: Whether what portable artifacts cannot hold is rewritten.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        name: What to call it in messages, by default the name of the function.
        owner: What holds the modules whose attributes name variables, by default the object whose method it is.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The MLIR bindings to use, by default the installed ones.

    Raises:
        MissingExtraError: If TensorFlow is not installed.
        InvalidInputError: If an input leaves its shape open, there is no input of a name in ``shapes``, or variables
            that the function assigns to shall become constants.
        InvalidProgramError: If TensorFlow cannot trace or compile the function.
        UnsupportedFeatureError: If it holds an op or a type that XLA does not have, or what no artifact can hold.
        DowngradeError: If it holds what the target does not have.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
    """
    tf = _import_tensorflow("exporting a TensorFlow function")
    name = name or str(getattr(function, "__name__", None) or getattr(function, "name", None) or "the function")
    traced = _traced(tf, function, arguments, name)
    call = _Call.of(tf, traced, name)
    declared = [spec.shape for spec in call.specs]
    given = [each for each in map(_shape_of, tf.nest.flatten(arguments)) if each is not None]
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
        return traced(*call.positional(tf, inputs), **call.keywords(tf, inputs))

    # TensorFlow shows the program of a tf.function only; of this one, every argument is a tensor of known shape.
    compiled = tf.function(flat, jit_compile=True, autograph=False)
    try:
        concrete = compiled.get_concrete_function(*specs)
    except Exception as error:
        raise InvalidProgramError(f"TensorFlow cannot trace {name} for these shapes: {_first_line(error)}") from error
    variables = (*traced.variables, *concrete.variables)
    known = variable_names(tf, owner_of(function) if owner is None else owner, variables)
    captured = _captured(concrete, variables, known, (*call.inputs, *call.outputs), name)
    text = _compiled(compiled, specs, platform, name)
    artifact = serialize_module(
        text,
        target,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
    )
    updated = _updated(artifact, call, list(captured), name)
    if weights == "arguments":
        return ExportedModel.named(artifact, call.inputs, (*call.outputs, *updated), captured)
    if updated:
        raise InvalidInputError(
            f"{name} assigns to {', '.join(updated)}, which cannot be constants: "
            "export its weights as arguments (--weights)"
        )
    return ExportedModel.named(artifact, call.inputs, call.outputs, captured).bound()


def export_saved_model(
    path: str | PathLike[str],
    signature: str = SERVING,
    *,
    target: str | Version = "current",
    weights: Literal["arguments", "constants"] = "arguments",
    batch_size: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    platform: str = "CPU",
    legalize: bool = True,
    allow_other_dialects: bool = False,
    name: str | None = None,
    as_of: date | None = None,
    provider: str | None = None,
) -> ExportedModel:
    """Export a signature of a SavedModel. Loading one runs its ops: treat those of strangers like programs.

    Args:
        path: The folder.
        signature: The name of the signature.
        target: As in :func:`export`, like all that follow.
        weights: Whether variables, and tensors that the function captures, stay arguments, or become constants.
        batch_size: The size of the first dimension of inputs that leave it open, as most signatures do.
        shapes: The shapes of inputs that leave others open, by name.
        platform: What XLA compiles for.
        legalize: Whether what portable artifacts cannot hold is rewritten.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay.
        name: What to call it in messages, by default its path.
        as_of: The day that windows in ``target`` count back from.
        provider: The MLIR bindings to use.

    Raises:
        MissingExtraError: If TensorFlow is not installed.
        InvalidProgramError: If there is no SavedModel, or a damaged one.
        InvalidInputError: If it has no such signature; and what else :func:`export` raises.
    """
    tf = _import_tensorflow("reading a SavedModel")
    name = name or str(path)
    try:
        loaded = tf.saved_model.load(str(Path(path)))
    except Exception as error:
        raise InvalidProgramError(f"{name} is no SavedModel that TensorFlow reads: {_first_line(error)}") from error
    signatures = loaded.signatures
    if signature not in signatures:
        known = ", ".join(sorted(signatures)) or "none"
        raise InvalidInputError(f"{name} has no signature {signature!r}; its signatures are: {known}")
    return export(
        signatures[signature],
        target=target,
        weights=weights,
        batch_size=batch_size,
        shapes=shapes,
        platform=platform,
        legalize=legalize,
        allow_other_dialects=allow_other_dialects,
        name=name,
        owner=loaded,
        as_of=as_of,
        provider=provider,
    )


def open_saved_model(
    source: ProgramSource,
    target: str | Version,
    *,
    weights: Literal["arguments", "constants"],
    name: str | None,
    allow_other_dialects: bool,
    legalize: bool,
    as_of: date | None,
    provider: str | None,
    signature: str = SERVING,
    batch_size: int | None = None,
) -> ExportedModel:
    """Export the SavedModel in the folder ``source``, as :class:`vhlo_tools.api.frontends.Exporter` asks for it."""
    return export_saved_model(
        str(source),
        signature,
        target=target,
        weights=weights,
        batch_size=batch_size,
        name=name,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        as_of=as_of,
        provider=provider,
    )


@dataclass(frozen=True, slots=True)
class _Call:
    """How a traced function is called.

    Attributes:
        structure: Its positional and its keyword arguments, with a ``TensorSpec`` for each input.
        specs: These, in order.
        inputs: Their names.
        outputs: The names of what it returns.
    """

    structure: _Structure
    specs: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, tf: Any, traced: Any, name: str) -> _Call:
        """Return how ``traced`` is called.

        Raises:
            UnsupportedFeatureError: If it takes or returns what no program of StableHLO does.
        """
        structure = traced.structured_input_signature
        leaves = tf.nest.flatten(structure)
        paths = [*_paths(tf, structure[0], _parameters(traced)), *_paths(tf, structure[1], None)]
        specs, names = [], []
        for path, leaf in zip(joined(paths, "input"), leaves, strict=True):
            if isinstance(leaf, tf.TypeSpec):
                _check_type(tf, leaf, tf.TensorSpec, f"the input {path} of {name}", name)
                specs.append(leaf)
                names.append(path)
        outputs = []
        returned = traced.structured_outputs
        for path, leaf in zip(joined(_paths(tf, returned, None), "output"), tf.nest.flatten(returned), strict=True):
            if leaf is not None:
                _check_type(tf, leaf, tf.Tensor | tf.TensorSpec, f"the output {path} of {name}", name)
                outputs.append(path)
        return cls(structure, tuple(specs), unique(names), unique(outputs))

    def positional(self, tf: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the positional arguments with ``inputs`` in the places of their specs."""
        return self._filled(tf, inputs)[0]

    def keywords(self, tf: Any, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return the keyword arguments likewise."""
        return self._filled(tf, inputs)[1]

    def _filled(self, tf: Any, inputs: Sequence[Any]) -> _Structure:
        rest = iter(inputs)
        leaves = [next(rest) if isinstance(leaf, tf.TypeSpec) else leaf for leaf in tf.nest.flatten(self.structure)]
        filled: _Structure = tf.nest.pack_sequence_as(self.structure, leaves)
        return filled


def _paths(tf: Any, structure: Any, parameters: Sequence[str] | None) -> list[tuple[str, ...]]:
    """Return the path to each leaf, with names for the first steps; numbers, where the nest is of another kind."""
    paths = list(paths_of(structure))
    number = len(tf.nest.flatten(structure))
    if len(paths) != number:
        return [(str(index),) for index in range(number)]
    if parameters is None:
        return paths
    return [(parameters[int(first)], *rest) for first, *rest in paths]


def _parameters(traced: Any) -> list[str]:
    """Return the names of the positional arguments, by TensorFlow's own account."""
    number = len(traced.structured_input_signature[0])
    known = [each for each in getattr(traced.function_type, "parameters", {}) if each != "self"][:number]
    return [*known, *map(str, range(len(known), number))]


def _check_type(tf: Any, leaf: Any, dense: Any, what: str, name: str) -> None:
    kind = None if isinstance(leaf, dense) else type(leaf).__name__
    if kind is None and leaf.dtype in (tf.string, tf.resource, tf.variant):
        kind = f"tensor of type {leaf.dtype.name}"
    if kind is not None:
        finding = Finding("tensorflow_type", "error", "type", f"{what} is a {kind}, which StableHLO does not have")
        raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", [finding])


def _shape_of(leaf: Any) -> Any:
    """Return the shape of what stands for an input; ``None`` for Python values."""
    return getattr(leaf, "shape", None)


def _traced(tf: Any, function: Callable[..., Any], arguments: Sequence[Any], name: str) -> Any:
    """Return the ``ConcreteFunction`` for these arguments.

    Raises:
        InvalidProgramError: If TensorFlow cannot trace the function.
    """
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        return function
    staged: Any = function if hasattr(function, "get_concrete_function") else tf.function(function)
    try:
        return staged.get_concrete_function(*tf.nest.map_structure(lambda leaf: _spec_of(tf, leaf), arguments))
    except Exception as error:
        raise InvalidProgramError(f"TensorFlow cannot trace {name}: {_first_line(error)}") from error


def _spec_of(tf: Any, leaf: Any) -> Any:
    """Return the spec of an array; what is none stays."""
    if isinstance(leaf, tf.TypeSpec) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    return tf.TensorSpec(leaf.shape, leaf.dtype)


def _compiled(function: Any, specs: Sequence[Any], platform: str, name: str) -> str:
    """Return the program that TensorFlow makes of a function, as text of StableHLO and a little of MHLO.

    Raises:
        UnsupportedFeatureError: If it holds ops that XLA does not have.
        InvalidProgramError: If TensorFlow cannot compile it for another reason.
    """
    try:
        text: str = function.experimental_get_compiler_ir(*specs)(stage="stablehlo", platform_name=platform)
    except Exception as error:
        if findings := list(_unsupported_ops(str(error))):
            raise UnsupportedFeatureError(f"XLA cannot compile {name}", findings) from error
        raise InvalidProgramError(f"XLA cannot compile {name}: {_first_line(error)}") from error
    return text


_NO_KERNEL: Final = re.compile(r"No registered '(?P<op>\w+)' OpKernel .*?(?=No registered '|\Z)", re.DOTALL)
_FRAME: Final = re.compile(r"File \"(?P<file>[^\"]+)\", line (?P<line>\d+), in ")


def _unsupported_ops(message: str) -> Iterator[Finding]:
    for match in _NO_KERNEL.finditer(message):
        # The last frame is the innermost one of the user's.
        frames = list(_FRAME.finditer(match[0]))
        place = SourceLocation(frames[-1]["file"], int(frames[-1]["line"])) if frames else None
        yield Finding(
            "tensorflow_op",
            "error",
            "op",
            f"{match['op']} is no op that XLA compiles",
            op=match["op"],
            location=place,
            remedy="leave it outside of the function that is exported",
        )


def _captured(
    concrete: Any, known: Iterable[Any], called: Mapping[int, str], taken: Sequence[str], name: str
) -> dict[str, np.ndarray[Any, Any]]:
    """Return what a function captures, by name, in the order of its arguments.

    Raises:
        UnsupportedFeatureError: If that is no tensor and no variable.
    """
    variables = {id(each.handle): each for each in known}
    names, values = [], []
    for tensor in concrete.captured_inputs:
        variable = variables.get(id(tensor))
        if variable is None and tensor.dtype.name in ("resource", "variant", "string"):
            finding = Finding(
                "tensorflow_type",
                "error",
                "type",
                f"{name} uses a {tensor.dtype.name} from outside that is no variable, such as a lookup table",
                remedy="leave what uses it outside of the function that is exported",
            )
            raise UnsupportedFeatureError(f"{name} cannot be written as a portable artifact", [finding])
        names.append("captured" if variable is None else called[id(tensor)])
        values.append(tensor.numpy() if variable is None else variable.numpy())
    return dict(zip(unique(names, taken), values, strict=True))


def _updated(artifact: Artifact, call: _Call, weights: Sequence[str], name: str) -> list[str]:
    """Return the names of the variables whose new values follow the outputs.

    Raises:
        InvalidProgramError: If ``main`` is not what it is expected to be.
    """
    inventory = artifact.inventory()
    main = next(each for each in inventory.functions if each.name == "main")
    before, returned = len(call.inputs), len(call.outputs)
    aliases = sorted(
        (each.output_index[0] if each.output_index else 0, each.parameter_number) for each in inventory.aliases
    )
    fits = [output for output, _ in aliases] == list(range(returned, len(main.results)))
    if not fits or len(main.arguments) != before + len(weights) or any(number < before for _, number in aliases):
        raise InvalidProgramError(
            f"TensorFlow made a program of {name} with {len(main.arguments)} arguments and {len(main.results)} "
            f"results: expected {before} inputs, {len(weights)} variables or tensors, {returned} outputs, and the new "
            "value of each variable that is assigned to, in its own shape"
        )
    return [weights[number - before] for _, number in aliases]


def _first_line(error: Exception) -> str:
    """Return what is worth saying of an error of TensorFlow's."""
    lines = [line.strip() for line in str(error).replace("Failed getting HLO text: '", "").splitlines()]
    said = [line.rstrip("'") for line in lines if line]
    if not said:
        return type(error).__name__
    # AutoGraph shows the way there first, and what was wrong at its end.
    return said[-1] if said[0] == _IN_USER_CODE else said[0]


_IN_USER_CODE: Final = "in user code:"


def _import_tensorflow(purpose: str) -> Any:
    """Return TensorFlow; what it says while it loads is shown only if it does not.

    Raises:
        MissingExtraError: If it is not installed.
    """
    require_extra("tensorflow", purpose, "tensorflow")
    if "tensorflow" not in sys.modules:
        # Of what it logs afterwards, warnings and errors are for people.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        with _quiet_unless_it_fails():
            import tensorflow  # noqa: F401
    return sys.modules["tensorflow"]


@contextmanager
def _quiet_unless_it_fails() -> Iterator[None]:
    """Hold back what is written to the file of stderr, also by C++."""
    try:
        stderr = os.dup(2)
    except OSError:
        yield
        return
    with TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
