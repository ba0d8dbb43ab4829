// The page for a program.

import { section } from "./elements.js";
import { Graph } from "./contents.js";
import { Explorer } from "./explorer.js";
import { head, lines, pathTitle, show } from "./frame.js";
import { timeline } from "./timeline.js";
import { constants, findings, signature } from "./tables.js";

const PARTS = [
  ["timeline", "Time line"],
  ["graph", "Graph"],
  ["signature", "Inputs and outputs"],
  ["constants", "Constants"],
  ["findings", "Findings"],
];

const GRAPH =
  "Groups are functions, regions and lines of the source; the colour is the version that an op needs. " +
  "Click to unfold, drag to move, zoom with the control key and the wheel.";

show((contents) => {
  const graph = new Graph(contents.graph, contents.versions);
  const held = new Set(graph.columns.feature_sets.flat());
  for (const feature of contents.features) feature.ops = held.has(feature.id);
  const explorer = new Explorer(graph, contents);
  const toGraph = () => document.getElementById("graph").scrollIntoView();
  const onOp = (op) => {
    toGraph();
    explorer.select(op);
  };
  const onFeature = (id) => {
    toGraph();
    explorer.query.value = id;
    explorer.search();
    explorer.nextFound(1);
  };
  return {
    top: head(pathTitle(contents.name), PARTS, lines(contents.lines)),
    main: [
      timeline(contents, { onFeature }),
      section("graph", "Graph", GRAPH, explorer.element),
      signature(contents),
      constants(contents, graph, { onOp }),
      findings(contents, { onOp }),
    ],
    then: () => explorer.start(),
  };
});
