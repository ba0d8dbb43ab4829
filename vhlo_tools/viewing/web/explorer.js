// The graph: toolbar, tree, picture and details, which show one state.

import { announce, el, plural } from "./elements.js";
import { Details } from "./details.js";
import { Folding, MOST_NODES } from "./folding.js";
import { Layout } from "./layout.js";
import { Picture } from "./picture.js";
import { Tree } from "./tree.js";

/** The shades of introductions: the versions that ops of a program need, oldest first. */
export class Shades {
  constructor(graph) {
    const counts = new Map();
    for (let op = 0; op < graph.size; op += 1) counts.set(graph.introduced(op), (counts.get(graph.introduced(op)) ?? 0) + 1);
    this.counts = [...counts].sort(([a], [b]) => (a < 0 ? 1 : b < 0 ? -1 : a - b));
    this.oldest = Math.min(...[...counts.keys()].filter((each) => each >= 0));
    const newer = this.counts.map(([version]) => version).filter((version) => version > 0);
    this.numbers = new Map(newer.map((version, at) => [version, newer.length < 2 ? 3 : Math.round((at * 5) / (newer.length - 1))]));
  }

  isOldest(version) {
    return version === 0 || version === -2;
  }

  of(version) {
    if (version === -1) return "shade-unknown";
    return this.numbers.has(version) ? `shade-${this.numbers.get(version)}` : "shade-old";
  }
}

/** The part of the page with the graph. */
export class Explorer {
  constructor(graph, contents) {
    this.graph = graph;
    this.folding = new Folding(graph);
    this.shades = new Shades(graph);
    const acts = { onSelect: (op) => this.select(op), onToggle: (group) => this.toggle(group) };
    this.picture = new Picture(graph, this.shades, acts);
    this.tree = new Tree(graph, this.folding, this.shades, acts);
    this.details = new Details(graph, contents, acts);
    this.notice = el("p", { class: "notice", hidden: true });
    this.busy = el("p", { class: "busy", "aria-hidden": "true" }, "Laying out…");
    this.canvas = el("div", { class: "canvas" }, this.picture.element, this.busy, this.notice);
    this.element = el(
      "div",
      { class: "explorer" },
      this.toolbar(),
      el("div", { class: "panes" }, this.tree.element, this.canvas, this.details.element),
    );
    this.turn = 0;
  }

  toolbar() {
    const button = (text, title, onclick) => el("button", { type: "button", title, onclick }, text);
    this.query = el("input", {
      type: "search",
      placeholder: "Search ops, attributes, types, lines",
      "aria-label": "Search ops, attributes, types, lines",
      oninput: () => this.search(),
      onkeydown: (event) => {
        if (event.key === "Enter") this.nextFound(event.shiftKey ? -1 : 1);
        if (event.key === "Escape") this.clear();
      },
    });
    this.all = button("Unfold all", "Unfold all groups, as far as there is room", () => this.unfoldAll());
    return el(
      "div",
      { class: "toolbar" },
      this.query,
      this.legend(),
      el(
        "div",
        { class: "buttons", role: "group", "aria-label": "Picture" },
        this.all,
        button("Fold all", "Fold all groups", () => this.foldAll()),
        button("Fit", "Show the whole picture (0)", () => this.picture.fit()),
        button("+", "Zoom in (+)", () => this.picture.zoom(1.3)),
        button("−", "Zoom out (−)", () => this.picture.zoom(1 / 1.3)),
      ),
    );
  }

  legend() {
    const shown = this.shades.counts.length > 1 || this.shades.counts.some(([version]) => version !== 0);
    const items = this.shades.counts.map(([version, count]) => {
      const text = version < 0 ? "unknown" : this.shades.isOldest(version) ? "every version" : this.graph.version(version);
      const item = el(
        "button",
        { type: "button", class: `shade ${this.shades.of(version)}`, "aria-pressed": "false", title: plural(count, "op") },
        el("span", { class: "dot", "aria-hidden": "true" }),
        text,
        el("span", { class: "unseen" }, `, ${plural(count, "op")}`),
      );
      item.addEventListener("click", () => this.only(item, version, text));
      return item;
    });
    return shown ? el("div", { class: "legend", role: "group", "aria-label": "Ops by the version that they need" }, items) : "";
  }

  /** Begin to lay out; pictures come when they are ready. */
  async start() {
    this.tree.draw();
    try {
      this.layout = await Layout.start();
    } catch (error) {
      this.layout = null;
      console.warn(error);
    }
    if (!this.layout) {
      this.busy.hidden = true;
      this.say("This page was made without elkjs, which lays out the picture. The tree has every op.");
      return;
    }
    await this.redraw({ first: true });
  }

  say(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
  }

  /** Draw what is unfolded now. */
  async redraw({ first = false, keep } = {}) {
    this.tree.draw();
    if (!this.layout) return;
    this.turn += 1;
    const turn = this.turn;
    this.canvas.classList.add("waiting");
    const visible = this.folding.visible();
    try {
      const places = await this.layout.place(visible, (node) => this.picture.size(node));
      // A later turn shows more.
      if (turn !== this.turn) return;
      const before = keep === undefined ? null : this.placeOf(keep);
      this.picture.draw(visible, places);
      if (before) this.hold(keep, before);
      else if (first) this.picture.fitGroup(this.folding.first);
      else this.picture.fit();
      performance.mark("drawn");
      document.documentElement.dataset.drawn = String(this.turn);
    } catch (error) {
      this.say(`The picture could not be laid out: ${error.message}`);
      console.warn(error);
    }
    this.busy.hidden = true;
    this.canvas.classList.remove("waiting");
  }

  placeOf(group) {
    const { visible, places } = this.picture;
    const node = visible?.nodes.find((each) => each.group === group);
    return node && places.boxes.get(String(node.number));
  }

  /** Keep a group where it was in the window. */
  hold(group, before) {
    const after = this.placeOf(group);
    if (!after) return this.picture.fit();
    const { scale } = this.picture.view;
    return this.picture.move((before.x - after.x) * scale, (before.y - after.y) * scale);
  }

  toggle(group) {
    this.folding.toggle(group);
    const { label } = this.graph.group(group);
    announce(`${label || "group"} ${this.folding.isOpen(group) ? "unfolded" : "folded"}`);
    return this.redraw({ keep: group });
  }

  unfoldAll() {
    const whole = this.folding.unfoldAll();
    announce(whole ? "Everything is unfolded" : `Unfolded up to ${MOST_NODES} nodes: unfold others one by one`);
    return this.redraw();
  }

  foldAll() {
    this.folding.foldAll();
    announce("Everything is folded");
    return this.redraw();
  }

  /** Show an op: in the tree, in the picture, and what is known of it. */
  async select(op) {
    this.selected = op;
    const changed = this.folding.reveal(op);
    this.details.show(op);
    announce(`${this.graph.name(op)}, op ${op}`);
    if (changed) await this.redraw();
    this.tree.mark(op, true);
    this.picture.mark(op);
    if (changed || !this.isSeen(op)) this.picture.look(op);
  }

  isSeen(op) {
    const { visible, places, view, area } = this.picture;
    const place = visible && places?.boxes.get(String(visible.shown[op]));
    if (!place) return false;
    if (view.scale < 0.45) return false;
    const [x, y] = [place.x * view.scale + view.x, place.y * view.scale + view.y];
    return x > 0 && y > 0 && x + place.width * view.scale < area.width && y < area.height - 20;
  }

  // Search

  /** Return the ops that have a text in their name, types, attributes, names or lines. */
  matching(query) {
    const { graph } = this;
    const wanted = query.toLowerCase();
    const { strings, kinds, frames, stacks } = graph.columns;
    const has = strings.map((text) => text.toLowerCase().includes(wanted));
    const kindHas = kinds.map(([name, artifact, , , types, attributes]) =>
      [name, artifact, ...types, ...(attributes ?? [])].some((each) => has[each]),
    );
    const frameHas = frames.map(
      ([file, line, , name]) => has[file] || has[name] || `${strings[file]}:${line}`.toLowerCase().includes(wanted),
    );
    // A stack stands after the one around it.
    const stackHas = [];
    stacks.forEach(([frame, around], at) => (stackHas[at] = frameHas[frame] || (around >= 0 && stackHas[around])));
    const featureHas = graph.columns.feature_sets.map((set) => set.some((id) => id.toLowerCase().includes(wanted)));
    const number = /^#(\d+)$/.exec(query);
    const found = [];
    for (let op = 1; op < graph.size; op += 1) {
      const label = graph.columns.label[op];
      const stack = graph.columns.stack[op];
      if (
        (number && Number(number[1]) === op) ||
        kindHas[graph.columns.kind[op]] ||
        featureHas[graph.columns.features[op]] ||
        (label >= 0 && has[label]) ||
        (stack >= 0 && stackHas[stack])
      ) {
        found.push(op);
      }
    }
    return found;
  }

  search() {
    const query = this.query.value.trim();
    this.press(null);
    if (!query) return this.clear();
    return this.showFound(this.matching(query), query);
  }

  showFound(ops, query) {
    this.found = ops;
    this.at = -1;
    this.picture.markFound(ops);
    this.details.found(ops, query);
    announce(`${plural(ops.length, "op")} found`);
  }

  nextFound(by) {
    if (!this.found?.length) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.select(this.found[this.at]);
  }

  clear() {
    this.query.value = "";
    this.found = null;
    this.press(null);
    this.picture.markFound(null);
    if (this.selected !== undefined) this.details.show(this.selected);
  }

  press(pressed) {
    for (const each of this.element.querySelectorAll(".legend button")) {
      each.setAttribute("aria-pressed", String(each === pressed));
    }
  }

  /** Show only the ops that need a version. */
  only(item, version, text) {
    if (item.getAttribute("aria-pressed") === "true") {
      this.clear();
      return;
    }
    const ops = [];
    for (let op = 1; op < this.graph.size; op += 1) if (this.graph.introduced(op) === version) ops.push(op);
    this.query.value = "";
    this.press(item);
    this.showFound(ops, `needs ${text}`);
  }
}
