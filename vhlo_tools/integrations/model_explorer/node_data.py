"""Facts about ops and arguments, as data that Model Explorer shows on nodes and in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from vhlo_tools.aliasing import format_index
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model_explorer.conversion import PURPOSE, argument_id, functions, graph_id, op_id
from vhlo_tools.spec import minimum_version, newest_version
from vhlo_tools.version import Version
from vhlo_tools.viewing import Group, ProgramGraph

if TYPE_CHECKING:
    from vhlo_tools.findings import Level

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
            yield _Result(op_id(op), str(introduced), _shade(_place(introduced, oldest, newest)), "#1c1b1f")


def _place(version: Version, oldest: Version, newest: Version) -> float:
    """Return the position of a version between two others: 0 for the first, 1 for the second."""
    first, last = (each.major * 100 + each.minor for each in (oldest, newest))
    return min(max((version.major * 100 + version.minor - first) / max(last - first, 1), 0.0), 1.0)


def _shade(place: float) -> str:
    return "#" + "".join(
        f"{round(start + (end - start) * place):02x}" for start, end in zip(_OLDEST, _NEWEST, strict=True)
    )


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
