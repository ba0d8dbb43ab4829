"""The command line as a process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def vhlo(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "vhlo_tools.cli.main", *arguments], capture_output=True, **options)
