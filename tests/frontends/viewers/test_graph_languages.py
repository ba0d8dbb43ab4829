"""Graphs as those read them whom they are written for: Graphviz, Mermaid and a browser."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from itertools import islice
from pathlib import Path

import pytest
from support.chromium import launched, opened
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files
from support.npm_packages import npm_file

import vhlo_tools as vt
from vhlo_tools.viewing import Picture, dot_lines, layout_worker, mermaid_lines, picture_of, program_graph, svg_lines

GRAPHVIZ = ("@hpcc-js/wasm-graphviz@1.29.2", "dist/index.js")
MERMAID = ("mermaid@11.17.2", "dist/mermaid.min.js")
HOSTILE = Path(__file__).parents[2] / "programs" / "hostile" / "names_with_escapes.mlir"

#: Reads graphs in DOT from a file of JSON, and prints what Graphviz has of each: the names of nodes, and arrows.
_READ = """
import fs from "node:fs";
const { Graphviz } = await import(process.argv[2]);
const graphviz = await Graphviz.load();
const read = (text) => {
  const { objects = [], edges = [] } = JSON.parse(graphviz.layout(text, "json", "dot"));
  return {
    clusters: objects.filter((each) => each.nodes !== undefined || each.subgraphs !== undefined).length,
    nodes: objects.filter((each) => each.pos !== undefined).map((each) => [each.name, each.label]),
    edges: edges.length,
  };
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync(process.argv[3], "utf8")).map(read)));
"""


def pictures() -> list[Picture]:
    """Pictures of programs of many producers, of one with hostile names, and of one that is unfolded."""
    programs = [data for _, data in islice(corpus_files(ordinary=False), 0, None, 25)]
    programs.append(bytes(vt.serialize(HOSTILE)))
    found = [picture_of(program_graph(data), most=60) for data in programs]
    return [*found, picture_of(program_graph(EXAMPLES / "keras_mlp.mlirbc"), most=None)]


def test_graphviz_reads_every_node_label_and_arrow(tmp_path: Path) -> None:
    shown = pictures()
    (tmp_path / "graphs.json").write_text(json.dumps(["\n".join(dot_lines(picture)) for picture in shown]))
    (tmp_path / "read.mjs").write_text(_READ)
    # A module by its name alone.
    (tmp_path / "graphviz.mjs").write_bytes(npm_file(*GRAPHVIZ).read_bytes())
    command = ["node", "read.mjs", "./graphviz.mjs", "graphs.json"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300)
    for picture, read in zip(shown, json.loads(done.stdout), strict=True):
        leaves = {box.id: box for box in picture.root.walk() if box.kind != "unfolded"}
        # Those without a label are what arrows to a cluster of clusters end at.
        labels = {name: label for name, label in read["nodes"] if label}
        assert labels.keys() == leaves.keys()
        assert read["edges"] == len(picture.arrows)
        for name, label in labels.items():
            # As in the file: Graphviz makes lines of `\\n` when it draws.
            assert label.replace("\\\\", "\\").replace('\\"', '"') == "\\n".join(leaves[name].lines)


def test_mermaid_reads_every_box_and_arrow(tmp_path: Path) -> None:
    (tmp_path / "mermaid.min.js").write_bytes(npm_file(*MERMAID).read_bytes())
    (tmp_path / "page.html").write_text('<!doctype html><title>.</title><script src="mermaid.min.js"></script>')
    shown = [picture for picture in pictures() if len(picture.arrows) <= 500]
    assert len(shown) > 5
    with launched() as browser, opened(browser, tmp_path / "page.html") as watched:
        watched.page.evaluate("mermaid.initialize({ startOnLoad: false, maxTextSize: 1_000_000, maxEdges: 500 })")
        for picture in shown:
            text = "\n".join(mermaid_lines(picture))
            drawn = watched.page.evaluate("async (text) => (await mermaid.render('drawn', text)).svg", text)
            image = ElementTree.fromstring(drawn.replace("<br>", "<br/>").replace("&nbsp;", " "))
            found = {
                each.get("id", "") for each in image.iter() if each.get("class", "").startswith(("node", "cluster"))
            }
            boxes = list(picture.root.walk())
            assert len(boxes) <= len(found)
            for box in boxes:
                assert any(f"{box.id}" in each for each in found), box.lines


def test_pictures_of_all_these_programs_are_laid_out() -> None:
    elkjs = layout_worker()
    assert elkjs is not None
    for picture in pictures():
        image = ElementTree.fromstring("\n".join(svg_lines(picture, elkjs.decode())))
        arrows = [each for each in image.iter() if each.get("class") == "arrow"]
        assert len(arrows) >= len(picture.arrows)


@pytest.mark.parametrize("name", ["keras_mlp.mlirbc", "transformer_step.mlir", "jax_store/loss.jax_export"])
def test_every_box_of_a_picture_is_inside_the_one_around_it(name: str, tmp_path: Path) -> None:
    text = vt.draw_graph(EXAMPLES / name, "svg", max_nodes=120)
    (tmp_path / "graph.svg").write_text(text)
    with launched() as browser, opened(browser, tmp_path / "graph.svg") as watched:
        outside, overlapping, boxes = watched.page.evaluate(
            """() => {
              const places = new Map([...document.querySelectorAll("g")].map(
                (each) => [each.id, each.querySelector("rect").getBBox()]));
              const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width
                && a.y + a.height <= b.y + b.height;
              const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y
                || b.y + b.height <= a.y;
              const all = [...places.values()];
              const texts = [...document.querySelectorAll("g")].filter((each) =>
                [...each.querySelectorAll("text")].some((text) =>
                  text.getBBox().width > each.querySelector("rect").getBBox().width));
              let overlapping = 0;
              for (const [at, a] of all.entries())
                for (const b of all.slice(at + 1)) overlapping += !apart(a, b) && !inside(a, b) && !inside(b, a);
              return [texts.length, overlapping, all.length];
            }"""
        )
        watched.check()
    assert (outside, overlapping) == (0, 0)
    graph = program_graph(
        vt.serialize(EXAMPLES / name) if name.endswith(".mlir") else vt.open_artifact(EXAMPLES / name)
    )
    assert boxes == sum(1 for _ in picture_of(graph, most=120).root.walk())
