"""What surrounds an export of PyTorch: names, sizes, repairs, and errors with the user's line."""

from __future__ import annotations

import io
import logging
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import cache
from itertools import pairwise
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings import Module, Provider
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.findings import Diagnostic, SourceLocation
from vhlo_tools.integrations.proof import first_words

if TYPE_CHECKING:
    import torch
    from torch.fx import Node


# Lines of the user's source from which nodes of exported programs come

_FRAME: Final = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


def user_line(node: Node) -> SourceLocation | None:
    """Return the innermost line outside of torch, or else the innermost in torch."""
    found = ((each["file"], int(each["line"])) for each in _FRAME.finditer(node.meta.get("stack_trace") or ""))
    # Code that torch made has no file, and ours is not the user's.
    frames = [frame for frame in found if not frame[0].startswith(("<", _OWN))]
    outside = [frame for frame in frames if not frame[0].startswith(_folder_of_torch())]
    return SourceLocation(*(outside or frames)[-1]) if frames else None


def is_users(place: SourceLocation | None) -> bool:
    """Tell whether a place is known, and no line of this package."""
    return place is not None and not place.file.startswith(_OWN)


def described(node: Node) -> str:
    """Return the op of a node with its line: ``aten.roll.default at model.py:7``."""
    line = user_line(node)
    return f"{node.target} at {line}" if line else str(node.target)


@cache
def _folder_of_torch() -> str:
    import torch

    return str(Path(torch.__file__).parent)


# Names of inputs and outputs: parameters of ``forward``, and paths within them


def input_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Return a name for each leaf of the inputs: ``tokens``, ``state.0``, ``options.scale``."""
    from torch.utils import _pytree as pytree

    spec = program.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    parameters = program.module_call_graph[0].signature
    names = list(parameters.forward_arg_names or ()) if parameters else []
    # Programs from old files lack the names.
    names += [f"input{index}" for index in range(len(names), len(args))]
    found: dict[int, str] = {}
    for parts, values in ((names, args), (list(kwargs), kwargs.values())):
        for part, value in zip(parts, values, strict=False):
            for path, leaf in pytree.tree_flatten_with_path(value)[0]:
                found[leaf] = ".".join([part, *map(_word, path)])
    return tuple(found[leaf] for leaf in range(spec.num_leaves))


def output_names(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Return a name for each leaf of the outputs: ``output0``, or its path if the outermost is not a sequence."""
    from torch.utils import _pytree as pytree

    spec = program.call_spec.out_spec
    outputs = pytree.tree_unflatten(range(spec.num_leaves), spec)
    found = {}
    for path, leaf in pytree.tree_flatten_with_path(outputs)[0]:
        words = [_word(key) for key in path] or ["0"]
        found[leaf] = ".".join([f"output{words[0]}" if words[0].isdigit() else words[0], *words[1:]])
    return tuple(found[leaf] for leaf in range(spec.num_leaves))


def _word(key: Any) -> str:
    """An element of a path is an index, a key or an attribute."""
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# Dynamic sizes of torch.export as symbolic dimensions of JAX, in one scope

_UNBOUND: Final = 2


def symbolic_shapes(program: torch.export.ExportedProgram) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that makes shapes for JAX: expressions over dynamic sizes become symbolic dimensions.

    Their ranges are those that ``torch.export`` recorded.
    """
    import jax.export
    import torch

    found = {
        symbol
        for node in program.graph.nodes
        if node.op == "placeholder"
        for size in getattr(node.meta.get("val"), "shape", ())
        if isinstance(size, torch.SymInt)
        for symbol in size.node.expr.free_symbols
    }
    constraints = []
    for symbol, allowed in program.range_constraints.items():
        # torch writes 2 for sizes without a lower bound, and infinities of its own for those without an upper one.
        if symbol in found and allowed.lower.is_Integer and allowed.lower > _UNBOUND:
            constraints.append(f"{symbol} >= {allowed.lower}")
        if symbol in found and allowed.upper.is_Integer:
            constraints.append(f"{symbol} <= {allowed.upper}")
    scope = jax.export.SymbolicScope(constraints)

    def shape(sizes: Sequence[Any]) -> tuple[Any, ...]:
        # Sizes of inputs are linear expressions, which sympy and JAX write alike.
        texts = [str(size.node.expr) if isinstance(size, torch.SymInt) else str(size) for size in sizes]
        return tuple(jax.export.symbolic_shape(", ".join(texts), scope=scope)) if texts else ()

    return shape


# Fixes for output of torch-mlir 20261001 that consumers reject


_UNSIGNED: Final = ("i1", "ui8", "ui16", "ui32", "ui64")


def mend(module: Module, provider: Provider) -> None:
    """Fix, in place, ops that XLA rejects and ops that prevent inference of shapes from the shapes of the inputs."""
    ir = provider.ir
    for op in provider.walk(module):
        match str(op.name):
            case "stablehlo.compare":
                # Booleans and unsigned integers are compared as unsigned, as StableHLO requires.
                if str(op.operands[0].type.element_type) in _UNSIGNED:
                    kind = ir.Attribute.parse("#stablehlo<comparison_type UNSIGNED>", op.context)
                    op.attributes["compare_type"] = kind
            case "arith.divui":
                # Sizes, which are not negative, are divided as signed: shape inference lacks unsigned division.
                (result,) = op.results
                if str(result.type) in ("index", "i64"):
                    operands, place = list(op.operands), ir.InsertionPoint(op)
                    signed = ir.Operation.create("arith.divsi", [result.type], operands, loc=op.location, ip=place)
                    result.replace_all_uses_with(signed.result)
            case "stablehlo.convert":
                _mend_length(op)
            case "stablehlo.sort":
                _mend_sort(op, ir)
            case "stablehlo.reduce" | "stablehlo.reduce_window":
                _mend_extremum(op, ir)


def _mend_sort(op: Any, ir: Any) -> None:
    """Sort as torch does, which keeps the order of equal elements, and takes a NaN for larger than any number."""
    op.attributes["is_stable"] = ir.BoolAttr.get(True, op.context)
    for compare in _comparisons_of_floats(op)[:1]:
        one, other = compare.operands
        larger, smaller = (one, other) if "GT" in str(compare.attributes["comparison_direction"]) else (other, one)
        users = [each.owner for each in compare.result.uses]
        make = _maker(compare, ir)
        only_larger = make("and", make("compare", larger, larger, "NE"), make("compare", smaller, smaller, "EQ"))
        found = make("or", compare.result, only_larger)
        for each in users:
            each.operands[0] = found


def _mend_extremum(op: Any, ir: Any) -> None:
    """A NaN is an extremum: the first one of a reduction, and the last one of a window, as torch has it."""
    is_window = str(op.name) == "stablehlo.reduce_window"
    if is_window and len(op.results) == len(("maximum", "place")) and str(op.operands[3].type) == "tensor<i64>":
        # What surrounds the windows is behind all places: of equal maxima, the first place is found.
        value = ir.Attribute.parse(f"dense<{(1 << 63) - 1}> : tensor<i64>", op.context)
        place, kind = ir.InsertionPoint(op), op.operands[3].type
        last = ir.Operation.create("stablehlo.constant", [kind], [], {"value": value}, loc=op.location, ip=place)
        op.operands[3] = last.result
    comparisons = _comparisons_of_floats(op)
    if len(comparisons) != len(("GE or LE", "EQ")):
        return
    wins, equals = comparisons
    one, other = wins.operands
    users = {each: [use.owner for use in each.result.uses] for each in (wins, equals)}
    make = _maker(wins, ir)
    found = make("or", wins.result, make("compare", one, one, "NE"))
    if is_window:
        found = make("and", found, make("compare", other, other, "EQ"))
    for each in users[wins]:
        each.operands[0] = found
    if not is_window:
        make = _maker(equals, ir)
        are_nan = make("and", make("compare", one, one, "NE"), make("compare", other, other, "NE"))
        both = make("or", equals.result, are_nan)
        for each in users[equals]:
            each.operands[0] = both


def _comparisons_of_floats(op: Any) -> list[Any]:
    inner = op.regions[0].blocks[0].operations
    return [
        each
        for each in inner
        if str(each.name) == "stablehlo.compare" and "FLOAT" in str(each.attributes["compare_type"])
    ]


def _maker(compare: Any, ir: Any) -> Callable[..., Any]:
    """Return a function that makes ops on booleans, and comparisons like a given one, after that."""
    ops = list(compare.operation.block.operations)
    before = next(after for each, after in pairwise(ops) if each == compare)

    def make(name: str, one: Any, other: Any, direction: str = "") -> Any:
        attributes = {}
        if direction:
            kind = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>", compare.context)
            attributes = {"comparison_direction": kind, "compare_type": compare.attributes["compare_type"]}
        made = ir.Operation.create(
            f"stablehlo.{name}",
            [compare.result.type],
            [one, other],
            attributes,
            loc=compare.location,
            ip=ir.InsertionPoint(before),
        )
        return made.result

    return make


def _mend_length(op: Any) -> None:
    """Use the length of a range of step 1 directly, and not the ceiling of a quotient of floats."""
    ceiling = _made_by(op.operands[0], "stablehlo.ceil")
    quotient = _made_by(ceiling.operands[0], "stablehlo.divide") if ceiling else None
    if quotient is None:
        return
    length, step = (_made_by(each, "stablehlo.convert") for each in quotient.operands)
    if length is None or step is None or length.operands[0].type != op.result.type:
        return
    one = _made_by(step.operands[0], "stablehlo.constant") or _made_by(step.operands[0], "arith.constant")
    if one is None or not str(one.attributes["value"]).startswith("dense<1> : tensor<"):
        return
    op.result.replace_all_uses_with(length.operands[0])


def _made_by(value: Any, name: str) -> Any:
    owner = value.owner
    return owner if getattr(owner, "name", None) == name else None


# Errors and diagnostics of torch and torch-mlir, reduced to the cause

#: An op that torch-mlir does not know is a ``torch.operator`` with the name as an attribute.
_OPERATOR: Final = re.compile(r'name = "torch\.([\w.]+)"')
_OWN: Final = str(Path(__file__).parents[2])
#: Files whose lines are not the user's: of packages, and of Python.
_FRAMEWORKS: Final = re.compile(
    r"-packages/(?:jax|jaxlib|keras|torch|torch_mlir|torchax)/|"
    rf"^{re.escape(str(Path(traceback.__file__).parent))}/(?!(?:site|dist)-packages/)"
)
#: What torch says of its own symbols, and links to discussions.
_NOISE: Final = re.compile(r"(?<! ) +\((?:unhinted|Size-like symbols): .*| See https?://.*")
_ADVICE: Final = re.compile("To fix the error|Suggested fixes|[Cc]onsider using ")
_NO_ADVICE: Final = re.compile(r"Caused by|For more|\(These|The following call")
_VALUES: Final = (
    "what is run may not depend on the values of tensors: torch.where and torch.cond choose by them, torch.while_loop "
    "repeats, and torch._check states what a size is"
)
_OBJECT: Final = re.compile(r"__torch__\.(?P<kind>torch\.classes\.[\w.]+) .*'__obj_flatten__'")
_ASKING: Final = re.compile(r"/torch/(?:nn|distributions)/")
_OP: Final = re.compile(r"'torch\.((?:aten|prims|prim|runtime|quantized|torchvision)\.[\w.]+)'")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Convert errors of torch to InvalidProgramError: the first line of the message, the user's line, and advice.

    Deprecation warnings of torch about itself are suppressed, because they do not concern the caller.
    """
    try:
        with warnings.catch_warnings():
            for category in (DeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            # Emitted for every LSTM and similar module, which store their parameters twice.
            warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights")
            # Of caches that are written while gradients are on.
            warnings.filterwarnings("ignore", "A model attribute .* requires gradient")
            yield
    except (MemoryError, OSError, InvalidProgramError):
        raise
    except Exception as error:
        raise InvalidProgramError(f"{what}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Return what an error of torch says, in one line, with the user's line and the advice that follows it."""
    import torch

    # What torch adds to messages is no reason, where it is all that they say.
    text = str(error).partition("The error above occurred when calling torch.export")[0]
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], torch.dtype):
        return f"it has no tensors of {error.args[0]}"
    said = _NOISE.sub("", first_words(text)).rstrip(".")
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    line = _line_of(error)
    advice = [_advice(text)]
    if type(error).__name__ == "GuardOnDataDependentSymNode":
        # What torch advises is for who can change the line.
        cause = _cause(error)
        advice = [cause, _VALUES] if cause else [_VALUES, *advice]
    if held := _OBJECT.search(text):
        return (
            f"it holds a {held['kind']}, an object of C++ that torch.export cannot take: export it without that layer"
        )
    shown = "; ".join(filter(None, advice))
    return f"{reason}{f' at {line}' if line else ''}{f' ({shown})' if shown else ''}"


def _line_of(error: Exception) -> SourceLocation | None:
    """Return the innermost line of the user in the frames that a message of torch lists, or in the traceback."""
    listed = ((each["file"], int(each["line"])) for each in _FRAME.finditer(str(error)))
    frames = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))
    for found in (listed, frames):
        outside = [each for each in found if not (each[0].startswith((_OWN, "<")) or _FRAMEWORKS.search(each[0]))]
        if outside:
            return SourceLocation(*outside[-1])
    return None


def _cause(error: Exception) -> str:
    """Return what of torch's layers, losses and distributions asks for a value."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    found = [
        each for each in codes if _ASKING.search(each.co_filename) and not each.co_name.startswith(("_call", "_wrap"))
    ]
    if not found:
        return ""
    name = getattr(found[-1], "co_qualname", found[-1].co_name)
    is_checked = "distributions" in found[-1].co_filename
    return f"{name} of torch asks for it{': validate_args=False omits the check' if is_checked else ''}"


def _advice(text: str) -> str:
    """Return the paragraph of a message that says what to do."""
    lines: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if lines and (not line or _NO_ADVICE.match(line)):
            break
        if lines or _ADVICE.match(line):
            lines.append(line)
    return " ".join(lines).rstrip(".")


@contextmanager
def quiet_failure() -> Iterator[None]:
    """Hold back output on stderr, and discard it on failure: torch prints whole graphs before it raises."""
    kept = io.StringIO()
    handlers = _handlers()
    streams = [each.setStream(kept) for each in handlers]
    try:
        with redirect_stderr(kept):
            yield
    finally:
        for handler, stream in zip(handlers, streams, strict=True):
            if stream is not None:
                handler.setStream(stream)
    sys.stderr.write(kept.getvalue())


def _handlers() -> list[logging.StreamHandler[Any]]:
    """Return what writes messages of torch to stderr."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    found = {id(each): each for logger in loggers for each in logger.handlers}
    return [
        each
        for each in found.values()
        if isinstance(each, logging.StreamHandler) and each.stream in (sys.stderr, sys.__stderr__)
    ]


def data_dependent(program: torch.export.ExportedProgram) -> str | None:
    """Return the first op with a result whose shape depends on values, for which StableHLO has no ops."""
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and any(free_unbacked_symbols(size) for size in value.shape):
            # One of several results of an op.
            return described(node.args[0] if node.target is getitem else node)
    return None


def failing_ops(diagnostics: Sequence[Diagnostic]) -> dict[str, Diagnostic]:
    """Return the torch ops that ``diagnostics`` name, each with the first diagnostic that names it."""
    found: dict[str, Diagnostic] = {}
    for diagnostic in diagnostics:
        for name in (*_OPERATOR.findall(diagnostic.message), *_OP.findall(diagnostic.message)):
            found.setdefault(name, diagnostic)
    return found
