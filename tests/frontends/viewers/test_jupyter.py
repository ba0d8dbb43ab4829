"""The example notebook, run by a kernel and shown in JupyterLab."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from support.chromium import launched
from support.corpus import EXAMPLES

sys.path.insert(0, str(EXAMPLES))

NOTEBOOK = EXAMPLES / "tour.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook with its outputs, in a copy of the folder of examples."""
    folder = shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("notebook") / "examples")
    # In a process of its own, for it leaves an event loop running, in which no browser can be driven.
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--timeout=300", NOTEBOOK.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(folder, NOTEBOOK.name)


def test_the_notebook_is_what_its_script_makes() -> None:
    from make_notebook import notebook

    assert json.loads(NOTEBOOK.read_text()) == notebook()


def test_every_cell_shows_a_table_or_a_picture(executed: Path) -> None:
    notebook = nbformat.read(executed, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [output.data for cell in cells for output in cell.outputs if output.output_type == "execute_result"]
    assert len(shown) == len(cells) == 7
    *tables, picture = shown
    assert all(data["text/html"].startswith("<table>") for data in tables)
    assert picture["image/svg+xml"].startswith("<svg ")
    titles = [re.search(r"<caption[^>]*>([^<]*)", data["text/html"]) for data in tables]
    assert [title[1].partition(" ")[0] for title in titles if title][1:5] == [
        "requirements",
        "findings",
        "aliases",
        "differences",
    ]


@contextmanager
def jupyterlab(folder: Path, settings: Path) -> Iterator[str]:
    """Serve a folder with JupyterLab, which has settings of its own; give its address."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}"]
    environment = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    log = settings.parent / "jupyterlab.log"
    with log.open("wb") as said:
        # Into a file, for nobody would empty a pipe; and a group of its own, with its kernels, for all end with it.
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    try:
        address = f"http://localhost:{port}/lab"
        for _ in range(600):
            if address in log.read_text() or process.poll() is not None:
                break
            time.sleep(0.1)
        assert address in log.read_text(), log.read_text()
        yield address
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def settings_of(folder: Path, theme: str) -> Path:
    """Write the settings of JupyterLab: its theme, and that it asks for no news."""
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))
    return folder / "settings"


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_jupyterlab_shows_its_tables(executed: Path, theme: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path, theme)
    with jupyterlab(executed.parent, settings) as address, launched("localhost") as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(f"{address}/tree/{executed.name}?reset", wait_until="domcontentloaded")
        tables = page.locator(".jp-OutputArea-output table")
        tables.first.wait_for(timeout=90_000)
        page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached", timeout=30_000)
        assert "jaxlib 0.5.3" in tables.first.inner_text()
        if pictures := os.environ.get("VHLO_TOOLS_PICTURES"):
            page.screenshot(path=Path(pictures, f"notebook-{theme.split()[1].lower()}.png"))
