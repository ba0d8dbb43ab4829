// Places for nodes and edges, which elkjs finds in a worker of its own.

import { unpacked } from "./contents.js";
import { lifted } from "./folding.js";

// Each group is laid out by itself, and edges end at the borders of groups: in a tenth of the time, and of the area, that
// edges across borders take, and one sees what a group passes to the next.
const LEVEL = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.hierarchyHandling": "SEPARATE_CHILDREN",
  "elk.spacing.nodeNode": "18",
  "elk.spacing.edgeNode": "12",
  "elk.spacing.edgeEdge": "8",
  "elk.layered.spacing.nodeNodeBetweenLayers": "26",
  "elk.layered.spacing.edgeNodeBetweenLayers": "12",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
};
/** Places for a picture. */
export class Layout {
  constructor(worker) {
    this.worker = worker;
    this.asked = new Map();
    this.last = 0;
    worker.addEventListener("message", ({ data }) => {
      const waiting = this.asked.get(data.id);
      this.asked.delete(data.id);
      if (data.error) waiting?.reject(new Error(data.error.message ?? String(data.error)));
      else waiting?.resolve(data.data);
    });
    worker.addEventListener("error", (event) => {
      for (const waiting of this.asked.values()) waiting.reject(new Error(event.message));
      this.asked.clear();
    });
    this.ask("register", { algorithms: ["layered"] });
  }

  /** Return a layout with the library that the page contains; null if it contains none. */
  static async start() {
    const source = await unpacked("layout");
    if (!source) return null;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    return new Layout(new Worker(address));
  }

  ask(cmd, more) {
    this.last += 1;
    const id = this.last;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.worker.postMessage({ id, cmd, ...more });
    });
  }

  /** Return where each node and edge is, and the edges: `sizes` gives width and height of nodes without children. */
  async place(visible, sizes) {
    const { nodes } = visible;
    const edges = lifted(visible);
    const made = (number) => {
      const node = nodes[number];
      const children = node.children.filter((child) => !nodes[child].hidden).map(made);
      const { width, height } = sizes(node);
      if (!children.length) return { id: String(number), width, height };
      const padding = `[top=34,left=14,bottom=14,right=14]`;
      const minimum = `(${width}, 40)`;
      return {
        id: String(number),
        children,
        layoutOptions: {
          "elk.padding": padding,
          "elk.nodeSize.constraints": "MINIMUM_SIZE",
          "elk.nodeSize.minimum": minimum,
          ...LEVEL,
        },
      };
    };
    const graph = {
      id: "root",
      layoutOptions: { ...LEVEL, "elk.padding": "[top=16,left=16,bottom=16,right=16]" },
      children: nodes.filter((node) => node.parent < 0).map((node) => made(node.number)),
      edges: edges.map(({ source, target }, number) => ({
        id: `e${number}`,
        sources: [String(source)],
        targets: [String(target)],
      })),
    };
    const placed = await this.ask("layout", { graph, layoutOptions: {}, options: {} });
    return { edges, ...absolute(placed) };
  }
}

/** Return places relative to the picture, of what a layout gives relative to the node around. */
function absolute(placed) {
  const boxes = new Map();
  const lines = new Map();
  const walk = (node, x, y) => {
    boxes.set(node.id, { x, y, width: node.width, height: node.height });
    for (const child of node.children ?? []) walk(child, x + child.x, y + child.y);
  };
  walk(placed, 0, 0);
  const trace = (node) => {
    for (const edge of node.edges ?? []) {
      const { x, y } = boxes.get(edge.container ?? node.id) ?? { x: 0, y: 0 };
      lines.set(
        Number(edge.id.slice(1)),
        (edge.sections ?? []).map(({ startPoint, bendPoints, endPoint }) =>
          [startPoint, ...(bendPoints ?? []), endPoint].map((point) => [point.x + x, point.y + y]),
        ),
      );
    }
    for (const child of node.children ?? []) trace(child);
  };
  trace(placed);
  return { boxes, lines, width: placed.width, height: placed.height };
}
