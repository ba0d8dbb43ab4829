"""What a release says of itself: one version everywhere, a changelog, a citation, workflows that cannot do too much."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import vhlo_tools

ROOT = Path(vhlo_tools.__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: A heading of a version in the changelog, with its day.
HEADING = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def project_version() -> str:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert isinstance(version, str)
    return version


def released() -> list[tuple[str, str]]:
    return HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def test_the_changelog_begins_with_this_version() -> None:
    assert released()[0][0] == project_version()


def test_the_changelog_goes_back_in_time() -> None:
    versions = [Version(version) for version, _ in released()]
    days = [date.fromisoformat(day) for _, day in released()]
    assert versions == sorted(set(versions), reverse=True)
    assert days == sorted(days, reverse=True)


def test_the_changelog_has_kinds_of_changes_only() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert "## [Unreleased]" in text


def test_the_citation_names_this_version_and_its_day() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["date-released"]) == released()[0]


def test_the_documentation_names_this_version() -> None:
    for name in ("ci.md", "developing.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        named = re.findall(r"(?:rev: v|vhlo-tools@v|vhlo, version )(\d+\.\d+\.\d+)", text)
        assert set(named) == {project_version()}, name


def check_jsonschema(schema: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_citation_is_of_its_schema(tmp_path: Path) -> None:
    schema = "vendor.citation-file-format"
    citation = ROOT / "CITATION.cff"
    assert check_jsonschema(schema, citation).returncode == 0
    other = tmp_path / "CITATION.cff"
    other.write_text(citation.read_text(encoding="utf-8").replace("authors:", "writers:"), encoding="utf-8")
    assert check_jsonschema(schema, other).returncode == 1


def test_workflows_are_of_their_schema() -> None:
    done = check_jsonschema("vendor.github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout
    assert {path.stem for path in WORKFLOWS} == {"ci", "release", "site"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_right_that_it_does_not_name(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"].get("contents", "read") == "read", name
        written = {right for right, kind in job["permissions"].items() if kind == "write"}
        # Only what publishes shows who it is, and does nothing else that could be misled.
        assert written <= ({"id-token", "pages"} if name == "publish" else set()), name
        if name == "publish":
            assert not any("run" in step for step in job["steps"])
            assert job["environment"]["name"] in ("pypi", "github-pages")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_their_version(path: Path) -> None:
    used = re.findall(r"uses: (?!\./)(\S+)(.*)", path.read_text(encoding="utf-8"))
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_a_tag_alone_publishes() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads `on` as a truth value.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert set(workflow["jobs"]["publish"]["needs"]) == {"test", "smoke"}


def test_the_image_is_made_of_what_it_is_given() -> None:
    """What the Dockerfile copies is let through by .dockerignore: all that the wheel is built of."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    given = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    assert {"pyproject.toml", "README.md", "LICENSE", "vhlo_tools", "dialect_specs", "scripts/*.py"} <= given
    assert all(any(ROOT.glob(each)) for each in given)
    instructions = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert 'ENTRYPOINT ["vhlo"]' in instructions
    assert re.findall(r"^USER (.*)$", instructions, re.MULTILINE) == ["10001:10001"]
