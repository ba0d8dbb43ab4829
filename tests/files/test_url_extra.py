"""What needs no extra works without it, and what needs it says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

HIDDEN = """
import sys
for name in ("fsspec", "s3fs", "gcsfs", "adlfs"):
    sys.modules[name] = None
from vhlo_tools.cli.main import main
code = main(sys.argv[1:])
wanted = {"asyncio", "concurrent.futures", "vhlo_tools.files.objects", "vhlo_tools.files.objects"}
print(sorted(wanted.intersection(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def vhlo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDDEN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.sample(4)
@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "memory"])
@pytest.mark.parametrize(
    "command", ["inspect {url}", "retarget {url} --target 1.4.0 -o {url}", "check {url} --target 1.4.0"]
)
def test_the_extra_is_named(scheme: str, command: str) -> None:
    done = vhlo(*command.format(url=f"{scheme}://bucket/key").split())
    assert done.returncode == 2
    first = done.stderr.splitlines()[0]
    assert "pip install '.[remote]' in a clone of vhlo_tools" in first
    assert f"{scheme}://" in first
    assert "Traceback" not in done.stderr


def test_files_need_nothing_of_it(tmp_path: Path) -> None:
    file = EXAMPLES / "keras_mlp.mlirbc"
    done = vhlo("inspect", file.as_uri())
    assert (done.returncode, done.stderr) == (0, "[]\n")
    done = vhlo("retarget", file.as_uri(), "--target", "1.4.0", "-o", (tmp_path / "out.mlirbc").as_uri())
    assert done.returncode == 0
    assert (tmp_path / "out.mlirbc").stat().st_size > 0


def test_a_scheme_that_is_not_supported() -> None:
    done = vhlo("inspect", "https://user:hidden@host/a.mlirbc")
    assert done.returncode == 2
    assert "https:// is not supported: expected s3://" in done.stderr
    assert "hidden" not in done.stderr
