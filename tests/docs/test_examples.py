"""Every example in the documentation runs, or says why it does not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from support.corpus import ROOT
from support.documentation import FRAMEWORKS, LANGUAGES, PAGES, markers_of, page_name, pages_with, run_page

#: The frameworks that the development environment has.
INSTALLED = ("jax",)
#: A page may have so many examples that never run.
FEW = 3


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, INSTALLED)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_an_example(page: Path) -> None:
    blocks = [token for token in MarkdownIt().parse(page.read_text()) if token.type in ("fence", "code_block")]
    assert [token.info for token in blocks if token.info not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_few_examples_never_run(page: Path) -> None:
    markers = markers_of(page)
    # Tables that a script writes are marked too.
    assert len(re.findall("<!-- (?!table: )", page.read_text())) == len(markers)
    assert sum(marker.framework is None for marker in markers) <= FEW
    assert {marker.framework for marker in markers} <= {None, *FRAMEWORKS}


def test_examples_of_every_framework_run_somewhere() -> None:
    for framework in FRAMEWORKS:
        assert pages_with(framework)
        test = Path(__file__).parents[1] / "frontends" / framework / "test_documentation.py"
        assert f'pages_with("{framework}")' in test.read_text()


def test_the_two_commands_of_a_fresh_clone_are_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    for script in ("vhlo serialize examples/transformer_step.mlir --target ", "test\n```"):
        assert f"```sh\n./scripts/{script}" in text
        assert os.access(ROOT / "scripts" / script.split()[0], os.X_OK)


def test_the_hook_and_the_action_are_used_as_they_are_declared() -> None:
    tokens = MarkdownIt().parse((ROOT / "docs" / "ci.md").read_text())
    hooks, workflow = (yaml.safe_load(token.content) for token in tokens if token.info == "yaml")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [each["id"] for each in hooks["repos"][0]["hooks"]] == [hook["id"]]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert workflow["jobs"]["check"]["steps"][-1]["with"].keys() <= inputs.keys()
