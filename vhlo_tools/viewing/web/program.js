// The page for a program.

import { el, section } from "./elements.js";
import { Graph } from "./contents.js";
import { Explorer } from "./explorer.js";
import { head, lines, pathTitle, show } from "./frame.js";
import { timeline } from "./timeline.js";
import { constants, findings, signature } from "./tables.js";

const PARTS = [
  ["timeline", "Time line"],
  ["graph", "Graph"],
  ["signature", "Inputs and outputs"],
  ["devices", "Devices"],
  ["constants", "Constants"],
  ["findings", "Findings"],
];

const GRAPH =
  "Groups are functions, regions and lines of the source; the colour is the version that an op needs. " +
  "Click to unfold, drag to move, zoom with the control key and the wheel.";

const DEVICES = "What the compilers of these devices make of the program: aliases that they keep, bytes on each device, costs.";

function devices({ devices: all }) {
  if (!all.length) return null;
  const parts = all.map(({ release, lines: said }) => [el("h3", {}, release), lines(said)]);
  return section("devices", "Devices", DEVICES, ...parts);
}

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
    top: head(pathTitle(contents.name), PARTS.filter(([id]) => id !== "devices" || contents.devices.length), lines(contents.lines)),
    main: [
      timeline(contents, { onFeature }),
      section("graph", "Graph", GRAPH, explorer.element),
      signature(contents),
      devices(contents),
      constants(contents, graph, { onOp }),
      findings(contents, { onOp }),
    ],
    then: () => explorer.start(),
  };
});
