// Inputs and outputs with what is drawn between them, constants, and findings.

import { announce, bytes, el, plural, section, svg, table } from "./elements.js";
import { shape } from "./picture.js";

const SHOWN = 60;
const WIRE = 30;

/** Make the section of inputs and outputs. */
export function signature(contents) {
  const { inputs, outputs, aliases } = contents;
  const donors = inputs.filter((each) => each.donated).length;
  const said = [
    aliases.length ? `${plural(aliases.length, "output")} may be written over an input` : "No output is written over an input",
    donors ? `; ${plural(donors, "input")} ${donors === 1 ? "is" : "are"} given away` : "",
    ".",
  ].join("");
  const rows = Math.max(inputs.length, outputs.length);
  return section(
    "signature",
    "Inputs and outputs",
    contents.function ? `@${contents.function}. ${said}` : "The program has no function that is entered.",
    rows ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Drawing of inputs, outputs and aliases" }, wires(contents)) : null,
    rows ? el("details", {}, el("summary", {}, "As tables"), ...lists(contents)) : null,
  );
}

function wires({ inputs, outputs, aliases }) {
  const left = inputs.slice(0, SHOWN);
  const right = outputs.slice(0, SHOWN);
  const width = 980;
  const height = Math.max(left.length + (inputs.length > SHOWN), right.length + (outputs.length > SHOWN)) * WIRE + 44;
  const y = (number) => 44 + number * WIRE;
  const aliased = new Set(aliases.map((each) => each.output));
  const over = new Map(aliases.map((each) => [each.input, each]));
  const parts = [
    svg("text", { x: 8, y: 20, class: "heading" }, plural(inputs.length, "input")),
    svg("text", { x: 640, y: 20, class: "heading" }, plural(outputs.length, "output")),
  ];
  for (const { input, output, kind } of aliases) {
    if (input >= SHOWN || output >= SHOWN) continue;
    const [from, to] = [y(input) + 11, y(output) + 11];
    parts.push(
      svg(
        "path",
        { d: `M340 ${from}C490 ${from} 490 ${to} 640 ${to}`, class: `alias ${kind}` },
        svg("title", {}, `output ${output} over input ${input}: ${kind}`),
      ),
    );
  }
  const box = (x, value, number, kind) =>
    svg(
      "g",
      { transform: `translate(${x} ${y(number)})` },
      svg("rect", { width: 332, height: 24, rx: 6, class: `value ${kind}` }),
      svg("text", { x: 10, y: 16.5, class: "position" }, String(number)),
      svg("text", { x: 38, y: 16.5, class: "name" }, cut(value.name || "", 22)),
      svg("text", { x: 322, y: 16.5, class: "type", "text-anchor": "end" }, cut(shape(value.type), value.name ? 20 : 38)),
      svg("title", {}, [value.name, value.type, value.location].filter(Boolean).join("\n")),
    );
  left.forEach((value, number) => parts.push(box(8, value, number, value.donated ? "donor" : over.has(number) ? "aliased" : "")));
  right.forEach((value, number) => parts.push(box(640, value, number, aliased.has(number) ? "aliased" : "")));
  if (inputs.length > SHOWN) parts.push(svg("text", { x: 8, y: y(SHOWN) + 16, class: "more" }, `and ${inputs.length - SHOWN} more`));
  if (outputs.length > SHOWN) parts.push(svg("text", { x: 640, y: y(SHOWN) + 16, class: "more" }, `and ${outputs.length - SHOWN} more`));
  return svg(
    "svg",
    { class: "wires", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Inputs on the left, outputs on the right, and lines between those that share a buffer. The tables below say the same." },
    parts,
  );
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function lists({ inputs, outputs, aliases }) {
  const out = new Map(aliases.map((each) => [each.input, each]));
  const into = new Map(aliases.map((each) => [each.output, each]));
  const code = (text) => el("code", {}, text);
  return [
    table(
      "Inputs",
      [["Input", "number"], ["Name", ""], ["Type", ""], ["Shares its buffer", "plain"], ["Source", ""]],
      inputs.map((value, number) => [
        String(number),
        value.name,
        code(value.type),
        out.has(number) ? `output ${out.get(number).output}, ${out.get(number).kind}` : value.donated ? "given away" : "",
        value.location ? code(value.location) : "",
      ]),
    ),
    table(
      "Outputs",
      [["Output", "number"], ["Name", ""], ["Type", ""], ["Over", "plain"]],
      outputs.map((value, number) => [
        String(number),
        value.name,
        code(value.type),
        into.has(number) ? `input ${into.get(number).input}, ${into.get(number).kind}` : "",
      ]),
    ),
  ];
}

/** Make the section of constants. */
export function constants(contents, graph, { onOp }) {
  const { constants: rows, constants_number: number, constants_bytes: size } = contents;
  const most = rows[0]?.bytes || 1;
  const lead = number
    ? `${plural(number, "constant")} of ${bytes(size)} in the file, values that are shared counted once. ` +
      (rows.length < number ? `The ${rows.length} largest are listed; ${plural(number - rows.length, "other")} follow.` : "")
    : "The program has no constants.";
  const bar = (held) => {
    const element = el("span", { class: "bar", "aria-hidden": "true" });
    element.style.setProperty("--part", Math.max(held / most, 0.004));
    return element;
  };
  return section(
    "constants",
    "Constants",
    lead,
    rows.length
      ? table(
          "Constants, largest first",
          [["Constant", ""], ["Type", ""], ["In the file", "number"], ["Size", "bars"], ["Uses", "number"], ["Source", ""]],
          rows.map((row) => [
            el("button", { type: "button", class: "link", onclick: () => onOp(row.op) }, `#${row.op}`),
            el("code", {}, row.type),
            row.shared ? `${bytes(row.bytes)}, shared` : bytes(row.bytes),
            bar(row.bytes),
            row.uses.toLocaleString("en"),
            el("code", {}, graph.stack(row.op)[0]?.where ?? ""),
          ]),
        )
      : null,
  );
}

const WORDS = { error: "Error", warning: "Warning", note: "Note" };
const MOST_PLACES = 8;

/** Make the section of findings, with what filters them. */
export function findings(contents, { onOp }) {
  const all = contents.findings;
  const list = el("ul", { class: "findings" });
  const chosen = new Set(Object.keys(WORDS));
  let query = "";
  const draw = () => {
    const shown = all.filter(
      (each) =>
        chosen.has(each.level) &&
        [each.message, each.feature, each.location, each.path].some((text) => text.toLowerCase().includes(query)),
    );
    list.replaceChildren(...grouped(shown).map((each) => row(each, onOp)));
    announce(`${plural(shown.length, "finding")} shown`);
  };
  const levels = Object.entries(WORDS).map(([level, word]) => {
    const count = all.filter((each) => each.level === level).length;
    const button = el("button", { type: "button", "aria-pressed": "true", disabled: !count }, `${word} ${count}`);
    button.addEventListener("click", () => {
      if (chosen.delete(level) === false) chosen.add(level);
      button.setAttribute("aria-pressed", String(chosen.has(level)));
      draw();
    });
    return button;
  });
  const filter = el("input", {
    type: "search",
    placeholder: "Filter findings",
    "aria-label": "Filter findings",
    oninput: (event) => {
      query = event.target.value.trim().toLowerCase();
      draw();
    },
  });
  draw();
  return section(
    "findings",
    "Findings",
    all.length
      ? `${plural(all.length, "finding")} ${contents.findings_for}.`
      : `There are no findings ${contents.findings_for}.`,
    all.length ? el("div", { class: "toolbar" }, filter, el("div", { class: "buttons", role: "group", "aria-label": "Levels" }, levels)) : null,
    all.length ? list : null,
  );
}

/** Return findings of one feature with one remedy together. */
function grouped(all) {
  const groups = new Map();
  for (const each of all) {
    const key = [each.level, each.feature, each.remedy].join("\n");
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()];
}

function row(group, onOp) {
  const [first] = group;
  const places = el("ul", { class: "places" });
  // A message that all have is said once.
  const alike = group.every((each) => each.message === first.message);
  const draw = (most) => {
    places.replaceChildren(...group.slice(0, most).map((each) => el("li", {}, place(each, onOp, !alike))));
    if (group.length > most) {
      const more = el("button", { type: "button", class: "link", onclick: () => draw(group.length) }, `and ${group.length - most} more places`);
      places.append(el("li", {}, more));
    }
  };
  draw(MOST_PLACES);
  return el(
    "li",
    { class: first.level },
    el("span", { class: "level" }, WORDS[first.level]),
    el(
      "div",
      {},
      el(
        "p",
        { class: "feature" },
        el("code", {}, first.feature),
        first.introduced >= 0 ? el("a", { href: `#feature-${first.feature}` }, "on the time line") : "",
      ),
      alike ? el("span", { class: "message" }, first.message) : "",
      places,
      first.remedy ? el("p", { class: "remedy" }, first.remedy) : "",
    ),
  );
}

function place(finding, onOp, isOwn) {
  const ops = finding.ops.slice(0, 4);
  const where = finding.location || finding.path;
  return [
    isOwn ? el("span", { class: "message" }, finding.message) : "",
    el(
      "span",
      { class: "facts" },
      where ? el("code", {}, where) : "",
      finding.count > 1 ? ` ${finding.count} times ` : "",
      ...ops.map((op) => el("button", { type: "button", class: "link", onclick: () => onOp(op) }, `op #${op}`)),
      finding.ops.length > ops.length ? ` and ${finding.ops.length - ops.length} more` : "",
    ),
  ];
}
