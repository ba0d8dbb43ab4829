"""The graph of a program, beside what other readers say of the same bytes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files
from support.hostile_shapes import SHAPES

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact
from vhlo_tools.bytecode import Block, Place, visit
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.printable import printable
from vhlo_tools.version import Version
from vhlo_tools.viewing import MOST_MEMBERS, Group, ProgramGraph, program_graph

CALLS = """
#line = loc("model.py":3:7)
#caller = loc("train.py":9:1)
#stack = loc("jit(f)/add"(callsite("layer"(#line) at "main"(#caller))))
func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32> loc(#stack)
  %1 = stablehlo.tan %0 : tensor<2xf32> loc(fused[#line, #caller])
  %2:2 = stablehlo.while(%a = %0, %b = %1) : tensor<2xf32>, tensor<2xf32>
    cond { %c = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %c : tensor<i1> }
    do { %d = stablehlo.subtract %b, %arg1 : tensor<2xf32> stablehlo.return %d, %a : tensor<2xf32>, tensor<2xf32> }
  return %2#1, %2#0 : tensor<2xf32>, tensor<2xf32>
}
"""


@pytest.fixture(scope="module")
def calls() -> ProgramGraph:
    return program_graph(bytes(vt.serialize(CALLS, target="1.9.0")))


def find(graph: ProgramGraph, short: str) -> int:
    (found,) = [op for op in range(len(graph)) if graph.op_name(op).short == short]
    return found


def texts(graph: ProgramGraph, op: int) -> list[str]:
    """What an op uses, by what gives it."""
    return [
        f"{graph.op_name(each.op).short}#{each.position}" if each.op is not None else f"argument {each.position}"
        for each in map(graph.value, graph.columns.operands_of(op))
    ]


def types(graph: ProgramGraph, op: int) -> list[str]:
    return [graph.type(value) for value in graph.columns.results_of(op)]


def test_a_type_of_many_values_is_made_printable_once(calls: ProgramGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise a type of half a megabyte that very many ops give takes the square of the file.
    made: list[str] = []

    def counted(text: str) -> str:
        made.append(text)
        return printable(text)

    monkeypatch.setattr("vhlo_tools.viewing.graph.printable", counted)
    graph = ProgramGraph(calls.artifact)
    made.clear()
    said = [graph.type(value) for value in range(len(graph.columns.value_types))]
    assert len(said) > len(set(said)) == len(made)


def test_a_long_name_of_all_functions_is_one_text() -> None:
    graph = program_graph(SHAPES["a long name of all functions"](20_000))
    symbols = [symbol for op in range(len(graph)) if (symbol := graph.symbol(op)) is not None]
    assert len(symbols) > 100
    assert len(symbols[0]) > 1000
    assert len(set(map(id, symbols))) == 1
    labels = [group.label for group in graph.groups.walk() if group.kind == "function"]
    assert len(labels) == len(symbols)
    assert len(set(map(id, labels))) == 1


def test_ops_know_their_operands_and_places(calls: ProgramGraph) -> None:
    assert texts(calls, find(calls, "add")) == ["argument 0", "argument 1"]
    assert texts(calls, find(calls, "while")) == ["add#0", "tan#0"]
    # The second argument of the body, and a value from outside of the loop.
    subtract, loop = find(calls, "subtract"), find(calls, "while")
    region = calls.columns.blocks[calls.columns.block_of(subtract)].region
    assert (calls.parent(subtract), region, calls.function(subtract)) == (loop, 1, "main")
    body, outside = map(calls.value, calls.columns.operands_of(subtract))
    assert body.block is not None
    assert calls.columns.blocks[body.block].op == loop
    assert (body.position, outside.position) == (1, 1)
    assert outside.block is not None
    assert calls.columns.blocks[outside.block].op == find(calls, "func")
    assert types(calls, loop) == ["tensor<2xf32>", "tensor<2xf32>"]


def test_ops_know_what_they_need_and_where_they_come_from(calls: ProgramGraph) -> None:
    tan, add = find(calls, "tan"), find(calls, "add")
    assert [each.id for each in calls.features(tan)] == ["tan"]
    assert calls.introduced(tan) == Version("1.4.0")
    assert calls.introduced(add) == Version("0.9.0")
    assert calls.op_name(add).artifact == "vhlo.add_v1"
    assert calls.label(add) == "jit(f)/add"
    assert [(str(each.location), each.function) for each in calls.stack(add)] == [
        ("model.py:3:7", "layer"),
        ("train.py:9:1", "main"),
    ]
    assert [str(each.location) for each in calls.stack(tan)] == ["model.py:3:7"]
    assert calls.attributes(find(calls, "constant")) == {"value": "dense<false> : tensor<i1>"}


def test_ops_of_another_dialect_need_the_version_that_lets_them_be() -> None:
    text = """func.func @main(%0: tensor<f32>) -> tensor<f32> {
      %1 = math.absf %0 : tensor<f32>
      return %1 : tensor<f32>
    }"""
    graph = program_graph(bytes(vt.serialize(text, target="1.13.0", legalize=False, allow_other_dialects=True)))
    op = find(graph, "math.absf")
    assert (graph.op_name(op).introduced, graph.introduced(op)) == (None, Version("1.11.0"))
    assert [each.id for each in graph.features(op)] == ["mixed_dialects"]


def test_the_tree_has_functions_and_regions(calls: ProgramGraph) -> None:
    root = calls.groups
    (main,) = root.members
    assert isinstance(main, Group)
    assert (root.kind, main.kind, main.label) == ("program", "function", "@main")
    (loop,) = [each for each in main.members if isinstance(each, Group)]
    assert (loop.kind, loop.label, loop.op) == ("op", "while", find(calls, "while"))
    regions = [each for each in loop.members if isinstance(each, Group)]
    assert [(each.label, each.size) for each in regions] == [("region 0", 2), ("region 1", 2)]


def leaves(group: Group) -> list[int]:
    own = [group.op] if group.op is not None else []
    return own + [op for each in group.members for op in (leaves(each) if isinstance(each, Group) else [each])]


def check(data: bytes, name: str) -> None:
    """Compare a graph with what a visit of the same program finds."""
    artifact = Artifact(data, name=name)
    graph = program_graph(artifact)
    visited: Counter[tuple[str, tuple[str, ...], tuple[str, ...]]] = Counter()
    describe = graph._describer.type

    paths: list[str] = []

    def operation(place: Place, values: list[int]) -> None:
        paths.append(printable(graph._places.path(place)))
        operands = tuple(describe(values[each]) for each in place.op.operands)
        visited[artifact.file.op_name(place.op.name), operands, tuple(map(describe, place.op.results))] += 1

    def arguments(block: Block, around: Place | None) -> None:
        assert block.arguments

    visit(artifact.file.program, operation, arguments=arguments)
    own = Counter(
        (
            artifact.file.op_name(graph.columns.kinds[graph.columns.heads[op]].name),
            tuple(map(graph.type, graph.columns.operands_of(op))),
            tuple(map(graph.type, graph.columns.results_of(op))),
        )
        for op in range(len(graph))
    )
    assert own == visited
    assert sorted(map(graph.path, range(len(graph)))) == sorted(paths)
    assert sum(1 for _ in graph.edges()) == len(graph.columns.operands)
    groups = [*graph.groups.walk()]
    assert sorted(leaves(graph.groups)) == list(range(len(graph)))
    assert max(len(each.members) for each in groups) <= MOST_MEMBERS
    assert graph.groups.size == len(graph)
    needs = {each.id for op in range(len(graph)) for each in graph.features(op)}
    findings = artifact.requirements().findings(Version("0.9.0"))
    refused = {each.feature for each in findings if each.level == "error" and each.kind != "encoding"}
    assert refused <= needs
    for op in range(0, len(graph), 1 + len(graph) // 50):
        held = (*graph.attributes(op).values(), *types(graph, op), graph.label(op) or "")
        assert all(text.isprintable() for text in held)
        # A stack begins with the line that findings name.
        source = graph._places.source(graph.columns.locations[op])
        assert next((each.location for each in graph.stack(op)), None) == source


@pytest.mark.parametrize("name", ["transformer_step.mlir", "sharded_matmul.mlir", "custom_calls.mlir", "convnet.bc"])
def test_examples_are_read_as_by_others(name: str) -> None:
    check(bytes(vt.serialize(EXAMPLES / name, target="current")), name)


def test_artifacts_of_old_releases_are_read_as_by_others() -> None:
    number = 0
    for name, data in corpus_files(ordinary=False):
        number += 1
        # One of ten, for each takes milliseconds.
        if number % 10 == 0:
            check(data, name)
    assert number > 500


def test_constants_belong_to_the_line_that_uses_them() -> None:
    ops = []
    for line in range(20):
        ops.append(f'%c{line} = stablehlo.constant dense<{line}.0> : tensor<f32> loc("setup.py":1:1)')
        ops.append(f'%{line + 1} = stablehlo.add %{line}, %c{line} : tensor<f32> loc("model.py":{line}:1)')
        ops.append(f'%x{line} = stablehlo.abs %{line + 1} : tensor<f32> loc("model.py":{line}:9)')
    text = "func.func @main(%0: tensor<f32>) -> tensor<f32> {\n" + "\n".join(ops) + "\nreturn %20 : tensor<f32>\n}"
    (main,) = program_graph(bytes(vt.serialize(text, target="1.9.0"))).groups.members
    assert isinstance(main, Group)
    lines = [each for each in main.members if isinstance(each, Group)]
    # The first has line 0, which MLIR takes for none.
    assert [(each.kind, each.label, each.size) for each in lines[:2]] == [
        ("line", "model.py:1", 3),
        ("line", "model.py:2", 3),
    ]


def test_very_many_ops_in_one_line_are_folded_in_runs() -> None:
    ops = [f"%{i + 1} = stablehlo.negate %{i} : tensor<f32> loc(unknown)" for i in range(41_000)]
    text = "func.func @main(%0: tensor<f32>) -> tensor<f32> {\n" + "\n".join(ops) + "\nreturn %41000 : tensor<f32>\n}"
    graph = program_graph(bytes(vt.serialize(text, target="1.9.0")))
    (main,) = graph.groups.members
    assert isinstance(main, Group)
    assert max(len(each.members) for each in main.walk()) <= MOST_MEMBERS
    first, *_, last = main.members
    assert isinstance(first, Group)
    assert isinstance(last, Group)
    assert first.label.startswith("1 to ")
    assert last.label.endswith("41001 of 41001")


def test_names_in_a_program_are_made_printable() -> None:
    text = """func.func @"a\\0Ab\\E2\\80\\AE"(%0: tensor<f32>) -> tensor<f32> {
      %1 = stablehlo.abs %0 {"x\\1B" = "y\\1B[31m"} : tensor<f32> loc("f\\1B.py":1:1)
      return %1 : tensor<f32>
    }"""
    graph = program_graph(bytes(vt.serialize(text, target="1.9.0")))
    op = find(graph, "abs")
    assert graph.function(op) == "a\\nb\\u202e"
    assert all(key.isprintable() and each.isprintable() for key, each in graph.attributes(op).items())


def test_damage_is_an_error_of_its_own(tmp_path: Path) -> None:
    data = bytearray(bytes(vt.serialize(CALLS, target="1.9.0")))
    data[-3] ^= 0xFF
    refused = 0
    for cut in range(60, len(data), 29):
        try:
            graph = program_graph(bytes(data[:cut]))
            for op in range(len(graph)):
                (graph.function(op), graph.attributes(op), graph.features(op), graph.label(op), graph.stack(op))
                (texts(graph, op), types(graph, op))
        except MalformedArtifactError:
            refused += 1
    assert refused > 10
