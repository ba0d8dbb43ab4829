"""Graphs of TensorFlow, and their variables."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from vhlo_tools.findings import Finding, Level, SourceLocation

# Graphs of a TensorFlow function: source lines of its ops, and the ops that draw random numbers
#
# The program that TensorFlow compiles knows ops by their names in these graphs, and gives all of them the location of a
# file of TensorFlow.

_OWN: Final = str(Path(__file__).parents[1])
#: TensorFlow's messages omit the beginning of a path.
_OWN_END: Final = re.compile(rf"(?:^|/){re.escape(Path(_OWN).name)}/integrations/")
#: Folders of packages whose lines are not the user's.
_FRAMEWORKS: Final = re.compile(r"/(?:site|dist)-packages/(?:tensorflow|keras|keras_hub|tf_keras)/")

_NO_KERNEL: Final = re.compile(r"No registered '(?P<op>\w+)' OpKernel .*?(?=No registered '|\Z)", re.DOTALL)
_NOT_CONSTANT: Final = re.compile(
    r"Input (?P<input>\d+) to node `(?P<node>[^`]+)` with op (?P<op>\w+) must be a compile-time constant"
)
_NODE: Final = re.compile(r"\{\{node (?P<node>[^}]+/[^}]+)\}\}")
_UNKNOWN: Final = re.compile(r'"mhlo\.unknown"\(.* loc\((?P<alias>#loc\d*)\)$', re.MULTILINE)
_NAMED: Final = re.compile(r'^(?P<alias>#loc\d*) = loc\("(?P<name>[^"\\]*)"', re.MULTILINE)
_INNER_NODE: Final = re.compile(r"\{\{node (?P<node>[^}]+)\}\}\]\]")
_FRAME: Final = re.compile(r"File \"(?P<file>[^\"]+)\", line (?P<line>\d+), in ")

_NAME: Final = re.compile(r'^(?P<alias>#loc\d*) = loc\("(?P<name>[^"\\]*)"\)$', re.MULTILINE)
_IN_FILE: Final = re.compile(r'^(?P<alias>#loc\d*) = loc\("[^"\\]*":\d+:\d+\)$', re.MULTILINE)
_FUSED: Final = re.compile(r"loc\(fused\[(?P<name>#loc\d*), (?P<file>#loc\d*)\]\)")

#: Ops that take the seed, which the compiled program does not have, from a state of the process.
_SEEDED_BY_PROCESS: Final = (
    *("Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson", "RandomPoissonV2"),
    *("RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"),
)
#: Ops that read the state of a ``tf.random.Generator``, a variable, and move it on.
_SEEDED_BY_VARIABLE: Final = (
    *("NonDeterministicInts", "RngReadAndSkip", "RngSkip", "StatefulRandomBinomial", "StatefulStandardNormalV2"),
    *("StatefulTruncatedNormal", "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt"),
)
#: Ops that take the seed as an input; which numbers follow from it depends on the device.
_SEEDED_BY_INPUT: Final = (
    "StatelessMultinomial",
    "StatelessParam",
    "StatelessRandom",
    "StatelessShuffle",
    "StatelessTrunc",
)
#: Ops whose results are only known up to signs.
_SEVERAL_RESULTS: Final = ("Eig", "Qr", "SelfAdjointEigV2", "Svd", "XlaSelfAdjointEig", "XlaSvd")
_READING: Final = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape")
_BRANCHES: Final = ("Case", "If", "StatelessCase", "StatelessIf")
_STATELESS: Final = "use an op that takes its seed, such as tf.random.stateless_normal, with the seed as an input"


#: Lines of user code by the names of a function and of an op in it.
RecordedPlaces = Mapping[tuple[str, str], SourceLocation]
_INFERENCE: Final = re.compile(r"__inference_(?P<name>.*)_\d+")


class FunctionGraphs:
    """The graph of a ``ConcreteFunction``, and those of the functions that its ops call."""

    def __init__(self, concrete: Any, recorded: RecordedPlaces | None = None) -> None:
        self._recorded = recorded or {}
        self._graphs = list(_graphs(concrete.graph, set()))
        self._places: dict[str, set[SourceLocation | None]] = defaultdict(set)
        self._kinds: dict[str, str] = {}
        for op in self.ops():
            self._places[op.name].add(self.place_of(op))
            self._kinds[op.name] = op.type

    def ops(self) -> Iterator[Any]:
        for graph in self._graphs:
            yield from graph.get_operations()

    def place_of(self, op: Any) -> SourceLocation | None:
        """Return the line of user code, which a SavedModel has recorded if it was loaded."""
        return _user_place(op) or self._recorded.get((op.graph.name, op.name))

    def place(self, name: str) -> SourceLocation | None:
        """Return the line of user code; the names of calls may precede that of the op, separated by slashes."""
        places = self._places.get(self._known(name), set())
        return next(iter(places)) if len(places) == 1 else None

    def kind(self, name: str) -> str:
        """Return the op of a name, before which there may be those of calls as well."""
        return self._kinds.get(self._known(name), "")

    def _known(self, name: str) -> str:
        parts = name.split("/")
        ends = ("/".join(parts[first:]) for first in range(len(parts)))
        return next((each for each in ends if each in self._places), name)

    def users(self, tensor: Any) -> Iterator[Any]:
        """Yield the ops that use a tensor of the outermost graph, also in functions that they call."""
        for op in tensor.consumers():
            called = list(_called(op))
            if not called:
                yield op
            for graph in called:
                for inner, operand in zip(graph.inputs, op.inputs, strict=False):
                    if operand is tensor:
                        yield from self.users(inner)

    def assigning(self, concrete: Any, variable: Any) -> str:
        """Return the first op that assigns to a variable, with its line."""
        captured = concrete.captured_inputs
        inside = concrete.graph.inputs[len(concrete.graph.inputs) - len(captured) :]
        for inner, outside in zip(inside, captured, strict=True):
            for op in self.users(inner) if outside is variable.handle else ():
                if op.type not in _READING:
                    place = self.place_of(op)
                    return f"{op.type} at {place}" if place else f"{op.type} ({op.name})"
        return "an op"

    def makers(self, tensor: Any) -> Iterator[Any]:
        """Yield the ops that make the lists which a tensor may be, through calls, loops and branches."""
        pending, seen = [tensor], set[int]()
        while pending:
            tensor = pending.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            op, called = tensor.op, list(_called(tensor.op))
            if op.type == "TensorListReserve":
                yield op
            elif op.type in ("While", "StatelessWhile"):
                pending.append(op.inputs[tensor.value_index])
            elif called:
                pending += (graph.outputs[tensor.value_index] for graph in called)
            elif op.type == "Placeholder":
                pending += self._given(tensor)
            elif op.type in ("Identity", "TensorListSetItem"):
                pending.append(op.inputs[0])

    def _given(self, tensor: Any) -> Iterator[Any]:
        """Yield what calls give for an input of a graph."""
        for op in self.ops():
            for graph in _called(op):
                number = next((at for at, each in enumerate(graph.inputs) if each is tensor), None)
                if number is not None:
                    # A branch does not have the condition.
                    yield op.inputs[number + len(op.inputs) - len(graph.inputs)]

    def ambiguous(self) -> str | None:
        """Return why correct results may differ from TensorFlow's."""
        found = {op.type for op in self.ops() if op.type in _SEVERAL_RESULTS or op.type.startswith(_SEEDED_BY_INPUT)}
        drawn = sorted(each for each in found if each.startswith(_SEEDED_BY_INPUT))
        if drawn:
            return f"{', '.join(drawn)} may draw by another algorithm on each device"
        return f"{', '.join(sorted(found))} has several correct results" if found else None

    def random_ops(self) -> Iterator[Finding]:
        """Yield a finding for each line that draws random numbers from a state."""
        drawn: dict[tuple[str, SourceLocation | None], int] = defaultdict(int)
        for op in self.ops():
            if op.type in (*_SEEDED_BY_PROCESS, *_SEEDED_BY_VARIABLE):
                drawn[op.type, self.place_of(op)] += 1
        for (kind, place), count in drawn.items():
            if kind in _SEEDED_BY_PROCESS:
                message = (
                    f"{kind} becomes stablehlo.rng, which has no seed, not even one that is given: every engine draws "
                    f"other numbers, at each call"
                )
                remedy = _STATELESS
            else:
                message = (
                    f"{kind} reads the state of a random generator and moves it on: the state is an argument of the "
                    f"program, and its next value a result"
                )
                remedy = "pass the state that a call returns to the next call, or every call draws the same numbers"
            yield Finding("random_state", "warning", "op", message, kind, place, remedy=remedy, count=count)


def growing_arrays(tf: Any, graphs: FunctionGraphs) -> Iterator[Finding]:
    """Yield a finding for each line that writes a ``tf.TensorArray`` which grows: XLA keeps its first size.

    TensorFlow's compiler makes no file that shows it, and writes beyond the size go to the last element, or nowhere.
    """
    found: dict[tuple[str, SourceLocation | None, int], bool] = {}
    for op in graphs.ops():
        if op.type == "TensorListSetItem" and op.get_attr("resize_if_index_out_of_bounds"):
            index = tf.get_static_value(op.inputs[1])
            for made in graphs.makers(op.inputs[0]):
                size = tf.get_static_value(made.inputs[1])
                if size is not None and (index is None or index >= size):
                    key = op.type, graphs.place_of(op), int(size)
                    found[key] = found.get(key, False) or not size or index is not None
    for (kind, place, size), is_lost in found.items():
        why = "is lost" if is_lost else f"beyond element {size - 1} is lost"
        message = f"a TensorArray that grows keeps its first size, {size}, in a program: what is written to it {why}"
        remedy = "make it with the size that it needs: tf.TensorArray(dtype, size=...)"
        level: Level = "error" if is_lost else "warning"
        yield Finding("tensorflow_op", level, "op", message, kind, place, remedy=remedy)


def branches_of_other_shapes(graphs: FunctionGraphs) -> Iterator[Finding]:
    """Yield a finding for each line that chooses between results that differ in more than one dimension.

    XLA writes them with several bounds, and the ops of StableHLO for one.
    """
    found: dict[tuple[str, SourceLocation | None], str] = {}
    for op in graphs.ops():
        for shape in (each.shape for each in op.outputs if op.type in _BRANCHES):
            if shape.rank is not None and shape.as_list().count(None) > 1:
                sizes = ", ".join("?" if each is None else str(each) for each in shape.as_list())
                found.setdefault((op.type, graphs.place_of(op)), sizes)
    for (kind, place), sizes in found.items():
        message = f"the branches of {kind} return tensors of different shapes, ({sizes}) in common"
        remedy = "let all branches return the same shape, or make the condition a Python value"
        yield Finding("tensorflow_op", "error", "op", message, kind, place, remedy=remedy)


def ops_of_open_sizes(text: str, graphs: FunctionGraphs) -> Iterator[Finding]:
    """Yield a finding for each line with an op that XLA has for open sizes, and StableHLO has not."""
    names = {match["alias"]: match["name"] for match in _NAMED.finditer(text)}
    for name in dict.fromkeys(names.get(match["alias"], "") for match in _UNKNOWN.finditer(text)):
        kind, place = graphs.kind(name), graphs.place(name)
        node = "" if place else f" ({name})"
        message = f"{kind or 'an op'}{node} changes the shape of a tensor whose size depends on values"
        remedy = "reduce or gather that tensor first, or choose by tf.where, which keeps sizes"
        yield Finding("tensorflow_op", "error", "op", message, kind, place, remedy=remedy)


def explained_refusal(message: str, graphs: FunctionGraphs) -> Iterator[Finding]:
    """Yield a finding for each op that XLA refuses to compile, by TensorFlow's error message."""
    for op, place, node in dict.fromkeys(_without_kernel(message, graphs)):
        said, remedy = f"{op}{node} is an op that XLA cannot compile", "move it out of the exported function"
        yield Finding("tensorflow_op", "error", "op", said, op, place, remedy=remedy)
    for match in _NOT_CONSTANT.finditer(message):
        place = graphs.place(match["node"])
        node = "" if place else f" ({match['node']})"
        said = (
            f"input {match['input']} of {match['op']}{node} depends on an input of the function: XLA needs its value "
            f"to compile the op"
        )
        remedy = "make it a Python value or a constant, or move the op out of the exported function"
        yield Finding("tensorflow_op", "error", "op", said, match["op"], place, remedy=remedy)
    if not _NO_KERNEL.search(message) and not _NOT_CONSTANT.search(message):
        yield from _of_node(message, graphs)


def _of_node(message: str, graphs: FunctionGraphs) -> Iterator[Finding]:
    """Yield a finding for the innermost op that a message names last, with what the message begins with."""
    for match in list(_INNER_NODE.finditer(message))[-1:]:
        said = message.partition("\n")[0].partition("HLO text: '")[2] or message.partition("\n")[0]
        kind = graphs.kind(match["node"])
        yield Finding(
            "tensorflow_op",
            "error",
            "op",
            f"XLA cannot compile {kind or 'the op'} ({match['node']}): {said}",
            kind,
            graphs.place(match["node"]),
            remedy="change what it is given, or move it out of the exported function",
        )


def _without_kernel(message: str, graphs: FunctionGraphs) -> Iterator[tuple[str, SourceLocation | None, str]]:
    """Yield an op with its line, or, where none is the user's, with its name, which has that of its layer."""
    for match in _NO_KERNEL.finditer(message):
        places = {graphs.place_of(op) for op in graphs.ops() if op.type == match["op"]}
        known: list[SourceLocation | None] = sorted((place for place in places if place is not None), key=str)
        frames = [(each["file"], int(each["line"])) for each in _FRAME.finditer(match[0])]
        listed = _innermost(reversed(frames))
        node = "" if known or listed else next((f" ({each['node']})" for each in _NODE.finditer(match[0])), "")
        for place in known or [listed]:
            yield match["op"], place, node


def with_user_locations(text: str, graphs: FunctionGraphs) -> str:
    """Put lines of user code into the locations of a compiled program.

    An op in ``text`` has two locations: its name, and a line of TensorFlow.
    """
    names = {match["alias"]: match["name"] for match in _NAME.finditer(text)}
    files = {match["alias"] for match in _IN_FILE.finditer(text)}

    def replaced(match: re.Match[str]) -> str:
        name = names.get(match["name"])
        if name is None or match["file"] not in files:
            return match[0]
        place = graphs.place(name)
        if place is None:
            return f'loc("{name}")'
        file = place.file.replace("\\", "\\\\").replace('"', '\\"')
        return f'loc("{name}"("{file}":{place.line}:0))'

    return _FUSED.sub(replaced, text)


def _graphs(graph: Any, seen: set[int]) -> Iterator[Any]:
    """Yield a graph, and the graphs of functions that its ops call, each once."""
    if id(graph) in seen:
        return
    seen.add(id(graph))
    yield graph
    for op in graph.get_operations():
        for inner in _called(op):
            yield from _graphs(inner, seen)


def _called(op: Any) -> Iterator[Any]:
    for value in op.node_def.attr.values():
        references: Iterable[Any] = [value.func] if value.HasField("func") else value.list.func
        for reference in references:
            try:
                yield op.graph._get_function(reference.name).graph
            except (AttributeError, KeyError, ValueError):
                # A function that was loaded has no graph; nor has one of a release that keeps them elsewhere.
                continue


def _user_place(op: Any) -> SourceLocation | None:
    """Return the innermost line of the user's code that led to an op; ``None`` for ops of a framework's model."""
    return _innermost((frame.filename, frame.lineno) for frame in reversed(op.traceback or ()))


def _innermost(frames: Iterable[tuple[str, int]]) -> SourceLocation | None:
    for file, line in frames:
        if file.startswith(_OWN) or _OWN_END.search(file):
            return None
        if not _FRAMEWORKS.search(file.replace("\\", "/")):
            return SourceLocation(file, line)
    return None


def recorded_places(folder: Path) -> RecordedPlaces:
    """Return the lines that ``tf.saved_model.SaveOptions(save_debug_info=True)`` has recorded in a SavedModel."""
    from tensorflow.core.framework import graph_debug_info_pb2

    file = folder / "debug" / "saved_model_debug_info.pb"
    if not file.exists():
        return {}
    info = graph_debug_info_pb2.GraphDebugInfo.FromString(file.read_bytes())
    places = {}
    for number, trace in info.traces_by_id.items():
        frames = [info.frames_by_id[each] for each in reversed(trace.frame_id)]
        places[number] = _innermost((info.files[each.file_index], each.line) for each in frames)
    found = {}
    for name, number in info.name_to_trace_id.items():
        op, _, function = name.partition("@")
        if place := places.get(number):
            # Loading a function takes away what saving added to its name; bodies and branches keep theirs.
            named = _INFERENCE.fullmatch(function)
            found[named["name"] if named else function, op] = place
    return found


# Names of TensorFlow variables: their own names, prefixed by the path of the modules that contain them

# TensorFlow's name for a variable without a name.
_UNNAMED: Final = "Variable"
# The prefix of attributes that TensorFlow itself adds to objects.
_SELF: Final = "_self_"


def owner_of(function: Callable[..., Any]) -> Any:
    """Return ``None`` if the function is not a method."""
    python: Any = getattr(function, "python_function", function)
    # For a method that is a `tf.function`, TensorFlow keeps the bound method and the function that AutoGraph generated.
    methods: tuple[Any, ...] = (
        python,
        *(getattr(python, name, None) for name in ("__original_wrapped__", "__wrapped__")),
    )
    bound = next((each.__self__ for each in methods if hasattr(each, "__self__")), None)
    # The bound object is a proxy, because the object itself refers to the method.
    return getattr(bound, "target", bound)


def variable_names(tf: Any, owner: Any, variables: Iterable[Any]) -> dict[int, str]:
    """Return the names of variables by the identities of their handles.

    A name that already contains a TensorFlow scope, ``dense/kernel``, is complete. Otherwise the path of the modules
    from ``owner`` to the variable is prefixed, ``encoder.layers.0.kernel``; a variable without a name gets the name of
    its attribute.
    """
    paths = {id(variable.handle): path for variable, path in _held(tf, owner)}
    names = {}
    for variable in variables:
        own, path = variable.name.partition(":")[0], paths.get(id(variable.handle), ())
        if path and "/" not in own:
            own = ".".join(path if own == _UNNAMED else (*path[:-1], own))
        names[id(variable.handle)] = own
    return names


def variables_of(tf: Any, owner: Any) -> Iterator[Any]:
    """Yield the variables that an object holds: a function whose ops take handles alone does not know of them."""
    yield from (variable for variable, _ in _held(tf, owner))


def _held(tf: Any, owner: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield each variable with the shortest path to it."""
    pending: deque[tuple[Any, tuple[str, ...]]] = deque([(owner, ())])
    seen = set[int]()
    while pending:
        held, path = pending.popleft()
        if id(held) in seen:
            continue
        seen.add(id(held))
        if isinstance(held, tf.Variable):
            yield held, path
        else:
            pending += ((each, (*path, name)) for name, each in _children(tf, held))


def _children(tf: Any, held: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(held, Mapping):
        yield from ((str(key), each) for key, each in held.items())
    elif isinstance(held, list | tuple):
        yield from ((str(number), each) for number, each in enumerate(held))
    # Modules, models, and the objects of a SavedModel.
    elif isinstance(held, tf.__internal__.tracking.AutoTrackable):
        yield from ((name, each) for name, each in vars(held).items() if not name.startswith(_SELF))
