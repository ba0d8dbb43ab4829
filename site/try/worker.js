// The worker in which Python runs: files go in, and texts and bytes come out, as messages.

import { loadPyodide, version as pyodide } from "./pyodide/pyodide.mjs";

/** Load Python with the package in an archive, and return the function `answer` of program.py. */
async function load() {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const [archive, source] = await Promise.all([
    fetch("vhlo_tools.zip").then((answer) => answer.arrayBuffer()),
    fetch("program.py").then((answer) => answer.text()),
  ]);
  python.unpackArchive(archive, "zip", { extractDir: "/package" });
  python.runPython("import sys; sys.path.insert(0, '/package')");
  const names = python.globals.get("dict")();
  python.runPython(source, { globals: names });
  return names.get("answer");
}

const loading = load();

addEventListener("message", async ({ data: { id, kind, data, ...values } }) => {
  try {
    const answer = await loading;
    const made = answer(kind, JSON.stringify(values), data === undefined ? undefined : new Uint8Array(data));
    const said = JSON.parse(made.get(0));
    const bytes = made.get(1);
    if (bytes !== undefined && bytes !== null) {
      said.data = bytes.toJs();
      bytes.destroy();
    }
    made.destroy();
    postMessage({ id, pyodide, ...said });
  } catch (error) {
    // Nothing that a file can cause: what the toolkit refuses is an answer.
    postMessage({ id, error: `Python failed: ${error.message.trim().split("\n").at(-1)}` });
  }
});
