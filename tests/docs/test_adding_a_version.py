"""docs/adding-a-version.md, typed as it stands in a copy of the checkout, for the version that comes next here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from support.specs_folder import ROOT, checkout_of, run_in_checkout

from vhlo_tools.spec import known_specification
from vhlo_tools.spec.specification import load_specification
from vhlo_tools.version import Version

PAGE = (ROOT / "docs" / "adding-a-version.md").read_text()
NEWEST = known_specification().newest
NEXT = Version(f"{NEWEST.major}.{NEWEST.minor + 1}.0")
#: What is typed, as the module that it runs.
MODULES = {
    "vhlo": ("vhlo_tools.cli.main",),
    "./scripts/test": ("pytest", "-q", "-p", "no:cacheprovider"),
}
LEFT = "remaining steps:\n"


def commands() -> list[tuple[list[str], str]]:
    """Return what the page types, and what it says comes of it, with the versions that are next to ours."""
    first = re.search(r"vhlo spec new-version (\S+)", PAGE)
    assert first is not None
    version = Version(first[1])
    before = Version(f"{version.major}.{version.minor - 1}.0")
    page = PAGE.replace(str(before), "BEFORE").replace(str(version), str(NEXT)).replace("BEFORE", str(NEWEST))
    found = []
    for console in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for command in re.split(r"^\$ ", console.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, _, expected = command.partition("\n")
            found.append((shlex.split(line), expected))
    return found


def run(checkout: Path, command: list[str]) -> CompletedProcess[str]:
    return run_in_checkout(checkout, "-m", *MODULES[command[0]], *command[1:])


def form(text: str) -> str:
    """Return a text without its numbers, which change with whatever else is in the data."""
    return re.sub(r"\d+(\.\d+)*", "N", text)


def matches(said: str, expected: str) -> bool:
    """Tell whether the lines of a text are those that are expected, ``...`` being any."""
    lines = ["(?:.*\n)*?" if line == "..." else re.escape(f"{form(line)}\n") for line in expected.splitlines()]
    return re.fullmatch("".join(lines), form(said)) is not None


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout_of(tmp_path_factory.mktemp("checkout"))


def test_the_page_says_what_happens(checkout: Path) -> None:
    typed = commands()
    assert [command[0] for command, _ in typed].count("vhlo") == 6
    for command, expected in typed:
        done = run(checkout, command)
        said = done.stdout + done.stderr
        assert matches(said, expected), f"{shlex.join(command)}\n{said}"
        assert done.returncode == (2 if "already exists" in expected else 0)
        if command[2:4] == ["new-version", str(NEXT)] and "--op" in command:
            check_what_is_left(said)

    specs = load_specification(checkout / "dialect_specs")
    assert specs.newest == NEXT
    new = {entry.name for entry in specs.entries() if entry.min == NEXT and entry.kind in ("op", "type", "case")}
    assert new == {"erf_v1", "abs_v2", "f4E3M0_v1", "f6E4M1_v1", "precision_v1.LOWEST"}


def check_what_is_left(said: str) -> None:
    (left,) = re.findall(rf"```\n({LEFT}.*?)```", PAGE, re.DOTALL)
    assert matches(said[said.index(LEFT) :], left)


def test_what_it_writes_is_all_that_is_changed(checkout: Path) -> None:
    """Whoever scaffolds a version touches these files and no others."""
    fresh = checkout_of(checkout / "fresh")
    before = {path: path.read_bytes() for path in fresh.rglob("*") if path.is_file() and not path.is_symlink()}
    command, expected = commands()[0]
    assert run(fresh, command).returncode == 0
    touched = {
        str(path.relative_to(fresh))
        for path in fresh.rglob("*")
        if path.is_file() and not path.is_symlink() and before.get(path) != path.read_bytes()
    }
    assert touched == set(re.findall(r"^(?:changed|wrote) (\S+)$", expected, re.MULTILINE))
    assert len(touched) == 9
