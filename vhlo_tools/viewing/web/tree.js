// The tree of the ops: the same as the picture, for keys and readers of screens.

import { el } from "./elements.js";
import { shape, shortLine } from "./picture.js";

/** The tree; it shows what is unfolded, as the picture does. */
export class Tree {
  constructor(graph, folding, shades, { onSelect, onToggle }) {
    Object.assign(this, { graph, folding, shades, onSelect, onToggle });
    this.element = el("ul", { role: "tree", class: "tree", "aria-label": "Ops of the program" });
    this.element.addEventListener("click", (event) => {
      const row = event.target.closest("[role=treeitem]");
      if (row) this.act(row);
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Draw the rows anew; the one that had the focus has it again. */
  draw() {
    const held = this.element.contains(document.activeElement) ? document.activeElement.dataset.member : undefined;
    const rows = [];
    const walk = (group, level) => {
      const members = this.graph.members(group);
      members.forEach((member, index) => {
        rows.push(this.row(member, level, index + 1, members.length));
        if (member < 0 && this.folding.isOpen(~member)) walk(~member, level + 1);
      });
    };
    walk(0, 1);
    this.element.replaceChildren(...rows);
    this.mark(this.selected);
    const again = held && this.element.querySelector(`[data-member="${held}"]`);
    if (again) this.focus(again, true);
    else if (!this.element.querySelector('[tabindex="0"]')) rows[0]?.setAttribute("tabindex", "0");
  }

  row(member, level, position, number) {
    const { graph } = this;
    const group = member < 0 ? ~member : -1;
    const op = group < 0 ? member : graph.group(group).op;
    const { kind, label, size } = group < 0 ? {} : graph.group(group);
    const newest = group < 0 ? graph.introduced(op) : graph.groupNewest[group];
    const types = group < 0 ? graph.types(op) : [];
    const name = group < 0 ? graph.name(op) : kind === "line" ? shortLine(label, Math.max(24 - 2 * level, 12)) : kind === "run" ? `ops ${label}` : label;
    const isOpen = group >= 0 && this.folding.isOpen(group);
    const row = el(
      "li",
      {
        role: "treeitem",
        class: `${this.shades.of(newest)} ${group < 0 ? "op" : "group"}`,
        tabindex: "-1",
        "aria-level": level,
        "aria-posinset": position,
        "aria-setsize": number,
        "aria-expanded": group < 0 ? undefined : String(isOpen),
        "aria-selected": "false",
        "data-member": member,
        "data-op": op >= 0 ? op : undefined,
      },
      el("span", { class: "sign", "aria-hidden": "true" }, group < 0 ? "" : isOpen ? "−" : "+"),
      el("span", { class: "dot", "aria-hidden": "true" }),
      el("span", { class: "name" }, name),
      el("span", { class: "more" }, group < 0 ? types.map(shape).join(", ") : `${size.toLocaleString("en")}`),
      this.shades.isOldest(newest) ? null : el("span", { class: "badge" }, graph.version(newest)),
    );
    row.style.setProperty("--level", Math.min(level - 1, 14));
    return row;
  }

  act(row) {
    const member = Number(row.dataset.member);
    this.focus(row);
    if (row.dataset.op !== undefined) this.onSelect(Number(row.dataset.op));
    if (member < 0) this.onToggle(~member);
  }

  focus(row, quietly = false) {
    for (const each of this.element.querySelectorAll('[tabindex="0"]')) each.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
    row.focus({ preventScroll: quietly });
  }

  /** Mark the row of an op. */
  mark(op, scroll = false) {
    this.selected = op;
    for (const each of this.element.querySelectorAll('[aria-selected="true"]')) each.setAttribute("aria-selected", "false");
    const row = op === undefined ? null : this.element.querySelector(`[data-op="${op}"]`);
    if (!row) return;
    row.setAttribute("aria-selected", "true");
    for (const each of this.element.querySelectorAll('[tabindex="0"]')) each.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
    // The tree alone moves, not the page.
    if (scroll) this.element.scrollTop = row.offsetTop - this.element.offsetTop - this.element.clientHeight / 2;
  }

  key(event) {
    const row = event.target.closest("[role=treeitem]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...this.element.children];
    const at = rows.indexOf(row);
    const level = (each) => Number(each.getAttribute("aria-level"));
    const isOpen = row.getAttribute("aria-expanded");
    const member = Number(row.dataset.member);
    const go = (target) => target && this.focus(target);
    const keys = {
      ArrowDown: () => go(rows[at + 1]),
      ArrowUp: () => go(rows[at - 1]),
      Home: () => go(rows[0]),
      End: () => go(rows.at(-1)),
      ArrowRight: () => {
        if (isOpen === "false") this.onToggle(~member);
        else if (isOpen === "true") go(rows[at + 1]);
      },
      ArrowLeft: () => {
        if (isOpen === "true") this.onToggle(~member);
        else go(rows.slice(0, at).findLast((each) => level(each) < level(row)));
      },
      Enter: () => this.act(row),
      " ": () => this.act(row),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}
