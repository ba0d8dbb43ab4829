"""Layout of a picture by the Eclipse Layout Kernel: elkjs, run by V8 in this process.

Input and output of elkjs are JSON. It has no access to files or to the network: V8 alone has neither.
Source: the documentation of elkjs, and the options of «ELK Layered».
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from vhlo_tools.errors import LayoutError, MissingExtraError
from vhlo_tools.graphs.picturing import Box, Picture

#: Of text of 10 pixels in a font of fixed width.
_CHARACTER: Final = 6.1
LINE_HEIGHT: Final = 13.0
_MARGIN: Final = 8.0
#: What a layout may take, in seconds: one of a thousand boxes takes one.
_SECONDS: Final = 300.0

_FEWER: Final = "draw a function of it, or fewer boxes"

_OPTIONS: Final = {
    "elk.algorithm": "layered",
    "elk.direction": "DOWN",
    "elk.hierarchyHandling": "INCLUDE_CHILDREN",
    "elk.json.shapeCoords": "ROOT",
    "elk.json.edgeCoords": "ROOT",
    "elk.spacing.nodeNode": "14",
    "elk.layered.spacing.nodeNodeBetweenLayers": "26",
}
# As a worker elkjs gets messages and posts answers; V8 alone has neither.
_AROUND: Final = """
var answers = {}, self = globalThis;
self.postMessage = (answer) => { answers[answer.id] = answer; };
"""
_RUN: Final = """
onmessage({data: {id: 0, cmd: "register", algorithms: ["layered"]}});
onmessage({data: {id: 1, cmd: "layout", graph: JSON.parse(GRAPH), layoutOptions: {}, options: {}}});
JSON.stringify(answers[1]);
"""


_AROUND_MEMBERS: Final = {
    "elk.nodeLabels.placement": "[H_LEFT, V_TOP, INSIDE]",
    "elk.nodeSize.constraints": "[NODE_LABELS]",
    "elk.padding": f"[top={_MARGIN},left={_MARGIN},bottom={_MARGIN},right={_MARGIN}]",
}


def elk_graph(picture: Picture) -> dict[str, Any]:
    """Return the input of elkjs: boxes with their sizes in pixels, and arrows."""
    edges = [
        {"id": f"arrow{number}", "sources": [arrow.source], "targets": [arrow.target]}
        for number, arrow in enumerate(picture.arrows)
    ]
    return {"id": "picture", "layoutOptions": _OPTIONS, "children": [_elk_box(picture.root)], "edges": edges}


def lay_out(picture: Picture, elkjs: str) -> Mapping[str, Any]:
    """Add ``x``, ``y`` and bends of arrows to :func:`elk_graph`; ``elkjs`` is the text of ``elk-worker.min.js``."""
    try:
        from py_mini_racer import JSEvalException, JSTimeoutException, MiniRacer
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "a picture of a graph needs mini-racer, which is not installed: pip install 'vhlo-tools[svg]'; "
            "or write the graph as DOT or Mermaid, and let Graphviz or Mermaid draw it"
        ) from error
    graph = json.dumps(json.dumps(elk_graph(picture)))

    def run() -> str:
        with MiniRacer() as context:
            context.eval(_AROUND)
            context.eval(elkjs)
            return str(context.eval(_RUN.replace("GRAPH", graph), timeout_sec=_SECONDS))

    try:
        # In a thread of its own, for mini-racer waits in another way where an event loop runs, as in notebooks.
        with ThreadPoolExecutor(1) as thread:
            answer = json.loads(thread.submit(run).result())
    except JSTimeoutException as error:
        raise LayoutError(f"elkjs did not lay out the graph within {_SECONDS:g} seconds; {_FEWER}") from error
    except JSEvalException as error:
        raise LayoutError(f"elkjs failed on the graph: {error}; {_FEWER}") from error
    if "error" in answer:
        raise LayoutError(f"elkjs refused the graph: {answer['error'].get('message')}; {_FEWER}")
    placed: Mapping[str, Any] = answer["data"]
    return placed


def _elk_box(root: Box) -> dict[str, Any]:
    """Recursion is avoided, because regions may be deep."""
    made: dict[str, dict[str, Any]] = {}
    for box in reversed(list(root.walk())):
        width = _CHARACTER * max(map(len, box.lines)) + 2 * _MARGIN
        if box.kind == "unfolded":
            # The name stands above what is in it. As a label it makes room for itself; a smallest size is not heeded.
            made[box.id] = {
                "id": box.id,
                "layoutOptions": _AROUND_MEMBERS,
                "labels": [{"text": box.lines[0], "width": width, "height": LINE_HEIGHT * len(box.lines)}],
                "children": [made[each.id] for each in box.members],
            }
        else:
            made[box.id] = {"id": box.id, "width": width, "height": LINE_HEIGHT * len(box.lines) + _MARGIN}
    return made[root.id]
