"""The page in which one tries the toolkit, in Chromium: files are dropped, shown and retargeted, and none leaves it."""

from __future__ import annotations

import base64
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from build_try import build
from support.chromium import WatchedPage, launched, opened, violations_of
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.cli.main import main

LOCAL = "127.0.0.1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, built."""
    folder = tmp_path_factory.mktemp("try") / "try"
    build(folder)
    return folder


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder; give its address, and the list of what was asked for, with methods."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - named by the base
            asked.append(str(arguments[0]))

    server = ThreadingHTTPServer((LOCAL, 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOCAL}:{server.server_port}/index.html", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_ten_releases() -> dict[str, bytes]:
    """Return artifacts of ten releases of jaxlib, by a name for each."""
    found: dict[str, bytes] = {}
    for name, data in corpus_files(ordinary=False):
        found.setdefault(f"{name.partition('/')[0]}.mlirbc", data)
    assert len(found) >= 10
    return dict(list(found.items())[:10])


def drop(watched: WatchedPage, files: dict[str, bytes]) -> None:
    """Drop files on the page, as a hand does with a mouse."""
    watched.page.evaluate(
        """(files) => {
          const held = new DataTransfer();
          for (const [name, text] of files)
            held.items.add(new File([Uint8Array.from(atob(text), (char) => char.charCodeAt(0))], name));
          for (const kind of ["dragenter", "dragover", "drop"])
            document.getElementById("drop").dispatchEvent(
              new DragEvent(kind, { dataTransfer: held, bubbles: true, cancelable: true }));
        }""",
        [[name, base64.b64encode(data).decode()] for name, data in files.items()],
    )


def wait_for(watched: WatchedPage, said: str) -> None:
    watched.page.get_by_role("status").filter(has_text=said).wait_for(timeout=120_000)


def wait_for_report(watched: WatchedPage, name: str) -> None:
    """Wait until the report of a file is shown, and its picture drawn: one that is left before aborts its worker."""
    frame = watched.page.frame_locator("#report")
    frame.locator("h1").filter(has_text=name).wait_for(timeout=60_000)
    frame.locator("html[data-drawn]").wait_for(state="attached", timeout=60_000)


def test_ten_releases_and_a_damaged_file(
    site: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    files = of_ten_releases()
    damaged = (EXAMPLES / "keras_mlp.mlirbc").read_bytes()[:-100]
    with served(site) as (address, asked), launched(LOCAL) as browser, opened(browser, address) as watched:
        page = watched.page
        wait_for(watched, "Ready")
        loaded = len(asked)
        drop(watched, {**files, "damaged.mlirbc": damaged})
        wait_for(watched, "10 of 11 files were read.")
        shown = page.locator("#files button")
        assert [each.partition("\n")[0] for each in shown.all_inner_texts()] == list(files)
        # What the command line says of the same bytes.
        (tmp_path / "damaged.mlirbc").write_bytes(damaged)
        assert main(["inspect", str(tmp_path / "damaged.mlirbc")]) == 2
        (error,) = page.locator("#files .error span").all_inner_texts()
        said = capsysbinary.readouterr().err.decode().removeprefix(f"vhlo: {tmp_path}/").strip()
        assert error == said

        first, *others = list(files)[:4]
        wait_for_report(watched, first)
        for name in others:
            shown.filter(has_text=name).click()
            wait_for_report(watched, name)

        name, data = list(files.items())[3]
        page.get_by_label("Write").fill("0.9.0")
        with page.expect_download(timeout=60_000) as download:
            page.get_by_role("button", name="Retarget").click()
            page.get_by_role("link", name="Download").click()
        (tmp_path / name).write_bytes(data)
        assert main(["retarget", str(tmp_path / name), "--target", "0.9.0", "-o", str(tmp_path / "moved.mlirbc")]) == 0
        assert Path(download.value.path()).read_bytes() == (tmp_path / "moved.mlirbc").read_bytes()
        assert download.value.suggested_filename == f"{name.removesuffix('.mlirbc')}-0.9.0.mlirbc"

        # Since Python was there the server was asked for the frame of reports, and for nothing that tells of a file.
        assert set(asked[loaded:]) == {"GET /frame.html HTTP/1.1", "GET /frame.js HTTP/1.1"}
        watched.check()


def test_a_refusal_says_why(site: Path) -> None:
    with served(site) as (address, _), launched(LOCAL) as browser, opened(browser, address) as watched:
        wait_for(watched, "Ready")
        drop(watched, {"step.mlirbc": bytes(vt.serialize(EXAMPLES / "transformer_step.mlir", target="1.9.0"))})
        wait_for(watched, "1 of 1 file was read.")
        page = watched.page
        for target, said in (("1.0.0", "needs StableHLO 1.1.0"), ("nothing==1", "no releases of nothing")):
            page.get_by_label("Write").fill(target)
            page.get_by_role("button", name="Retarget").click()
            page.locator("#moved .error").filter(has_text=said).wait_for(timeout=60_000)
        watched.check()


def test_a_file_of_jax_export_stays_one(site: Path, tmp_path: Path) -> None:
    source = EXAMPLES / "jax_store" / "loss.jax_export"
    with served(site) as (address, _), launched(LOCAL) as browser, opened(browser, address) as watched:
        wait_for(watched, "Ready")
        drop(watched, {source.name: source.read_bytes()})
        wait_for(watched, "1 of 1 file was read.")
        watched.page.get_by_label("Write").fill("1.13.0")
        with watched.page.expect_download(timeout=60_000) as download:
            watched.page.get_by_role("button", name="Retarget").click()
            watched.page.get_by_role("link", name="Download").click()
        moved = tmp_path / "moved.jax_export"
        assert main(["retarget", str(source), "--target", "1.13.0", "-o", str(moved)]) == 0
        assert Path(download.value.path()).read_bytes() == moved.read_bytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site: Path, scheme: str) -> None:
    with (
        served(site) as (address, _),
        launched(LOCAL) as browser,
        opened(browser, address, scheme="light" if scheme == "light" else "dark") as watched,
    ):
        wait_for(watched, "Ready")
        watched.page.get_by_role("button", name="Take an example").click()
        wait_for(watched, "1 of 1 file was read.")
        watched.page.frame_locator("#report").locator("h1").wait_for(timeout=60_000)
        assert violations_of(watched.page) == []
        if pictures := os.environ.get("VHLO_TOOLS_PICTURES"):
            watched.page.screenshot(path=Path(pictures, f"try-{scheme}.png"), full_page=True)


def test_the_archive_holds_the_package_and_no_more(site: Path) -> None:
    with zipfile.ZipFile(site / "vhlo_tools.zip") as archive:
        names = set(archive.namelist())
    assert {"vhlo_tools/__init__.py", "vhlo_tools/dialect_specs/versions.toml", "made.toml"} <= names
    assert not [name for name in names if name.endswith(".pyc") or "bindings" in name]
