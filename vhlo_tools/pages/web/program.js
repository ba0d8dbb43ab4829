// The page for a program.

import { announce, el, section } from "./elements.js";
import { Graph, readContents } from "./contents.js";
import { Explorer } from "./explorer.js";
import { themeButton } from "./theme.js";
import { timeline } from "./timeline.js";
import { constants, findings, signature } from "./tables.js";

const PARTS = [
  ["timeline", "Time line"],
  ["graph", "Graph"],
  ["signature", "Inputs and outputs"],
  ["constants", "Constants"],
  ["findings", "Findings"],
];

function head(contents) {
  const words = contents.name.split("/");
  return el(
    "header",
    {},
    el(
      "div",
      { class: "top" },
      el("p", { class: "brand" }, "vhlo report"),
      el("nav", { "aria-label": "Parts of the page" }, PARTS.map(([id, title]) => el("a", { href: `#${id}` }, title))),
      themeButton(),
    ),
    el("h1", {}, words.length > 1 ? el("span", { class: "folder" }, `${words.slice(0, -1).join("/")}/`) : "", words.at(-1)),
    el("dl", { class: "lines" }, contents.lines.map(([what, said]) => el("div", {}, el("dt", {}, what), el("dd", {}, said)))),
  );
}

async function show() {
  const contents = await readContents();
  const graph = new Graph(contents.graph, contents.versions);
  const ops = new Set(graph.columns.feature_sets.flat());
  for (const feature of contents.features) feature.ops = ops.has(feature.id);
  const explorer = new Explorer(graph, contents);
  const toOp = (op) => {
    document.getElementById("graph").scrollIntoView();
    explorer.select(op);
  };
  const toFeature = (id) => {
    document.getElementById("graph").scrollIntoView();
    explorer.query.value = id;
    explorer.search();
    explorer.nextFound(1);
  };
  const notice = document.getElementById("layout").dataset.notice;
  document.getElementById("page").replaceChildren(
    el("a", { class: "skip", href: "#graph" }, "Skip to the graph"),
    head(contents),
    el(
      "main",
      {},
      timeline(contents, { onFeature: toFeature }),
      section(
        "graph",
        "Graph",
        "Groups are functions, regions and lines of the source; the colour is the version that an op needs. " +
          "Click to unfold, drag to move, zoom with the control key and the wheel.",
        explorer.element,
      ),
      signature(contents),
      constants(contents, graph, { onOp: toOp }),
      findings(contents, { onOp: toOp }),
    ),
    el("footer", {}, el("p", {}, `Made by vhlo_tools on ${contents.today}. The page asks nothing of the network.`), notice ? el("p", {}, notice) : ""),
    el("p", { id: "status", class: "unseen", role: "status", "aria-live": "polite" }),
  );
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
  announce("The page is ready");
  await explorer.start();
}

show().catch((error) => {
  document.getElementById("page").replaceChildren(el("p", { class: "notice", role: "alert" }, `The page cannot be shown: ${error.message}`));
  throw error;
});
