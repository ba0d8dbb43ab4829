"""Print the program of Chromium, or of Chrome, which the tests of pages drive.

It is the one that ``VHLO_TOOLS_CHROMIUM`` names, or one on ``PATH``; where there is none, Debian's package is
installed with ``apt-get``, which takes root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

#: The variable that names a program of one's own.
CHROMIUM: Final = "VHLO_TOOLS_CHROMIUM"
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STEPS: Final = (
    ("apt-get", "update", "-qq"),
    ("apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"),
)


class MissingChromiumError(Exception):
    """There is no Chromium on this machine; the message says why none was installed, and what to do."""


def find_chromium() -> Path | None:
    """Return the program, if there is one.

    Raises:
        MissingChromiumError: If a program is named that is not there.
    """
    named = os.environ.get(CHROMIUM)
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingChromiumError(f"{CHROMIUM} names {named}, which is no program on this machine")
        return Path(found)
    return next((Path(found) for found in map(shutil.which, NAMES) if found), None)


def install_chromium() -> Path:
    """Return the program, installed now if it is not there.

    Raises:
        MissingChromiumError: If there is none and none can be installed.
    """
    found = find_chromium()
    if found is not None:
        return found
    advice = f"install it, or name the program in {CHROMIUM}"
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise MissingChromiumError(f"Chromium is not installed, and only root installs it, with apt-get: {advice}")
    for step in STEPS:
        variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            subprocess.run(step, env=variables, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True, timeout=1200)
        except subprocess.SubprocessError as error:
            raise MissingChromiumError(f"Chromium is not installed, and could not be: {error}: {advice}") from error
    found = find_chromium()
    if found is None:
        raise MissingChromiumError(f"the package chromium brought no program named {' or '.join(NAMES)}: {advice}")
    return found


def main() -> int:
    """Find or install the program; return 1 if neither can be done here."""
    try:
        print(install_chromium())
    except MissingChromiumError as error:
        print(f"find_chromium: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
