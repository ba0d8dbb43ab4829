"""The extension in Model Explorer itself: loaded by its manager, served by its server, and drawn in Chromium."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from model_explorer.extension_manager import ExtensionManager
from PIL import Image
from support.chromium import launched
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files
from support.hostile_shapes import SHAPES
from support.large_artifacts import write_artifact_of_ops

import vhlo_tools as vt
from vhlo_tools.integrations.model_explorer import Form, configuration, model_graphs, node_data
from vhlo_tools.viewing import program_graph

EXTENSION = "vhlo_tools.integrations.model_explorer"
FORMS = ("stablehlo", "vhlo")


@pytest.fixture(scope="module")
def manager() -> ExtensionManager:
    manager = ExtensionManager([EXTENSION])
    manager.load_extensions()
    return manager


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("step") / "step.mlirbc"
    vt.serialize(EXAMPLES / "transformer_step.mlir").save(path)
    return path


def converted(manager: ExtensionManager, path: Path, form: str = "stablehlo") -> dict[str, Any]:
    """Return the graphs of a file, by name, as Model Explorer gives them to its page."""
    command = {"extensionId": f"vhlo_tools_{form}", "cmdId": "convert", "modelPath": str(path), "settings": {}}
    answer = manager.run_cmd({**command, "deleteAfterConversion": False})
    # As it goes to the page.
    return {graph["id"]: graph for graph in json.loads(json.dumps(answer))["graphs"]}


def provided(manager: ExtensionManager, path: Path, kind: str, graph: str, **values: str) -> dict[str, Any]:
    command = {"extensionId": f"vhlo_tools_{kind}", "cmdId": "run", "modelPath": str(path), "graphId": graph}
    answer: dict[str, Any] = manager.run_cmd({**command, "configValues": values})
    return answer


@pytest.mark.parametrize("form", FORMS)
def test_every_op_is_a_node_and_every_use_an_edge(form: str, manager: ExtensionManager, tmp_path: Path) -> None:
    for number, (_, data) in enumerate(corpus_files(ordinary=False)):
        if number % 20:
            continue
        path = tmp_path / f"{number}.mlirbc"
        path.write_bytes(data)
        graph, graphs = program_graph(data), converted(manager, path, form)
        nodes = [node for each in graphs.values() for node in each["nodes"]]
        assert len({node["id"] for node in nodes}) == len(nodes)
        ops = {node["id"]: node["label"] for node in nodes if node["id"].startswith("op")}
        shown = (graph.op_name(op) for op in range(len(graph)) if f"op{op}" in ops)
        assert list(map(str, sorted(ops.values()))) == sorted(
            name.program if form == "stablehlo" else name.artifact for name in shown
        )
        # What is not a node is a graph: functions, and the module.
        assert len(ops) + sum(graph.symbol(op) is not None for op in range(len(graph))) + 1 == len(graph)
        assert sum(len(node["incomingEdges"]) for node in nodes) == sum(1 for _ in graph.edges())
        known = {node["id"] for node in nodes}
        assert all(edge["sourceNodeId"] in known for node in nodes for edge in node["incomingEdges"])


def test_a_call_leads_to_its_function(manager: ExtensionManager, step: Path) -> None:
    graphs = converted(manager, step)
    calls = [node for node in graphs["main"]["nodes"] if node["label"] == "func.call"]
    assert {tuple(node["subgraphIds"]) for node in calls} <= {(name,) for name in graphs}
    assert ("_where",) in {tuple(node["subgraphIds"]) for node in calls}


def test_types_and_attributes_are_those_of_the_form(manager: ExtensionManager) -> None:
    path = EXAMPLES / "keras_mlp.mlirbc"
    types = {}
    for form in FORMS:
        (add, *_) = [node for node in converted(manager, path, form)["main"]["nodes"] if ".add" in node["label"]]
        types[add["label"]] = add["outputsMetadata"][0]["attrs"][0]["value"]
    assert types == {"stablehlo.add": "tensor<2x16xf32>", "vhlo.add_v1": "!vhlo.tensor_v1<2x16x!vhlo.f32_v1>"}


def test_a_program_from_the_future_is_shown(manager: ExtensionManager, tmp_path: Path) -> None:
    body = "{ %0 = stablehlo.tan %a : tensor<f32> return %0 : tensor<f32> }"
    tan = f"func.func @main(%a: tensor<f32>) -> tensor<f32> {body}"
    data = bytes(vt.serialize(tan, target="1.4.0")).replace(b"StableHLO_v1.4.0", b"StableHLO_v9.4.0")
    path = tmp_path / "future.mlirbc"
    path.write_bytes(data.replace(b"tan_v1", b"tan_v9"))
    (node,) = [node for node in converted(manager, path, "vhlo")["main"]["nodes"] if "tan" in node["label"]]
    assert node["label"] == "vhlo.tan_v9"
    assert {"key": "introduced in", "value": "unknown to vhlo_tools"} in node["attrs"]
    results = provided(manager, path, "introductions", "main")["result"]["results"]
    assert results[node["id"]]["value"] == "unknown"


def test_findings_are_those_of_the_target(manager: ExtensionManager, step: Path) -> None:
    asked = provided(manager, step, "findings", "take_along_axis", target="1.0.0")["result"]
    assert [each["value"] for each in asked["results"].values()] == ["error: gather_scatter_batching_dims (1.1.0)"]
    assert not provided(manager, step, "findings", "take_along_axis", target="1.1.0")["result"]["results"]
    wrong = provided(manager, step, "findings", "main", target="nothing==1")
    assert wrong["result"] is None
    assert "no releases of nothing are known" in wrong["error"]


def test_aliases_are_those_that_alias_show_has(manager: ExtensionManager, step: Path) -> None:
    results = provided(manager, step, "aliases", "main")["result"]["results"]
    assert len(results) == 25
    assert {each["value"].partition(" {")[0] for each in results.values()} == {"may-alias with output"}
    assert not provided(manager, step, "aliases", "tril")["result"]["results"]


def test_a_damaged_file_is_an_error_that_says_where(manager: ExtensionManager, tmp_path: Path) -> None:
    path = tmp_path / "damaged.mlirbc"
    path.write_bytes((EXAMPLES / "keras_mlp.mlirbc").read_bytes()[:-7])
    with pytest.raises(vt.MalformedArtifactError, match=r"damaged\.mlirbc.*\(.*offset"):
        converted(manager, path)
    assert "offset" in provided(manager, path, "aliases", "main")["error"]


def test_a_large_program_is_converted(tmp_path: Path) -> None:
    write_artifact_of_ops(tmp_path / "large.mlirbc", 100_000, "1.9.0")
    graph = program_graph(tmp_path / "large.mlirbc")
    (main,) = [each for each in model_graphs(graph) if each.id == "main"]
    assert len(main.nodes) > 100_000
    assert max(len(node.namespace.split("/")) for node in main.nodes) < 8
    assert node_data(graph, "introductions").keys() == {"main"}


@pytest.mark.parametrize("form", ["stablehlo", "vhlo"])
def test_one_long_type_of_all_values_is_cut(form: Form, tmp_path: Path) -> None:
    """Whole, it took the square of the file."""
    path = tmp_path / "tuples.mlirbc"
    path.write_bytes(SHAPES["a tuple of many"](300_000))
    graphs = model_graphs(program_graph(path), form)
    values = [item for graph in graphs for node in graph.nodes for item in node.outputsMetadata]
    assert len(values) > 10_000
    assert max(len(pair.value) for item in values for pair in item.attrs) == 256 + len("...")


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Serve with Model Explorer; give the address of its page."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-u", "-m", EXTENSION, *arguments, "--no-browser", "--port", port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if found := re.search(r"http://\S+data=\S+", line):
                    yield found[0]
                    return
            raise AssertionError(said)
        finally:
            process.kill()


def test_its_page_shows_the_program_with_its_data(step: Path, tmp_path: Path) -> None:
    with served(str(step), "--target", "1.0.0") as address, launched("localhost") as browser:
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        # Until the server listens.
        for _ in range(100):
            try:
                page.goto(address)
                break
            except Exception:  # playwright's own, of which the kinds are many
                time.sleep(0.2)
        page.get_by_text("findings for 1.0.0").first.wait_for(timeout=60_000)
        # The graph is drawn on a canvas; beside it stands what it has.
        assert page.get_by_text("aliases", exact=True).count() >= 1
        assert page.get_by_text("626 nodes").count() >= 1
        # Aliases are what it colours by.
        (aliases,) = [each for each in page.locator(".run-name").all() if each.inner_text() == "aliases"]
        box = aliases.bounding_box()
        assert box is not None
        page.mouse.click(1464, box["y"] + box["height"] / 2)
        page.wait_for_timeout(1_000)
        page.mouse.move(900, 470)
        page.keyboard.down("Control")
        for _ in range(2):
            page.mouse.wheel(0, -200)
            page.wait_for_timeout(300)
        page.keyboard.up("Control")
        page.wait_for_timeout(2_000)
        picture = Path(os.environ.get("VHLO_TOOLS_PICTURES", tmp_path), "model-explorer.png")
        page.screenshot(path=picture)
        with Image.open(picture) as image:
            colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
        # That of aliases, on the arguments that have one.
        assert (0x1B, 0x6E, 0x3C) in colours


def test_what_cannot_be_shown_is_said_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "no.mlirbc").write_bytes(b"no artifact")
    for arguments, said in (
        ([str(tmp_path / "no.mlirbc")], "no.mlirbc"),
        ([str(tmp_path / "absent.mlirbc")], "absent.mlirbc"),
        ([str(EXAMPLES / "keras_mlp.mlirbc"), "--target", "nothing==1"], "no releases of nothing"),
    ):
        command = [sys.executable, "-m", EXTENSION, *arguments, "--no-browser"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr


def test_a_configuration_for_notebooks(step: Path) -> None:
    config = configuration([step], "vhlo", target="1.0.0")
    assert [each["adapterId"] for each in config.model_sources] == ["vhlo_tools_vhlo"]
    assert len(config.node_data_list) == 3
