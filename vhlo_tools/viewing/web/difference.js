// The page for two programs: how they differ, side by side.

import { announce, el, plural, section } from "./elements.js";
import { head, show } from "./frame.js";

const MOST = 400;

function sides(contents) {
  return el(
    "div",
    { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of both programs" },
    el(
      "table",
      { class: "sides" },
      el("caption", { class: "unseen" }, "Both programs"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Of both"), contents.names.map((name) => el("th", { scope: "col" }, name)))),
      el(
        "tbody",
        {},
        contents.lines.map(([what, one, other]) =>
          el("tr", { class: one === other ? "same" : "" }, el("th", { scope: "row" }, what), el("td", {}, one), el("td", {}, other)),
        ),
      ),
    ),
  );
}

/** Mark what two texts do not have in common: their middles, between what they begin and end with. */
function marked(text, other) {
  if (text === null) return el("span", { class: "none" }, "is not there");
  if (other === null) return el("code", {}, el("mark", {}, text));
  let start = 0;
  while (start < Math.min(text.length, other.length) && text[start] === other[start]) start += 1;
  let end = 0;
  const most = Math.min(text.length, other.length) - start;
  while (end < most && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  const middle = text.slice(start, text.length - end);
  return el("code", {}, text.slice(0, start), middle ? el("mark", {}, middle) : "", end ? text.slice(text.length - end) : "");
}

function differences(contents) {
  const body = el("tbody");
  const chosen = new Set(contents.rows.map((row) => row.kind));
  let query = "";
  const draw = () => {
    const shown = contents.rows.filter(
      (row) =>
        chosen.has(row.kind) && [row.path, row.before, row.after].some((text) => text?.toLowerCase().includes(query)),
    );
    body.replaceChildren(
      ...shown.slice(0, MOST).map((row) =>
        el(
          "tr",
          { class: row.before === null ? "added" : row.after === null ? "removed" : "changed" },
          el("td", {}, row.kind, el("code", { class: "id" }, row.path)),
          el("td", {}, marked(row.before, row.after)),
          el("td", {}, marked(row.after, row.before)),
        ),
      ),
    );
    if (shown.length > MOST) {
      body.append(el("tr", {}, el("td", { colspan: 3, class: "hint" }, `and ${plural(shown.length - MOST, "difference")} more: filter to see them`)));
    }
    announce(`${plural(shown.length, "difference")} shown`);
  };
  const buttons = [...chosen].map((kind) => {
    const count = contents.rows.filter((row) => row.kind === kind).length;
    const button = el("button", { type: "button", "aria-pressed": "true" }, `${kind} ${count}`);
    button.addEventListener("click", () => {
      if (!chosen.delete(kind)) chosen.add(kind);
      button.setAttribute("aria-pressed", String(chosen.has(kind)));
      draw();
    });
    return button;
  });
  draw();
  const filter = el("input", {
    type: "search",
    placeholder: "Filter differences",
    "aria-label": "Filter differences",
    oninput: (event) => {
      query = event.target.value.trim().toLowerCase();
      draw();
    },
  });
  return [
    el("div", { class: "toolbar" }, filter, el("div", { class: "buttons", role: "group", "aria-label": "Kinds" }, buttons)),
    el(
      "div",
      { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of differences" },
      el(
        "table",
        { class: "sides" },
        el("caption", { class: "unseen" }, "Differences"),
        el("thead", {}, el("tr", {}, ["Place", ...contents.names].map((name) => el("th", { scope: "col" }, name)))),
        body,
      ),
    ),
  ];
}

show((contents) => ({
  top: head(
    [contents.names[0], el("span", { class: "folder" }, " and "), contents.names[1]],
    [["both", "Both programs"], ["differences", "Differences"]],
  ),
  main: [
    section("both", "Both programs", "", sides(contents)),
    section(
      "differences",
      "Differences",
      contents.rows.length ? `${plural(contents.rows.length, "difference")}.` : "There are none: both have the same meaning.",
      ...(contents.rows.length ? differences(contents) : []),
    ),
  ],
}));
