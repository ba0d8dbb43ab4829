// The picture of the graph: drawn from a layout, moved and zoomed by mouse, fingers and keys.

import { svg } from "./elements.js";

const TEXT = "12.5px";
const HEIGHT = 38;
const MOST_LETTERS = 34;
const SMALLEST = 0.02;
const LARGEST = 4;

const ruler = document.createElement("canvas").getContext("2d");

/** Return text that is not too long for a box. */
export function shortened(text, most = MOST_LETTERS) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Return a line without the folders of its file, and without the beginning of a long name: its end tells lines apart. */
export function shortLine(text, most = MOST_LETTERS) {
  const last = text.split("/").at(-1);
  return last.length > most ? `…${last.slice(1 - most)}` : last;
}

/** Return what the box of a node says: a line, and one below. */
export function captions(graph, node) {
  if (node.block !== undefined) {
    const number = graph.columns.blocks[node.block][5].length;
    return [number === 1 ? "argument" : `${number} arguments`, ""];
  }
  if (node.group >= 0) {
    const { kind, label, size } = graph.group(node.group);
    const said = kind === "line" ? shortLine(label) : kind === "run" ? `ops ${label}` : label;
    return [said, `${size.toLocaleString("en")} ops`];
  }
  const types = graph.types(node.op);
  const more = types.length > 1 ? ` +${types.length - 1}` : "";
  return [graph.name(node.op), types.length ? shape(types[0]) + more : ""];
}

/** Return a type as people write shapes: `2×4×f32`. */
export function shape(type) {
  const found = /^tensor<([^<>,]*)>$/.exec(type);
  return found ? found[1].replaceAll("x", "×") : type;
}

/** The picture. */
export class Picture {
  constructor(graph, shades, { onSelect, onToggle }) {
    this.graph = graph;
    this.shades = shades;
    this.onSelect = onSelect;
    this.onToggle = onToggle;
    this.view = { x: 0, y: 0, scale: 1 };
    this.world = svg("g", { class: "world" });
    this.element = svg(
      "svg",
      {
        class: "picture",
        tabindex: "0",
        role: "application",
        "aria-label":
          "Picture of the graph. The tree beside it has the same. Arrow keys move it, plus and minus zoom, 0 shows all, " +
          "Enter folds or unfolds what is selected, comma and point select the op before and after.",
      },
      svg(
        "defs",
        {},
        svg(
          "marker",
          { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
          svg("path", { d: "M0 0.8 7.4 4 0 7.2z", class: "tip" }),
        ),
      ),
      this.world,
    );
    this.listen();
  }

  /** Return the width and height of a node. */
  size(node) {
    ruler.font = `600 ${TEXT} system-ui`;
    const [first, second] = captions(this.graph, node);
    const wide = ruler.measureText(shortened(first)).width;
    ruler.font = "11px system-ui";
    const below = ruler.measureText(shortened(second)).width;
    const badge = this.badge(node) && !node.open ? ruler.measureText(this.badge(node)).width + 12 : 0;
    const sign = node.group >= 0 ? 18 : 0;
    return { width: Math.ceil(Math.max(wide + badge + sign, below) + 30), height: second ? HEIGHT : 28 };
  }

  /** Return the version that a node shows: of an op that not every version has. */
  badge(node) {
    const newest = node.group >= 0 ? this.graph.groupNewest[node.group] : node.op >= 0 ? this.graph.introduced(node.op) : 0;
    return this.shades.isOldest(newest) || node.block !== undefined ? "" : this.graph.version(newest);
  }

  /** Draw what is to be seen, at its places. */
  draw(visible, places) {
    this.visible = visible;
    this.places = places;
    this.parts = new Map();
    const edges = places.edges.map((edge, number) => this.edge(edge, places.lines.get(number) ?? []));
    const nodes = visible.nodes.filter((node) => !node.hidden).map((node) => this.node(node));
    const open = nodes.filter((each) => each.classList.contains("open"));
    const rest = nodes.filter((each) => !each.classList.contains("open"));
    this.world.replaceChildren(
      svg("g", {}, open),
      svg("g", { class: "edges" }, edges),
      svg("g", {}, rest),
    );
    this.mark(this.selected);
    this.markFound(this.found);
  }

  node(node) {
    const { x, y, width, height } = this.places.boxes.get(String(node.number));
    const [first, second] = captions(this.graph, node);
    const newest = node.group >= 0 ? this.graph.groupNewest[node.group] : node.op >= 0 ? this.graph.introduced(node.op) : -2;
    const kind = node.block !== undefined ? "block" : node.group >= 0 ? "group" : "op";
    const badge = this.badge(node);
    const left = node.group >= 0 ? 29 : 14;
    const part = svg(
      "g",
      {
        class: `node ${kind}${node.open ? " open" : ""} ${this.shades.of(newest)}`,
        transform: `translate(${x} ${y})`,
        "data-id": node.id,
      },
      svg("rect", { width, height, rx: node.open ? 10 : 7, class: "box" }),
      node.open || kind === "block" ? null : svg("rect", { width: 5, height: height - 10, x: 5, y: 5, rx: 2.5, class: "stripe" }),
      node.group >= 0 ? svg("text", { x: 14, y: node.open ? 21 : 18, class: "sign" }, node.open ? "−" : "+") : null,
      svg("text", { x: left, y: second ? (node.open ? 21 : 18) : 18, class: "name" }, shortened(first)),
      second && !node.open ? svg("text", { x: left, y: 31, class: "below" }, shortened(second)) : null,
      badge && !node.open
        ? svg("text", { x: width - 8, y: 18, class: "badge", "text-anchor": "end" }, badge)
        : null,
      svg("title", {}, node.op >= 0 ? [first, second, this.graph.stack(node.op)[0]?.where].filter(Boolean).join("\n") : first),
    );
    this.parts.set(node.id, part);
    return part;
  }

  edge({ source, target, count }, sections) {
    return sections.map((points) => {
      const thick = Math.min(1.1 + Math.log2(count) * 0.5, 5);
      const line = svg("path", {
        d: rounded(points),
        class: "edge",
        "stroke-width": thick.toFixed(2),
        "marker-end": "url(#tip)",
        "data-source": source,
        "data-target": target,
      });
      if (count === 1) return line;
      const [x, y] = middle(points);
      return [
        line,
        svg("text", { x: x + 4, y: y - 3, class: "count" }, `×${count.toLocaleString("en")}`),
      ];
    });
  }

  /** Mark the node that shows an op, and the edges at it. */
  mark(op) {
    this.selected = op;
    if (!this.visible) return;
    for (const each of this.world.querySelectorAll(".chosen, .near")) each.classList.remove("chosen", "near");
    if (op === undefined || op < 0) return;
    const node = this.visible.nodes[this.visible.shown[op]];
    if (!node) return;
    this.parts.get(node.id)?.classList.add("chosen");
    for (const edge of this.world.querySelectorAll(
      `.edge[data-source="${node.number}"], .edge[data-target="${node.number}"]`,
    )) {
      edge.classList.add("near");
    }
  }

  /** Mark the nodes that show ops that were found; others are dimmed. */
  markFound(ops) {
    this.found = ops;
    this.element.classList.toggle("searching", Boolean(ops));
    if (!this.visible) return;
    for (const each of this.world.querySelectorAll(".found")) each.classList.remove("found");
    for (const op of ops ?? []) {
      const node = this.visible.nodes[this.visible.shown[op]];
      if (node && !node.open) this.parts.get(node.id)?.classList.add("found");
    }
  }

  // Moving

  apply() {
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.element.classList.toggle("far", scale < 0.35);
  }

  get area() {
    return this.element.getBoundingClientRect();
  }

  /** Show all of the picture. */
  fit() {
    if (this.places) this.show({ x: 0, y: 0, width: this.places.width, height: this.places.height }, 0);
  }

  /** Show a group; where it would be too small to read, its upper middle. */
  fitGroup(group) {
    const node = this.visible?.nodes.find((each) => each.group === group);
    const box = node && this.places.boxes.get(String(node.number));
    if (box) this.show(box, 0.6);
    else this.fit();
  }

  show({ x, y, width, height }, smallest) {
    const area = this.area;
    const margin = 24;
    const whole = Math.min((area.width - 2 * margin) / width, (area.height - 2 * margin) / height, 1.15);
    const scale = Math.max(whole, smallest, SMALLEST);
    const top = height * scale > area.height - 2 * margin ? margin : (area.height - height * scale) / 2;
    this.view = { x: (area.width - width * scale) / 2 - x * scale, y: top - y * scale, scale };
    this.apply();
  }

  /** Move the node that shows an op into sight. */
  look(op) {
    const node = this.visible?.nodes[this.visible.shown[op]];
    const place = node && this.places.boxes.get(String(node.number));
    if (!place) return;
    const { width, height } = this.area;
    const scale = Math.max(this.view.scale, 0.7);
    this.view = {
      x: width / 2 - (place.x + place.width / 2) * scale,
      y: height / 2 - (place.y + Math.min(place.height / 2, 60)) * scale,
      scale,
    };
    this.apply();
  }

  zoom(factor, x = this.area.width / 2, y = this.area.height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, SMALLEST), LARGEST);
    const by = scale / this.view.scale;
    this.view = { x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by, scale };
    this.apply();
  }

  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.apply();
  }

  listen() {
    const fingers = new Map();
    let moved = 0;
    this.element.addEventListener(
      "wheel",
      (event) => {
        // Scrolling the page over the picture goes on; with a key held, or two fingers, it zooms.
        if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.element) return;
        event.preventDefault();
        const { left, top } = this.area;
        this.zoom(Math.exp(-event.deltaY * 0.0016), event.clientX - left, event.clientY - top);
      },
      { passive: false },
    );
    this.element.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event);
      if (fingers.size === 1) moved = 0;
    });
    this.element.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
      moved += Math.abs(x) + Math.abs(y);
      if (moved > 4 && !this.element.hasPointerCapture(event.pointerId)) this.element.setPointerCapture(event.pointerId);
      if (fingers.size === 1) {
        this.move(x, y);
      } else {
        const other = [...fingers.values()].find((each) => each.pointerId !== event.pointerId);
        const far = (each) => Math.hypot(each.clientX - other.clientX, each.clientY - other.clientY) || 1;
        const { left, top } = this.area;
        this.zoom(far(event) / far(before), (event.clientX + other.clientX) / 2 - left, (event.clientY + other.clientY) / 2 - top);
      }
      fingers.set(event.pointerId, event);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      this.element.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
    this.element.addEventListener("click", (event) => {
      if (moved > 4) return;
      const id = event.target.closest(".node")?.dataset.id;
      if (!id) return;
      const number = Number(id.slice(1));
      if (id[0] === "g") this.onToggle(number);
      else if (id[0] === "o") this.onSelect(number);
      else this.onSelect(this.graph.columns.blocks[number][2]);
    });
    this.element.addEventListener("keydown", (event) => {
      const step = 60;
      const keys = {
        ArrowLeft: () => this.move(step, 0),
        ArrowRight: () => this.move(-step, 0),
        ArrowUp: () => this.move(0, step),
        ArrowDown: () => this.move(0, -step),
        "+": () => this.zoom(1.25),
        "=": () => this.zoom(1.25),
        "-": () => this.zoom(0.8),
        0: () => this.fit(),
        Enter: () => this.toggleSelected(),
        ",": () => this.step(-1),
        ".": () => this.step(1),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  toggleSelected() {
    const node = this.visible?.nodes[this.visible.shown[this.selected ?? -1]];
    const group = node?.group >= 0 ? node.group : this.graph.groupAround[this.selected ?? 0];
    if (group > 0) this.onToggle(group);
  }

  step(by) {
    const next = Math.min(Math.max((this.selected ?? 0) + by, 0), this.graph.size - 1);
    this.onSelect(next);
  }
}

/** Return a path through points with round corners. */
function rounded(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    const [before, here, after] = [points[at - 1], points[at], points[at + 1]];
    const near = (to) => {
      const far = Math.hypot(to[0] - here[0], to[1] - here[1]) || 1;
      const part = Math.min(7, far / 2) / far;
      return [here[0] + (to[0] - here[0]) * part, here[1] + (to[1] - here[1]) * part];
    };
    const [start, end] = [near(before), near(after)];
    path += `L${start[0]} ${start[1]}Q${here[0]} ${here[1]} ${end[0]} ${end[1]}`;
  }
  const last = points.at(-1);
  return `${path}L${last[0]} ${last[1]}`;
}

/** Return the middle of the longest part of a line. */
function middle(points) {
  let best = [points[0], points.at(-1)];
  let longest = -1;
  for (let at = 1; at < points.length; at += 1) {
    const far = Math.hypot(points[at][0] - points[at - 1][0], points[at][1] - points[at - 1][1]);
    if (far > longest) {
      longest = far;
      best = [points[at - 1], points[at]];
    }
  }
  return [(best[0][0] + best[1][0]) / 2, (best[0][1] + best[1][1]) / 2];
}
