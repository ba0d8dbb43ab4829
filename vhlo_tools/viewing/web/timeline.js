// The time line: versions on an axis, what the program has at the version that brought it, and who reads it.

import { el, section, sliding, svg, table } from "./elements.js";

/** The labels, which stay where the rest slides, and their characters: less beside a narrow drawing. */
const [LABELS, MOST] = window.innerWidth <= 640 ? [148, 18] : [300, 42];
const LEFT = 12;
const STEP = 27;
const ROW = 30;
const RIGHT = 40;
/** In place of a version, for a program that is no artifact yet. */
const NOT_WRITTEN = -2;

/** Make the section of the time line. */
export function timeline(contents, { onFeature }) {
  const lead = contents.newer || sentence(contents);
  return section(
    "timeline",
    "Time line",
    lead,
    drawing(contents),
    key(),
    features(contents, onFeature),
    releases(contents),
  );
}

/** Say what the signs of the drawing mean. */
function key() {
  const sign = (...shapes) => svg("svg", { class: "timeline", width: 22, height: 14, "aria-hidden": "true" }, shapes);
  const signs = [
    [sign(svg("circle", { cx: 11, cy: 7, r: 5.5, class: "feature" })), "brought by this version"],
    [sign(svg("circle", { cx: 11, cy: 7, r: 5, class: "feature bytes" })), "only these bytes have it"],
    [sign(svg("path", { d: "M8 4l6 6m0 -6l-6 6", class: "blocks" })), "blocks here"],
    [sign(svg("line", { x1: 1, x2: 21, y1: 7, y2: 7, class: "expansion exact" })), "exact expansion"],
    [sign(svg("line", { x1: 2, x2: 21, y1: 7, y2: 7, class: "expansion" })), "relaxed expansion"],
    [sign(svg("circle", { cx: 11, cy: 7, r: 5, class: "reads" })), "release reads it"],
    [sign(svg("circle", { cx: 11, cy: 7, r: 4.5, class: "refuses" })), "release does not"],
  ];
  return el("p", { class: "key" }, signs.map(([picture, text]) => el("span", {}, picture, text)));
}

function sentence({ versions, written, readable_since: since, downgradable_to: down, expandable_to: expand }) {
  const version = (number) => (number < 0 ? "a version newer than the data" : versions[number][0]);
  const reach =
    expand >= 0 && expand < down ? ` Exact expansions take it down to ${version(expand)}.` : "";
  if (written === NOT_WRITTEN) {
    return `It is no artifact yet. It can be written for ${version(down)} and later.${reach}`;
  }
  return (
    `It was written for StableHLO ${version(written)}. These bytes are read by ${version(since)} and later; ` +
    `it can be written for ${version(down)} and later.${reach}`
  );
}

function drawing(contents) {
  const { versions } = contents;
  const packages = [...new Set(contents.releases.map((each) => each.package))];
  const known = contents.features.filter((each) => each.introduced >= 0);
  const width = LEFT + STEP * versions.length + RIGHT;
  const x = (number) => LEFT + STEP * number + STEP / 2;
  const top = 92;
  const releasesTop = top + known.length * ROW + (known.length ? 18 : 0);
  const height = releasesTop + packages.length * 26 + 16;
  const parts = [...axis(versions, x, top, height), ...marks(contents, x, top, height)];
  const label = (y, text, ...rest) => svg("text", { x: LABELS - 12, y: y + 4, class: "label", "text-anchor": "end" }, text, ...rest);
  const labels = [label(43, "can be written for")];
  known.forEach((feature, row) => {
    const y = top + row * ROW + 10;
    parts.push(...featureRow(feature, x, y, contents));
    const shown = label(y, short(feature.title), svg("title", {}, `${feature.title}: ${feature.count} times`));
    shown.classList.toggle("bytes", !feature.needed);
    labels.push(shown);
  });
  packages.forEach((name, row) => {
    const y = releasesTop + row * 26 + 10;
    labels.push(label(y, name));
    // Several releases may have one version: it is read if one of them reads.
    const at = new Map();
    for (const each of contents.releases) {
      if (each.package === name && each.stablehlo >= 0) at.set(each.stablehlo, [...(at.get(each.stablehlo) ?? []), each]);
    }
    for (const [number, held] of at) {
      const reads = held.some((each) => each.reads);
      const names = held.length > 1 ? `${held[0].release} to ${held.at(-1).release}` : held[0].release;
      parts.push(
        svg(
          "circle",
          { cx: x(number), cy: y, r: 5, class: reads ? "reads" : "refuses" },
          svg("title", {}, `${name} ${names}: ${reads ? "reads it" : "does not read it"}`),
        ),
      );
    }
  });
  const said = "Versions from left to right; features at the version that brought them; releases that read the program. The tables below say the same.";
  const size = (wide) => ({ class: "timeline", width: wide, height, viewBox: `0 0 ${wide} ${height}` });
  return sliding(
    "Drawing of the time line",
    svg("svg", { ...size(LABELS), "aria-hidden": "true" }, labels),
    svg("svg", { ...size(width), role: "img", "aria-label": said }, parts),
    width,
  );
}

function axis(versions, x, top, height) {
  const parts = [];
  let year = "";
  versions.forEach(([version, day], number) => {
    parts.push(svg("line", { x1: x(number), x2: x(number), y1: top - 6, y2: height - 12, class: "grid" }));
    parts.push(
      svg(
        "text",
        { x: 0, y: 0, class: "version", transform: `translate(${x(number) + 4} ${top - 12}) rotate(-60)` },
        version.replace(/\.0$/, ""),
        svg("title", {}, `${version}, ${day}`),
      ),
    );
    if (day.slice(0, 4) !== year) {
      year = day.slice(0, 4);
      parts.push(svg("text", { x: x(number) - 8, y: 22, class: "year" }, year));
      parts.push(svg("line", { x1: x(number) - STEP / 2, x2: x(number) - STEP / 2, y1: 10, y2: 34, class: "year" }));
    }
  });
  return parts;
}

/** Make the bands and lines of the versions that matter: where it can be written, and what it was written for. */
function marks(contents, x, top, height) {
  const { versions, written, downgradable_to: down, expandable_to: expand, target } = contents;
  const last = x(versions.length - 1) + STEP / 2;
  const band = (from, to, kind, text) => [
    svg("rect", { x: from, y: 40, width: Math.max(to - from, 0), height: 6, rx: 3, class: kind }, svg("title", {}, text)),
  ];
  const line = (number, kind, text) => [
    svg("line", { x1: x(number), x2: x(number), y1: 36, y2: height - 12, class: `mark ${kind}` }),
    svg("text", { x: x(number) + 5, y: height - 2, class: `mark ${kind}` }, text),
  ];
  return [
    ...(expand >= 0 && expand < down ? band(x(expand) - STEP / 2, x(down) - STEP / 2, "expandable", "with exact expansions") : []),
    ...(down >= 0 ? band(x(down) - STEP / 2, last, "reachable", "it can be written for these versions") : []),
    ...(written >= 0 ? line(written, "written", "written for") : []),
    ...(target >= 0 && target !== written ? line(target, "target", "target") : []),
  ];
}

/** Return the versions at which a feature lets nothing be written, and those at which what is written is not read. */
function blockedAt(contents, id) {
  const at = (side) => contents.blocked.flatMap((sides, number) => (sides[side].includes(id) ? [number] : []));
  return { refused: at(0), overlooked: at(1) };
}

/** Say successive versions as a range. */
function span(contents, numbers) {
  const [first, last] = [contents.versions[numbers[0]][0], contents.versions[numbers.at(-1)][0]];
  return numbers.length > 1 ? `${first} to ${last}` : first;
}

function featureRow(feature, x, y, contents) {
  const { versions } = contents;
  const parts = [];
  const at = x(feature.introduced);
  for (const each of feature.expansions) {
    if (each.to < 0 || !feature.needed) continue;
    parts.push(
      svg(
        "line",
        { x1: x(each.to), x2: at, y1: y, y2: y, class: `expansion ${each.effect}` },
        svg("title", {}, `${each.effect} expansion, down to ${versions[each.to][0]}`),
      ),
    );
  }
  const { refused, overlooked } = blockedAt(contents, feature.id);
  for (const [numbers, kind] of [[refused, "refused"], [overlooked, "overlooked"]]) {
    for (const number of feature.needed ? numbers : []) {
      parts.push(
        svg(
          "path",
          { d: `M${x(number) - 3} ${y - 3}l6 6m0 -6l-6 6`, class: `blocks ${kind}` },
          svg("title", {}, `${feature.title}: ${kind} at ${versions[number][0]}`),
        ),
      );
    }
  }
  parts.push(
    svg("line", { x1: at, x2: x(versions.length - 1) + STEP / 2, y1: y, y2: y, class: `life${feature.needed ? "" : " bytes"}` }),
    svg(
      "circle",
      { cx: at, cy: y, r: 6.5, class: `feature${feature.needed ? "" : " bytes"}` },
      svg("title", {}, `${feature.title}: since ${versions[feature.introduced][0]}`),
    ),
  );
  return parts;
}

function short(text) {
  return text.length > MOST ? `${text.slice(0, MOST - 1)}…` : text;
}

function features(contents, onFeature) {
  if (!contents.features.length) return el("p", { class: "good" }, "Nothing in it is newer than the oldest version.");
  const version = (number) => (number < 0 ? "unknown" : contents.versions[number][0]);
  const rows = contents.features.map((feature) => [
    el("span", { id: `feature-${feature.id}` }, feature.title, el("code", { class: "id" }, feature.id)),
    version(feature.introduced),
    feature.count.toLocaleString("en"),
    feature.needed ? remedies(feature, version, contents) : "Only these bytes have it: a retarget writes it in the older way.",
    feature.ops ? el("button", { type: "button", class: "link", onclick: () => onFeature(feature.id) }, "show") : "",
  ]);
  return el(
    "div",
    { class: "under" },
    el("h3", {}, "What not every version has"),
    table("Features", [["Feature", ""], ["Since", ""], ["Count", "number"], ["For older consumers", "wide"], ["Ops", ""]], rows),
  );
}

function remedies(feature, version, contents) {
  const { refused, overlooked } = blockedAt(contents, feature.id);
  const parts = [
    refused.length ? el("span", { class: "blocked" }, `Cannot be written for ${span(contents, refused)}.`) : "",
    overlooked.length ? el("span", { class: "blocked" }, `Written, but not read, at ${span(contents, overlooked)}.`) : "",
    el("span", { class: "remedy" }, feature.remedy)];
  for (const each of feature.expansions) {
    const limits = each.limits ? `; not for ${each.limits}` : "";
    const given = each.gives_up ? `; gives up ${each.gives_up}` : "";
    parts.push(
      el("span", { class: "expands" }, el("b", {}, each.effect), ` expansion down to ${version(each.to)}${limits}${given}`),
    );
  }
  if (feature.inexpressible) parts.push(el("span", { class: "expands" }, `No expansion: ${feature.inexpressible}`));
  return el("span", {}, parts);
}

function releases(contents) {
  const packages = [...new Set(contents.releases.map((each) => each.package))];
  const rows = packages.map((name) => {
    const held = contents.releases.filter((each) => each.package === name);
    const reading = held.filter((each) => each.reads);
    const newest = held.at(-1);
    const dated = (each) => (each ? [each.release, el("span", { class: "day" }, each.date)] : "none");
    return [
      name,
      dated(reading[0]),
      dated(reading.at(-1)),
      newest.reads ? "yes" : el("strong", {}, "no"),
    ];
  });
  return el(
    "div",
    { class: "under" },
    el("h3", {}, contents.written === NOT_WRITTEN ? "Which releases it can be written for" : "Which releases read it"),
    table(
      `Releases as of ${contents.today}`,
      [["Package", ""], ["Oldest that reads it", ""], ["Newest that reads it", ""], ["The newest release does", ""]],
      rows,
    ),
  );
}
