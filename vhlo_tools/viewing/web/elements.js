// Elements of the page. Text goes in as text, never as markup: names in a program may contain anything.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}

/** Make an element of HTML: attributes, listeners as `onclick`, and children, of which strings are text. */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an element of SVG. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Say something to readers of screens, and to whoever looks at the line that says it. */
export function announce(text) {
  const line = document.getElementById("status");
  if (line) line.textContent = text;
}

/** Say a number of things: `plural(1, "op")` is "1 op". */
export function plural(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

/** Say a number of bytes. */
export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return unit ? `${Number(number.toPrecision(3))} ${units[unit]}` : `${number} bytes`;
}

/** Make a section of the page, with its heading. */
export function section(id, title, lead, ...children) {
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    lead ? el("p", { class: "lead" }, lead) : null,
    ...children,
  );
}

/**
 * Make a drawing that slides under its labels where it is wider than the page: both are elements, and `at` is the place
 * in the drawing that is seen first, in the middle as far as it goes.
 */
export function sliding(name, labels, drawing, at) {
  labels.classList.add("labels");
  drawing.classList.add("slid");
  return el("div", { class: "scroll sliding", tabindex: "0", role: "region", "aria-label": name, "data-at": at }, labels, drawing);
}

/** Slide all drawings of the page to what is seen first. */
export function slide() {
  for (const each of document.querySelectorAll(".sliding")) {
    const [labels] = each.children;
    each.scrollLeft = Number(each.dataset.at) - (each.clientWidth - labels.clientWidth) / 2;
  }
}

/** Make a table: its caption, columns as [title, class], and rows of cells, which are text or elements. */
export function table(caption, columns, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)))),
      el(
        "tbody",
        {},
        rows.map((cells) => el("tr", {}, cells.map((cell, index) => el("td", { class: columns[index][1] }, cell)))),
      ),
    ),
  );
}
