"""The example, which torch.export wrote."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.corpus import EXAMPLES
from support.xla_cpu import run_on_xla

import vhlo_tools as vt
from vhlo_tools.api import export_model

PATH = EXAMPLES / "torch_classifier.pt2"
IMAGE = torch.linspace(-1, 1, 256).reshape(1, 1, 16, 16)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "make_torch_classifier.py"), run_name="make_torch_classifier")


def test_it_is_what_its_script_makes(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / "make_torch_classifier.py"), "--out", str(tmp_path)]
    subprocess.run(command, check=True)
    assert (tmp_path / PATH.name).read_bytes() == PATH.read_bytes()


def test_it_names_no_path_of_the_machine_it_was_made_on() -> None:
    data = PATH.read_bytes()
    assert not [name for name in (b"/home/", b"/root/", b"/tmp/", b"site-packages") if name in data]


@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_it_computes_what_torch_does(script: dict[str, Any], weights: Any) -> None:
    expected = script["classifier"]()(IMAGE)
    newest = export_model(PATH, weights=weights)
    assert (newest.inputs, newest.outputs) == (("image",), ("probabilities", "attention"))
    oldest = newest.artifact.requirements().downgradable_to
    assert oldest == vt.Version("0.9.0")
    for target in ("current", oldest):
        model = export_model(PATH, target, weights=weights)
        results = run_on_xla(bytes(model.artifact), [IMAGE.numpy(), *model.weights.values()])
        for name, result in zip(model.outputs, results, strict=True):
            np.testing.assert_allclose(result, expected[name].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_locations_are_lines_of_the_script() -> None:
    text = vt.serialize(PATH).text(debug_info=True)
    assert '"examples/make_torch_classifier.py":43' in text
