"""Without TensorFlow and Keras, which no environment for developing has: what imports, and what is to be installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.integrations import keras, tensorflow


def test_functions_say_which_extra_they_need() -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: tensorflow.export(abs), "exporting a TensorFlow function needs tensorflow"),
        (lambda: tensorflow.export_saved_model("folder"), "reading a SavedModel needs tensorflow"),
        (lambda: keras.export(None), "exporting a Keras model needs keras"),
    ]
    for call, message in calls:
        with pytest.raises(vt.MissingExtraError) as caught:
            call()
        assert str(caught.value).startswith(f"{message}, which is not installed: pip install '.[")
    assert "tensorflow" not in sys.modules
    assert "keras" not in sys.modules


def test_a_saved_model_needs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(b"\x12\x00")
    assert main(["serialize", str(saved), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "vhlo: reading a SavedModel needs tensorflow, which is not installed: "
        "pip install '.[tensorflow]' in a clone of vhlo_tools\n"
    )
    assert not (tmp_path / "out").exists()
    with pytest.raises(vt.MissingExtraError):
        vt.serialize(saved)
    assert main(["check", str(saved), "--target", "1.0.0"]) == 2
    assert "pip install '.[tensorflow]' in a clone of vhlo_tools" in " ".join(capsys.readouterr().out.split())
