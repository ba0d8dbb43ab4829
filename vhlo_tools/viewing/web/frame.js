// What all pages have: head, foot, and what is said when something is wrong.

import { announce, el, slide } from "./elements.js";
import { readContents } from "./contents.js";
import { themeButton } from "./theme.js";

/** Make the head: the title as elements, parts of the page as [id, title], and what follows the title. */
export function head(title, parts, ...rest) {
  return el(
    "header",
    {},
    el(
      "div",
      { class: "top" },
      el("p", { class: "brand" }, "vhlo report"),
      el("nav", { "aria-label": "Parts of the page" }, parts.map(([id, name]) => el("a", { href: `#${id}` }, name))),
      themeButton(),
    ),
    el("h1", {}, title),
    ...rest,
  );
}

/** Return a path with its folders set back. */
export function pathTitle(path) {
  const words = path.split("/");
  return [words.length > 1 ? el("span", { class: "folder" }, `${words.slice(0, -1).join("/")}/`) : "", el("wbr"), words.at(-1)];
}

/** Make the list of the lines that matter. */
export function lines(all) {
  return el("dl", { class: "lines" }, all.map(([what, said]) => el("div", {}, el("dt", {}, what), el("dd", {}, said))));
}

/** Fill the page: `make` gets the contents, and returns the elements of head and main part, and what to do then. */
export async function show(make) {
  const page = document.getElementById("page");
  try {
    const contents = await readContents();
    const { top, main, then } = make(contents);
    const notice = document.getElementById("layout").dataset.notice;
    page.replaceChildren(
      el("a", { class: "skip", href: "#main" }, "Skip to the contents"),
      top,
      el("main", { id: "main" }, ...main.filter(Boolean)),
      el(
        "footer",
        {},
        el("p", {}, `Made by vhlo_tools on ${contents.today}. The page asks nothing of the network.`),
        notice ? el("p", {}, notice) : "",
      ),
      el("p", { id: "status", class: "unseen", role: "status", "aria-live": "polite" }),
    );
    slide();
    performance.mark("ready");
    document.documentElement.dataset.ready = "yes";
    announce("The page is ready");
    await then?.();
  } catch (error) {
    page.replaceChildren(el("p", { class: "notice", role: "alert" }, `The page cannot be shown: ${error.message}`));
    throw error;
  }
}
