"""The other provider: torch-mlir, in an environment without jaxlib."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import ROOT
from support.release_environments import run_in

pytestmark = pytest.mark.releases


def test_a_session_with_torch_mlir() -> None:
    session = run_in("torch-mlir==20261001", Path(__file__).with_name("torch_mlir_session.py"), ROOT)
    assert session.returncode == 0, session.stderr.decode()
    # Two examples reach all 32 versions up to 1.19.0, one the 19 since 1.1.0.
    assert session.stdout.decode().strip() == "torch-mlir 20261001: 83 artifacts compared"
    assert session.stderr == b""
