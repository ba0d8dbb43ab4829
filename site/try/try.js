// The page: it hands files to the worker, where Python runs, and shows what comes back as text.

const element = (id) => document.getElementById(id);
const worker = new Worker("worker.js", { type: "module" });
const waiting = new Map();
let asked = 0;
let shown = null;

/** Ask the worker; the promise is of what it answers. */
function ask(kind, values = {}, transferred = []) {
  asked += 1;
  const id = asked;
  worker.postMessage({ id, kind, ...values }, transferred);
  return new Promise((resolve) => waiting.set(id, resolve));
}

worker.addEventListener("message", ({ data }) => {
  waiting.get(data.id)(data);
  waiting.delete(data.id);
});
worker.addEventListener("error", (event) => {
  say(`Python cannot be loaded: ${event.message ?? "the files of the page are not all there"}`);
});

function say(text) {
  element("status").textContent = text;
}

function add(parent, name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

/** Open files one after the other, and show the report of the first that can be read. */
async function open(files) {
  let failed = 0;
  for (const [number, file] of [...files].entries()) {
    say(`Reading ${file.name}, ${number + 1} of ${files.length}.`);
    const data = await file.arrayBuffer();
    const answer = await ask("open", { name: file.name, data }, [data]);
    if (answer.error) failed += 1;
    list(file.name, answer);
    if (!answer.error && shown === null) await show(answer);
  }
  const read = files.length - failed;
  say(`${read} of ${files.length} ${files.length === 1 ? "file was" : "files were"} read.`);
}

function list(name, answer) {
  const item = add(element("files"), "li", "");
  if (answer.error) {
    item.className = "error";
    add(item, "strong", name);
    add(item, "span", answer.error);
    return;
  }
  const button = add(item, "button", "", { type: "button" });
  answer.button = button;
  add(button, "strong", name);
  for (const [label, text] of answer.outline.slice(0, 2)) add(button, "span", `${label} ${text}`);
  button.addEventListener("click", () => show(answer));
}

async function show(answer) {
  shown = answer;
  for (const each of element("files").querySelectorAll("button")) each.removeAttribute("aria-current");
  answer.button.setAttribute("aria-current", "true");
  element("chosen").textContent = answer.name;
  element("moved").replaceChildren();
  element("move").hidden = element("shown").hidden = false;
  const { html, error } = await ask("report", { number: answer.number });
  if (answer !== shown) return;
  if (error) {
    add(element("moved"), "p", error, { class: "error" });
    return;
  }
  // A report is a page of its own, with a policy of its own: it is given to a frame that has nothing of this one.
  const frame = element("report");
  frame.addEventListener("load", () => frame.contentWindow.postMessage(html, "*"), { once: true });
  frame.src = "frame.html";
}

element("retarget").addEventListener("submit", async (event) => {
  event.preventDefault();
  const target = element("target").value;
  const moved = element("moved");
  moved.replaceChildren();
  const answer = await ask("retarget", { number: shown.number, target });
  if (answer.error) {
    add(moved, "pre", answer.error, { class: "error" });
    return;
  }
  const [, stem, suffix] = /^(.*?)(\.[^.]*)?$/.exec(shown.name);
  const name = `${stem}-${answer.version}${suffix ?? ""}`;
  const address = URL.createObjectURL(new Blob([answer.data], { type: "application/octet-stream" }));
  const line = add(moved, "p", "");
  add(line, "a", `Download ${name}`, { href: address, download: name });
  add(line, "span", ` (${answer.data.byteLength.toLocaleString("en")} bytes, StableHLO ${answer.version})`);
});

element("choose").addEventListener("change", (event) => open(event.target.files));
element("sample").addEventListener("click", async () => {
  const response = await fetch("keras_mlp.mlirbc");
  await open([new File([await response.blob()], "keras_mlp.mlirbc")]);
});

const drop = element("drop");
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
for (const kind of ["dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    if (kind === "drop" || event.relatedTarget === null) drop.classList.remove("over");
  });
}
document.addEventListener("drop", (event) => open(event.dataTransfer.files));

const started = await ask("start");
if (started.error) {
  say(started.error);
} else {
  say(`Ready: vhlo_tools ${started.version}.`);
  element("made").textContent = `vhlo_tools ${started.version}, Python ${started.python}, Pyodide ${started.pyodide}.`;
  for (const target of started.targets) add(element("targets"), "option", "", { value: target });
}
