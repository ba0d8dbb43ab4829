"""Builds the site into ``build/site``, to be read from disk, and follows every link in it.

``build_site.py [--prepare | --serve | --test | --test-built]`` works in an environment of its own, `.venv-site` in the
checkout, which it makes. A warning of the build or a link that leads nowhere fails it. ``--serve`` shows the site while
its pages are edited, ``--test`` runs the tests of the built site, in a headless Chromium.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUILT: Final = ROOT / "build" / "site"
TESTS: Final = Path("tests") / "frontends" / "site"
GROUPS: Final = ("site", "browser-test", "frontend-test")


def bootstrap() -> list[str]:
    """Return the command that makes the environment, if it is not there, and runs what follows in it."""
    groups = [word for group in GROUPS for word in ("--with", group)]
    return [sys.executable, "-I", "scripts/bootstrap.py", "--venv", str(ROOT / ".venv-site"), *groups]


def run(*command: str) -> int:
    """Run a command in the environment; return its exit code."""
    # The first keeps an announcement of another generator out of the output.
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([*bootstrap(), *command], cwd=ROOT, env=variables, check=False).returncode


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - named by the base
        """Say nothing of requests."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that go before they have all of an answer."""


@contextmanager
def served() -> Iterator[str]:
    """Serve the built site on this machine, and give its address."""
    with _Server(("127.0.0.1", 0), partial(_Handler, directory=str(BUILT))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def broken_links() -> list[str]:
    """Return what linkchecker finds of the links between pages, each with the page that has it.

    It is given the site by a server, for it follows links of files as the user nobody, who may not read them.
    """
    with served() as address:
        command = ["linkchecker", "--no-status", "--output=csv", "--config=site/linkcheckerrc", f"{address}index.html"]
        variables = {**os.environ, "no_proxy": "127.0.0.1"}
        checked = subprocess.run(
            [*bootstrap(), *command], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
    if checked.returncode not in (0, 1):
        raise SystemExit(f"build_site: linkchecker failed, with exit code {checked.returncode}:\n{checked.stderr}")
    rows = (line for line in io.StringIO(checked.stdout) if not line.startswith("#"))
    found = csv.DictReader(rows, delimiter=";")
    broken = (
        f"{row['parentname']}: {row['urlname']}: {row['result']} {row['warningstring']}".replace(address, "")
        for row in found
    )
    return sorted(broken)


def main() -> int:
    """Build the site and check it; or only make the environment, or show the site, or test it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prepare", action="store_true", help="only make the environment")
    what.add_argument("--serve", action="store_true", help="show the site, and build it again after edits")
    what.add_argument("--test", action="store_true", help="build the site, check it and run its tests")
    what.add_argument("--test-built", action="store_true", help="run the tests of the site as it was built")
    options, arguments = parser.parse_known_args()
    if options.prepare:
        return run("python", "--version")
    if options.serve:
        return run("mkdocs", "serve", *arguments)
    tests = ("python", "-m", "pytest", "-p", "no:cacheprovider", "-q", str(TESTS), *arguments)
    if options.test_built:
        return run(*tests)
    # Not quietly, for then warnings are neither shown nor counted.
    if code := run("mkdocs", "build", "--strict", *([] if options.test else arguments)):
        print("build_site: the site has warnings or errors, see above", file=sys.stderr)
        return code
    pages = sum(1 for _ in BUILT.rglob("*.html"))
    if broken := broken_links():
        print("\n".join(broken), file=sys.stderr)
        print(f"build_site: {len(broken)} broken links in {pages} pages", file=sys.stderr)
        return 1
    print(f"{BUILT}: {pages} pages, no warning and no broken link")
    return run(*tests) if options.test else 0


if __name__ == "__main__":
    sys.exit(main())
