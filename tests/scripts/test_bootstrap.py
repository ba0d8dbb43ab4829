"""The bootstrap at work on a small project of its own, which builds itself, so that no network is needed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from bootstrap import LOCK_NAME, STAMP_NAME, Stamp, requirements_of, uv_settings, wanted_stamp
from uv import find_uv_bin

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[dependency-groups]
tools = []
"""
BACKEND = """
import pathlib, time, zipfile

INFO = "vhlo_tools-1.dist-info/"
METADATA = "Metadata-Version: 2.1\\nName: vhlo-tools\\nVersion: 1\\nProvides-Extra: dev\\n"

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(directory, config_settings=None, metadata_directory=None):
    time.sleep(0.5)  # long enough for a test to come in between
    name = "vhlo_tools-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(directory, name), "w") as wheel:
        wheel.writestr("vhlo_tools.pth", str(pathlib.Path.cwd()))
        wheel.writestr(INFO + "METADATA", METADATA)
        wheel.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(INFO + "entry_points.txt", "[console_scripts]\\nvhlo = tool:main\\n")
        wheel.writestr(INFO + "RECORD", "")
    return name
"""
#: Makes an environment as the module `venv` does, by a copy of one that it has made.
COPY = """
import pathlib, shutil, subprocess, sys
kept, venv = map(pathlib.Path, sys.argv[1:])
if not kept.exists():
    subprocess.run([sys.executable, "-I", "-m", "venv", str(kept)], check=True)
shutil.copytree(kept, venv, symlinks=True, dirs_exist_ok=True)
"""
MAKES = '"-I", "-m", "venv", str(venv)'
TOOL = "import sys\ndef main():\n    print('tool', sys.argv[1:])\n"


def without_variables() -> dict[str, str]:
    """Return this process's environment variables without those of the project, and without a network."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VHLO_TOOLS_")}
    return {**inherited, "PIP_NO_INDEX": "1"}


class Checkout:
    """A project with the scripts under test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "backend.py").write_text(BACKEND)
        (root / "tool.py").write_text(TOOL)

    def copy_environments(self, kept: Path) -> None:
        """Make environments by copies of one, which takes a tenth of the time."""
        script, copying = self.root / "scripts" / "bootstrap.py", self.root / "copy_environment.py"
        copying.write_text(COPY)
        text = script.read_text()
        assert MAKES in text
        script.write_text(text.replace(MAKES, f'"-I", str(ROOT / "copy_environment.py"), {str(kept)!r}, str(venv)'))

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        environment = {**without_variables(), **variables}
        command = [str(self.root / "scripts" / "vhlo"), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd="/", env=environment, text=True, stdout=pipe, stderr=pipe)

    def vhlo(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **variables)
        out, err = process.communicate()
        return process.returncode, out, err

    def write_stamp(self, stamp: Stamp) -> None:
        """Make the least that counts as an environment, with a stamp."""
        (self.venv / "bin").mkdir(parents=True)
        (self.venv / "bin" / "python").symlink_to(sys.executable)
        stamp.write(self.venv)


@pytest.fixture
def bare_checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a check out")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments") / "kept"


@pytest.fixture
def checkout(bare_checkout: Checkout, kept: Path) -> Checkout:
    bare_checkout.copy_environments(kept)
    return bare_checkout


@pytest.fixture
def uv() -> dict[str, str]:
    """What lets uv install, for tests whose subject is not what installs: pip takes seconds each time."""
    return {"VHLO_TOOLS_UV": find_uv_bin()}


@pytest.fixture
def path_without_python(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ["sh", "dirname", "cmp"]:
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    return str(folder)


def test_a_stamp_is_read_as_it_was_written(checkout: Checkout) -> None:
    stamp = wanted_stamp(checkout.root, frozenset({"dev", "jax"}))
    assert Stamp.read(checkout.venv) is None
    checkout.write_stamp(stamp)
    assert Stamp.read(checkout.venv) == stamp
    bare = replace(stamp, names=frozenset())
    bare.write(checkout.venv)
    assert Stamp.read(checkout.venv) == bare


def test_a_stamp_whose_python_is_gone_or_that_is_damaged_does_not_count(checkout: Checkout) -> None:
    checkout.write_stamp(wanted_stamp(checkout.root, frozenset()))
    (checkout.venv / STAMP_NAME).write_text("no\nstamp")
    assert Stamp.read(checkout.venv) is None
    wanted_stamp(checkout.root, frozenset()).write(checkout.venv)
    (checkout.venv / "bin" / "python").unlink()
    assert Stamp.read(checkout.venv) is None


def test_what_a_stamp_covers() -> None:
    made = Stamp(Path("/here"), "/bin/python3.11 3.11.7", frozenset({"dev"}), b"[project]")
    assert made.covers(made)
    assert made.covers(replace(made, names=frozenset()))
    assert not made.covers(replace(made, names=frozenset({"dev", "jax"})))
    assert not made.covers(replace(made, pyproject=b"[other]"))
    assert made.can_become(replace(made, pyproject=b"[other]"))
    for other in [replace(made, root=Path("/there")), replace(made, interpreter="/bin/python3.11 3.11.8")]:
        assert not made.covers(other)
        assert not made.can_become(other)


def test_the_life_of_an_environment(
    checkout: Checkout, uv: dict[str, str], path_without_python: str, tmp_path: Path
) -> None:
    code, out, err = checkout.vhlo("two words", "-x", "", **uv)
    assert (code, out) == (0, "tool ['two words', '-x', '']\n")  # progress is not on standard output
    assert "making" in err
    assert "installing" in err

    # A warm start needs no Python but the environment's, and edits of the code show.
    (checkout.root / "tool.py").write_text(TOOL.replace("'tool'", "'edited'"))
    assert checkout.vhlo(PATH=path_without_python) == (0, "edited []\n", "")

    # Another pyproject.toml is installed into the same environment.
    (checkout.root / "pyproject.toml").write_text(f"{PYPROJECT}# more\n")
    code, out, err = checkout.vhlo(**uv)
    assert (code, out) == (0, "edited []\n")
    assert "making" not in err
    assert "installing" in err

    # An extra and a dependency group are added once, and stay when the bare package is wanted.
    bootstrap = [sys.executable, str(checkout.root / "scripts" / "bootstrap.py"), "--venv", str(checkout.venv)]
    subprocess.run(
        [*bootstrap, "--with", "dev", "--with", "tools", "vhlo"], check=True, env={**without_variables(), **uv}
    )
    stamp = Stamp.read(checkout.venv)
    assert stamp is not None
    assert stamp.names == {"dev", "tools"}
    assert checkout.vhlo() == (0, "edited []\n", "")

    # A moved checkout does not run the code of the place where it was.
    checkout.root = checkout.root.rename(tmp_path / "moved")
    code, out, err = checkout.vhlo(**uv)
    assert (code, out) == (0, "edited []\n")
    assert "making" in err


def test_what_a_dependency_group_requires(checkout: Checkout) -> None:
    groups: dict[str, list[str | dict[str, str]]] = {"tools": ["one>=1"], "more": [{"include-group": "tools"}, "two"]}
    assert list(requirements_of("more", groups)) == ["one>=1", "two"]
    # The package itself is in none: it is on no index, and what has its name there would be installed.
    own = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text())["dependency-groups"]
    assert not [each for name in own for each in requirements_of(name, own) if each.startswith("vhlo")]
    assert "pytest>=8" in requirements_of("dev", own)

    text = PYPROJECT.replace("tools = []", 'tools = ["no-such-requirement"]')
    (checkout.root / "pyproject.toml").write_text(text)
    bootstrap = [sys.executable, str(checkout.root / "scripts" / "bootstrap.py"), "--venv", str(checkout.venv)]
    command = [*bootstrap, "--with", "tools", "vhlo"]
    done = subprocess.run(command, env=without_variables(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no-such-requirement" in done.stderr


def test_two_first_runs_at_once(bare_checkout: Checkout, uv: dict[str, str]) -> None:
    both = [bare_checkout.start(str(number), **uv) for number in range(2)]
    outputs = [process.communicate() for process in both]
    assert [out for out, _ in outputs] == ["tool ['0']\n", "tool ['1']\n"]
    assert (
        "".join(err for _, err in outputs).count("making") == 2
    )  # one makes, the other waits for "... that is making"


def test_a_killed_first_run_is_repaired(checkout: Checkout, uv: dict[str, str]) -> None:
    process = checkout.start(**uv)
    assert process.stderr is not None
    while "installing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    code, out, err = checkout.vhlo(**uv)
    assert (code, out) == (0, "tool []\n")
    assert "making" in err


def test_a_failing_install_is_told_without_a_traceback_and_is_repaired(checkout: Checkout) -> None:
    (checkout.root / "pyproject.toml").write_text(PYPROJECT.replace("[]", '["no-such-requirement"]', 1))
    code, out, err = checkout.vhlo()
    assert (code, out) == (2, "")
    assert "vhlo_tools: pip could not install the package" in err
    assert "Traceback" not in err
    (checkout.root / "pyproject.toml").write_text(PYPROJECT)
    assert checkout.vhlo()[:2] == (0, "tool []\n")


def test_uv_installs_in_place_of_pip(checkout: Checkout, uv: dict[str, str]) -> None:
    (checkout.root / "pyproject.toml").write_text(PYPROJECT.replace("[]", '["no-such-requirement"]', 1))
    code, out, err = checkout.vhlo(**uv)
    assert (code, out) == (2, "")
    assert "vhlo_tools: uv could not install the package" in err
    assert "Traceback" not in err
    (checkout.root / "pyproject.toml").write_text(PYPROJECT)
    assert checkout.vhlo(**uv)[:2] == (0, "tool []\n")
    # What uv cannot be told is left to pip.
    (checkout.root / "pyproject.toml").write_text(f"{PYPROJECT}# more\n")
    code, out, err = checkout.vhlo(**uv, PIP_PLATFORM="any")
    assert "pip installs, for uv knows nothing like its settings platform" in err


def test_uv_is_told_what_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://a.invalid/simple\nfind-links = /one\n  /two\n[install]\nno-index = no\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_CONSTRAINT", "a.txt")
    monkeypatch.setenv("PIP_INDEX_URL", "https://b.invalid/simple")
    monkeypatch.setenv("PIP_NO_INPUT", "1")
    told = uv_settings(sys.executable, 2)
    assert told is not None
    expected = {
        "DEFAULT_INDEX": "https://b.invalid/simple",
        "FIND_LINKS": "/one,/two",
        "CONSTRAINT": "a.txt",
        "NO_INDEX": "no",
    }
    assert {name: told[f"UV_{name}"] for name in expected} == expected
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    assert uv_settings(sys.executable, 2) is None


def test_a_machine_without_a_fitting_python(checkout: Checkout, path_without_python: str) -> None:
    code, out, err = checkout.vhlo(PATH=path_without_python)
    assert (code, out) == (2, "")
    assert "no Python 3.11 or newer with its venv and ensurepip modules was found" in err
    code, out, err = checkout.vhlo(VHLO_TOOLS_PYTHON="no-such-python")
    assert (code, out) == (2, "")
    assert "VHLO_TOOLS_PYTHON=no-such-python is not a Python 3.11 or newer" in err


def test_the_environment_of_another_checkout_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").symlink_to(sys.executable)
    (other / LOCK_NAME).touch()
    replace(wanted_stamp(checkout.root, frozenset()), root=tmp_path / "elsewhere").write(other)
    before = sorted(other.rglob("*"))
    link = tmp_path / "link"
    link.symlink_to(other)
    code, out, err = checkout.vhlo(VHLO_TOOLS_VENV=str(link))
    assert (code, out) == (2, "")
    assert f"{link} is a link to the environment of {tmp_path / 'elsewhere'}: remove the link" in err
    assert sorted(other.rglob("*")) == before


def test_a_folder_of_someone_else_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    code, out, err = checkout.vhlo(VHLO_TOOLS_VENV=str(tmp_path))
    assert (code, out) == (2, "")
    assert "was not made by this script" in err
    assert (tmp_path / "mine").read_text() == "mine"
