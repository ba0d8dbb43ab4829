"""Programs and their node data in the form of Model Explorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from vhlo_tools.aliasing import format_index
from vhlo_tools.bytecode import Printer, attributes_of
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.printable import printable
from vhlo_tools.spec import minimum_version, newest_version
from vhlo_tools.version import Version
from vhlo_tools.viewing import Group, ProgramGraph

if TYPE_CHECKING:
    from vhlo_tools.findings import Level

# Convert the graph of a program to graphs of Model Explorer: one for each function
#
# Source: ``graph_builder.py`` of ai-edge-model-explorer, which says what each field means.

Form = Literal["stablehlo", "vhlo"]

PURPOSE: Final = "showing a program in Model Explorer"
# Of an attribute that is shown whole as VHLO, in bytes of the file; and of a type, in characters.
_LONGEST: Final = 256
# A namespace is a path: names in it, such as those of files, must not have its separator.
_SLASH: Final = "\N{DIVISION SLASH}"


def model_graphs(graph: ProgramGraph, form: Form = "stablehlo") -> list[Any]:
    """Return a ``Graph`` of Model Explorer for each function; a call leads to the graph of its function.

    Groups are those of :mod:`vhlo_tools.viewing`. The form ``stablehlo`` has names as in programs, ``vhlo`` as in the
    file.
    """
    require_extra("model-explorer", PURPOSE, "model_explorer")
    texts = graph if form == "stablehlo" else _Vhlo(graph)
    known = {graph_id(each) for each in functions(graph)}
    return [_Function(graph, each, texts, known).graph() for each in functions(graph)]


def functions(graph: ProgramGraph) -> Iterator[Group]:
    """Yield the functions of a program, and last a group of the ops outside of them, if there are any."""
    whole = graph.groups
    found = [each for each in whole.walk() if each.kind == "function"]
    yield from found
    others = tuple(_outside(whole))
    if others or not found:
        yield Group("program", whole.label, others, sum(each.size if isinstance(each, Group) else 1 for each in others))


def _outside(whole: Group) -> Iterator[int | Group]:
    """Yield the ops and groups beside functions; very many of them are in runs."""
    for each in whole.members:
        if isinstance(each, int):
            yield each
        elif each.kind == "run":
            yield from _outside(each)
        elif each.kind != "function":
            yield each


def graph_id(function: Group) -> str:
    return function.label.removeprefix("@")


def op_id(op: int) -> str:
    return f"op{op}"


def argument_id(value: int) -> str:
    return f"value{value}"


def _cut(text: str) -> str:
    """Cut a type that is longer than any of a tensor: it stands beside each of its values."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _short(group: Group) -> str:
    """Leave out the folders of the file of a source line."""
    label = group.label.rpartition("/")[2] if group.kind == "line" else group.label
    return label.replace("/", _SLASH)


class _Vhlo:
    """Names, types and attributes as in the file; of large constants only type and size."""

    def __init__(self, graph: ProgramGraph) -> None:
        self._graph = graph
        self._file = graph.artifact.file
        self._printer = Printer(self._file)
        self._type: Callable[[int], str] = cache(lambda index: printable(self._printer.type(index)))

    def name(self, op: int) -> str:
        return self._graph.op_name(op).artifact

    def type(self, value: int) -> str:
        return self._type(self._graph.columns.value_types[value])

    def attributes(self, op: int) -> Mapping[str, str]:
        short = self._graph.attributes(op)
        held = attributes_of(self._file, self._graph.columns.kinds[self._graph.columns.heads[op]])
        return {
            printable(name): (
                short[printable(name)]
                if len(self._file.attributes[index].data) > _LONGEST
                else printable(self._printer.attribute(index))
            )
            for name, index in held.items()
        }


class _Function:
    def __init__(self, graph: ProgramGraph, function: Group, texts: ProgramGraph | _Vhlo, known: set[str]) -> None:
        from model_explorer import graph_builder

        self._builder = graph_builder
        self._graph = graph
        self._root = function
        self._texts = texts
        self._known = known
        self._nodes: list[Any] = []
        self._about: dict[str, dict[str, str]] = {}

    def graph(self) -> Any:
        pending: list[tuple[Group, str]] = [(self._root, "")]
        while pending:
            group, namespace = pending.pop()
            self._about[namespace] = {"ops": f"{group.size:,}"}
            if group.op is not None and namespace:
                # What the op of a group says stands beside its regions.
                self._op(group.op, namespace)
            if group.op is not None:
                self._arguments(group.op, namespace)
            for number, member in enumerate(group.members):
                if isinstance(member, Group):
                    # Numbered, for groups of one name are not one group.
                    name = f"{_short(member)} ({number})"
                    pending.append((member, f"{namespace}/{name}" if namespace else name))
                else:
                    self._op(member, namespace)
        return self._builder.Graph(id=graph_id(self._root), nodes=self._nodes, groupNodeAttributes=self._about)

    def _arguments(self, op: int, namespace: str) -> None:
        for span in self._graph.columns.blocks_in(op):
            of_region = f" of region {span.region}" if span.region else ""
            for position in range(span.arguments):
                value = span.first_argument + position
                self._nodes.append(
                    self._builder.GraphNode(
                        id=argument_id(value),
                        label=f"argument {position}{of_region}",
                        namespace=namespace,
                        outputsMetadata=self._outputs([value]),
                    )
                )

    def _op(self, op: int, namespace: str) -> None:
        builder, graph = self._builder, self._graph
        attributes = self._texts.attributes(op)
        operands = [graph.value(value) for value in graph.columns.operands_of(op)]
        callee = attributes.get("callee", "").strip('"@')
        self._nodes.append(
            builder.GraphNode(
                id=op_id(op),
                label=self._texts.name(op),
                namespace=namespace,
                subgraphIds=[callee] if callee in self._known else [],
                attrs=[builder.KeyValue(key, value) for key, value in (*attributes.items(), *self._facts(op))],
                incomingEdges=[
                    builder.IncomingEdge(
                        sourceNodeId=argument_id(each.number) if each.op is None else op_id(each.op),
                        sourceNodeOutputId=str(each.position if each.op is not None else 0),
                        targetNodeInputId=str(number),
                    )
                    for number, each in enumerate(operands)
                ],
                outputsMetadata=self._outputs(graph.columns.results_of(op)),
            )
        )

    def _facts(self, op: int) -> Iterator[tuple[str, str]]:
        """Yield the facts about an op beside its attributes."""
        introduced = self._graph.introduced(op)
        yield "introduced in", str(introduced) if introduced else "unknown to vhlo_tools"
        label, stack = self._graph.label(op), self._graph.stack(op)
        if label:
            yield "named", label
        if stack:
            yield "source", str(stack[0].location)

    def _outputs(self, values: range | list[int]) -> list[Any]:
        builder = self._builder
        return [
            builder.MetadataItem(
                id=str(number),
                attrs=[
                    builder.KeyValue("tensor_shape", _cut(self._texts.type(value))),
                    builder.KeyValue("__tensor_tag", f"%{value}"),
                ],
            )
            for number, value in enumerate(values)
        ]


# Facts about ops and arguments, as data that Model Explorer shows on nodes and in tables

NodeDataKind = Literal["introductions", "findings", "aliases"]

#: The colours of nodes and of the text in them: what is seen in light and dark, and with a contrast above 4.5.
_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "error": ("#b3261e", "#ffffff"),
    "warning": ("#ffb95c", "#1c1b1f"),
    "note": ("#a8c7fa", "#1c1b1f"),
    "alias": ("#1b6e3c", "#ffffff"),
    "donor": ("#a6d5b5", "#1c1b1f"),
}
#: From the oldest version with guarantees to the newest.
_OLDEST: Final = (0xE8, 0xEE, 0xF7)
_NEWEST: Final = (0xE0, 0x6C, 0x00)


class _Result(NamedTuple):
    node: str
    text: str
    background: str
    foreground: str


def node_data(graph: ProgramGraph, kind: NodeDataKind, *, target: Version | None = None) -> dict[str, Any]:
    """Return a ``GraphNodeData`` of Model Explorer by the id of each graph.

    The data are ``introductions``, the version that brought each op with its features; ``findings``, the features that
    exclude ``target`` (by default the oldest version with guarantees); or ``aliases``, with donors.
    """
    require_extra("model-explorer", PURPOSE, "model_explorer")
    from model_explorer import node_data_builder

    target = target or minimum_version()
    results: Callable[[Group], Iterator[_Result]] = {
        "introductions": lambda function: _introductions(graph, function),
        "findings": _findings_of(graph, target),
        "aliases": lambda function: _aliases(graph, function),
    }[kind]
    name = f"findings for {target}" if kind == "findings" else kind
    return {
        graph_id(function): node_data_builder.GraphNodeData(
            name=name,
            # Tables are of numbers, and these are texts; of those, groups show how many nodes have which.
            hideInAggregatedStatsTable=True,
            hideInChildrenStatsTable=True,
            showExpandedSummaryOnGroupNode=True,
            results={
                each.node: node_data_builder.NodeDataResult(each.text, each.background, each.foreground)
                for each in results(function)
            },
        )
        for function in functions(graph)
    }


def _ops(function: Group) -> Iterator[int]:
    for group in function.walk():
        if group.op is not None and group is not function:
            yield group.op
        yield from (each for each in group.members if not isinstance(each, Group))


def _introductions(graph: ProgramGraph, function: Group) -> Iterator[_Result]:
    oldest, newest = minimum_version(), newest_version()
    for op in _ops(function):
        introduced = graph.introduced(op)
        if introduced is None:
            yield _Result(op_id(op), "unknown", *_COLOURS["error"])
        else:
            yield _Result(op_id(op), str(introduced), _shade(introduced, oldest, newest), "#1c1b1f")


def _shade(version: Version, oldest: Version, newest: Version) -> str:
    """Return the colour of a version between two others."""
    first, last = (each.major * 100 + each.minor for each in (oldest, newest))
    place = min(max((version.major * 100 + version.minor - first) / max(last - first, 1), 0.0), 1.0)
    parts = (round(start + (end - start) * place) for start, end in zip(_OLDEST, _NEWEST, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _findings_of(graph: ProgramGraph, target: Version) -> Callable[[Group], Iterator[_Result]]:
    levels: dict[str, Level] = {}
    for found in graph.artifact.requirements().findings(target):
        levels.setdefault(found.feature, found.level)

    def results(function: Group) -> Iterator[_Result]:
        for op in _ops(function):
            features = [each for each in graph.features(op) if each.introduced > target and each.id in levels]
            if features:
                level = "error" if "error" in {levels[each.id] for each in features} else "warning"
                said = ", ".join(f"{each.id} ({each.introduced})" for each in features)
                yield _Result(op_id(op), f"{level}: {said}", *_COLOURS[level])

    return results


def _aliases(graph: ProgramGraph, function: Group) -> Iterator[_Result]:
    if function.label != "@main" or function.op is None:
        return
    declared = graph.artifact.declared_aliases().declared
    arguments = {
        position: span.first_argument + position
        for span in graph.columns.blocks_in(function.op)[:1]
        for position in range(span.arguments)
    }
    aliases = (
        (each.parameter_number, f"{each.kind} with output {format_index(each.output_index)}", "alias")
        for each in declared.aliases
    )
    donors = ((each.parameter_number, "donor", "donor") for each in declared.donors)
    for number, said, colours in (*aliases, *donors):
        # What is declared may be wrong.
        if number in arguments:
            yield _Result(argument_id(arguments[number]), said, *_COLOURS[colours])
