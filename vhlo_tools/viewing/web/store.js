// The page for a store: who reads its files, when they leave their windows, what holds them back.

import { announce, bytes, el, plural, section, sliding, svg, table } from "./elements.js";
import { head, lines, pathTitle, show } from "./frame.js";

const WIDE = 1180;
/** The width of labels, which stay where the rest slides. */
const LABELS = 136;

/** Make a bar, as a part of the most. */
function bar(part) {
  const element = el("span", { class: "bar", "aria-hidden": "true" });
  element.style.setProperty("--part", Math.max(part, 0.003));
  return element;
}

function readers(contents) {
  if (!contents.readers.length) return null;
  const packages = [...new Set(contents.readers.map((each) => each.package))];
  return section(
    "readers",
    "Who reads it",
    `The files that each release reads, of ${plural(contents.number, "file")}.`,
    ...packages.map((name) => release(contents, name)),
  );
}

function release(contents, name) {
  const held = contents.readers.filter((each) => each.package === name);
  const [height, top] = [64, 8];
  const step = Math.min((WIDE - LABELS) / held.length, 46);
  // One release alone has room for its number.
  const end = Math.max(held.length * step, 2 * step);
  const most = contents.number || 1;
  const parts = held.flatMap((each, number) => {
    const x = number * step;
    const high = (each.reads / most) * height;
    const text = `${name} ${each.release}, ${each.date}: reads ${each.reads} of ${contents.number}`;
    return [
      svg("rect", { x, y: top, width: step - 4, height, rx: 3, class: "all" }, svg("title", {}, text)),
      svg("rect", { x, y: top + height - high, width: step - 4, height: high, rx: 3, class: "part" }, svg("title", {}, text)),
    ];
  });
  const [first, last] = [held[0], held.at(-1)];
  const size = (width) => ({ class: "chart", width, height: height + 32, viewBox: `0 0 ${width} ${height + 32}` });
  return sliding(
    `Releases of ${name}`,
    svg(
      "svg",
      { ...size(LABELS), "aria-hidden": "true" },
      svg("text", { x: 0, y: top + 14, class: "heading" }, name),
      svg("text", { x: 0, y: top + 33, class: "soft" }, `newest: ${last.reads.toLocaleString("en")}`),
    ),
    svg(
      "svg",
      {
        ...size(end),
        role: "img",
        "aria-label": `${name}: the newest release, ${last.release}, reads ${last.reads} of ${contents.number} files; the oldest, ${first.release}, ${first.reads}`,
      },
      ...parts,
      svg("text", { x: 0, y: height + 24, class: "soft" }, first.release),
      held.length > 3 ? svg("text", { x: end - 4, y: height + 24, class: "soft", "text-anchor": "end" }, last.release) : null,
    ),
    end,
  );
}

function windows(contents) {
  if (!contents.ends.length) return null;
  const days = contents.ends.map(([day]) => Date.parse(day));
  const now = Date.parse(contents.today);
  const from = Math.min(days[0], now);
  const to = Math.max(days.at(-1), now) + 1;
  const total = contents.ends.reduce((sum, [, count]) => sum + count, 0);
  const [left, right, top, height] = [54, 20, 14, 210];
  const wide = WIDE - left;
  const x = (day) => 1 + ((day - from) / (to - from)) * (wide - right);
  const y = (count) => top + height - (count / total) * height;
  let within = total;
  let path = `M${x(from)} ${y(total)}`;
  for (const [day, count] of contents.ends) {
    path += `H${x(Date.parse(day))}`;
    within -= count;
    path += `V${y(within)}`;
  }
  path += `H${x(to)}`;
  const years = [];
  for (let year = new Date(from).getUTCFullYear(); year <= new Date(to).getUTCFullYear() + 1; year += 1) {
    const at = Date.UTC(year, 0, 1);
    if (at < from || at > to) continue;
    years.push(svg("line", { x1: x(at), x2: x(at), y1: top, y2: top + height, class: "grid" }));
    years.push(svg("text", { x: x(at) + 4, y: top + height + 18, class: "soft" }, String(year)));
  }
  const grid = [0, 0.5, 1].flatMap((part) => [
    svg("line", { x1: 0, x2: wide - right, y1: y(total * part), y2: y(total * part), class: "grid" }),
  ]);
  const counts = [0, 0.5, 1].map((part) =>
    svg("text", { x: left - 8, y: y(total * part) + 4, class: "soft", "text-anchor": "end" }, Math.round(total * part).toLocaleString("en")),
  );
  const size = (width) => ({ class: "chart", width, height: top + height + 30, viewBox: `0 0 ${width} ${top + height + 30}` });
  const late = contents.ends.filter(([day]) => day < contents.today).reduce((sum, [, count]) => sum + count, 0);
  return section(
    "windows",
    "Windows over time",
    `${plural(late, "file")} of ${total.toLocaleString("en")} ${late === 1 ? "has" : "have"} left the window in which new releases promise to read ${late === 1 ? "it" : "them"}; the others leave as the line falls.`,
    sliding(
      "Drawing of windows over time",
      svg("svg", { ...size(left), "aria-hidden": "true" }, counts),
      svg(
        "svg",
        { ...size(wide), role: "img", "aria-label": "Files within their windows, over time. The table of files has the days." },
        ...grid,
        ...years,
        svg("path", { d: `${path}V${y(0)}H${x(from)}Z`, class: "under-line" }),
        svg("path", { d: path, class: "line" }),
        svg("line", { x1: x(now), x2: x(now), y1: top, y2: top + height, class: "today" }),
        svg("text", { x: x(now) + 6, y: top + 12, class: "today" }, "today"),
      ),
      x(now),
    ),
  );
}

function blockers(contents) {
  const most = contents.blockers[0]?.files || 1;
  return section(
    "blockers",
    "What blocks most",
    contents.blockers.length ? "Features that keep files from older consumers." : "Nothing keeps a file from older consumers.",
    contents.blockers.length
      ? table(
          "Features",
          [["Feature", ""], ["Since", ""], ["Files", "number"], ["Share", "bars"], ["What to do", "wide"]],
          contents.blockers.map((each) => [
            el("span", {}, each.title, el("code", { class: "id" }, each.id)),
            each.introduced < 0 ? "" : contents.versions[each.introduced][0],
            each.files.toLocaleString("en"),
            bar(each.files / most),
            each.remedy,
          ]),
        )
      : null,
  );
}

function tallies(contents) {
  const shown = contents.tallies.filter(([, rows]) => rows.length);
  return section(
    "tallies",
    "What there is",
    "",
    ...shown.flatMap(([title, rows]) => {
      const most = Math.max(...rows.map((row) => row.files));
      return [
        el("h3", {}, title),
        table(
          title,
          [[title.replace(/^By (the )?/, ""), ""], ["Files", "number"], ["Share", "bars"], ["Size", "number"]],
          rows.map((row) => [row.what, row.files.toLocaleString("en"), bar(row.files / most), row.bytes ? bytes(row.bytes) : ""]),
        ),
      ];
    }),
  );
}

function files(contents) {
  if (!contents.files.length) return null;
  const columns = [["File", ""], ["Kind", ""], ["Size", "number"], ["Written for", ""], ["Read since", ""], ["Leaves its window", ""]];
  const body = el("tbody");
  const draw = (query) => {
    const shown = contents.files.filter((file) => `${file.path} ${file.kind} ${file.version} ${file.error}`.toLowerCase().includes(query));
    body.replaceChildren(
      ...shown.map((file) =>
        el(
          "tr",
          { class: file.leaves && file.leaves < contents.today ? "late" : "" },
          el("td", {}, el("code", {}, file.path), file.error ? el("span", { class: "error" }, file.error) : ""),
          el("td", { class: "plain" }, file.kind),
          el("td", { class: "number" }, bytes(file.size)),
          el("td", {}, file.version),
          el("td", {}, file.readable_since),
          el("td", { class: "plain" }, file.leaves, file.leaves && file.leaves < contents.today ? ", past" : ""),
        ),
      ),
    );
    announce(`${plural(shown.length, "file")} shown`);
  };
  draw("");
  const rest = contents.files_number - contents.files.length;
  return section(
    "files",
    "Files",
    `In the order in which they leave their windows.${rest ? ` ${plural(rest, "other")} follow.` : ""}`,
    el(
      "div",
      { class: "toolbar" },
      el("input", {
        type: "search",
        placeholder: "Filter files",
        "aria-label": "Filter files",
        oninput: (event) => draw(event.target.value.trim().toLowerCase()),
      }),
    ),
    el(
      "div",
      { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of files" },
      el(
        "table",
        {},
        el("caption", { class: "unseen" }, "Files"),
        el("thead", {}, el("tr", {}, columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)))),
        body,
      ),
    ),
  );
}

show((contents) => {
  const parts = [readers(contents), windows(contents), blockers(contents), tallies(contents), files(contents)].filter(Boolean);
  return {
    top: head(pathTitle(contents.name), parts.map((part) => [part.id, part.querySelector("h2").textContent]), lines(contents.lines)),
    main: parts,
  };
});
