// What is known of one op: beside the picture, after a click.

import { el, plural } from "./elements.js";

const MOST_USERS = 12;

/** The panel of an op. */
export class Details {
  constructor(graph, contents, { onSelect }) {
    Object.assign(this, { graph, contents, onSelect });
    this.element = el("div", { class: "details", tabindex: "0", role: "region", "aria-label": "Details of the selected op" });
    this.element.append(
      el("p", { class: "hint" }, "Choose an op in the picture or in the tree to see its types, attributes, operands and source."),
    );
    this.features = new Map(contents.features.map((feature) => [feature.id, feature]));
  }

  link(op) {
    const { graph } = this;
    return el(
      "button",
      { type: "button", class: "link", onclick: () => this.onSelect(op) },
      `${graph.name(op)} `,
      el("span", { class: "number" }, `#${op}`),
    );
  }

  show(op) {
    const { graph } = this;
    const stack = graph.stack(op);
    const attributes = graph.attributes(op);
    const introduced = graph.introduced(op);
    const parts = [
      el("h3", {}, graph.name(op), el("span", { class: "number" }, ` #${op}`)),
      el(
        "p",
        { class: "facts" },
        el("code", {}, graph.artifactName(op)),
        introduced < 0 ? " · unknown to the data" : introduced === 0 ? " · in every version" : ` · needs StableHLO ${graph.version(introduced)}`,
      ),
      this.list("Features", graph.features(op).map((id) => this.feature(id))),
      this.list("Operands", graph.operands(op).map((value) => this.operand(value))),
      this.list("Results", graph.results(op).map((value, index) => this.result(op, value, index))),
      this.pairs("Attributes", attributes),
      this.list(
        "Source",
        stack.map(({ where, name }, index) =>
          el("span", { class: index ? "caller" : "line" }, el("code", {}, where), name ? ` in ${name}` : ""),
        ),
      ),
      graph.label(op) ? this.list("Named", [el("code", {}, graph.label(op))]) : null,
      this.around(op),
    ];
    this.element.replaceChildren(...parts.filter(Boolean));
    this.element.scrollTop = 0;
  }

  feature(id) {
    const feature = this.features.get(id);
    return el("a", { href: `#feature-${id}` }, feature?.title ?? id);
  }

  operand(value) {
    const { op, block, index, type } = this.graph.source(value);
    if (block === undefined) {
      const several = this.graph.types(op).length > 1 ? `, result ${index}` : "";
      return el("span", {}, this.link(op), several, el("code", { class: "type" }, this.graph.types(op)[index]));
    }
    return el("span", {}, `argument ${index} of `, this.link(op), el("code", { class: "type" }, type));
  }

  result(op, value, index) {
    const users = this.graph.users(value);
    const shown = users.slice(0, MOST_USERS).map((user) => el("span", { class: "user" }, this.link(user)));
    const more = users.length > MOST_USERS ? ` and ${users.length - MOST_USERS} more` : "";
    return el(
      "span",
      {},
      el("code", { class: "type" }, this.graph.types(op)[index]),
      el("span", { class: "users" }, users.length ? "to " : "used by nothing", ...shown, more),
    );
  }

  around(op) {
    const parent = this.graph.parent(op);
    return parent > 0 ? this.list("In", [this.link(parent)]) : null;
  }

  list(title, items) {
    if (!items.length) return null;
    return el("section", {}, el("h4", {}, title), el("ul", {}, items.map((item) => el("li", {}, item))));
  }

  pairs(title, pairs) {
    if (pairs === null) return el("p", { class: "hint" }, "The page has no room for the attributes of so many kinds of ops.");
    if (!pairs.length) return null;
    return el(
      "section",
      {},
      el("h4", {}, title),
      el("dl", {}, pairs.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, el("code", {}, text))])),
    );
  }

  /** Show how many ops were found, and the first of them. */
  found(ops, query) {
    this.element.replaceChildren(
      el("h3", {}, plural(ops.length, "op")),
      el("p", { class: "facts" }, "with ", el("code", {}, query)),
      el("ul", { class: "results" }, ops.slice(0, 100).map((op) => el("li", {}, this.link(op), this.place(op)))),
      ops.length > 100 ? el("p", { class: "hint" }, `and ${(ops.length - 100).toLocaleString("en")} more`) : "",
    );
  }

  place(op) {
    const where = this.graph.stack(op)[0]?.where;
    return where ? el("code", { class: "type" }, where) : "";
  }
}
