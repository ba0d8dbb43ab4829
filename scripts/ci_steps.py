"""The steps of CI as data: what each runs, which changes it can notice, and what it needs of a machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: The step that makes the environment of most others.
ENVIRONMENT: Final = "environment"

#: The program that makes all environments, in a fraction of the time that pip takes; a step installs it.
UV: Final = ROOT / "build" / "uv" / "bin" / "uv"

_VENV: Final = os.environ.get("VHLO_TOOLS_VENV", ".venv")
_PYTHON: Final = f"{_VENV}/bin/python"
_NEWEST: Final = ".venv-newest"


class LackingError(Exception):
    """A step cannot run on this machine; the message says what there is not."""


@dataclass(frozen=True)
class Step:
    """A command that must succeed."""

    name: str  # what it is called in tables, and by ``--only``
    command: Sequence[str]  # the command, run in the checkout
    #: of a longer step, patterns of the files whose change it can notice, beside what the steps notice that always run,
    #: which have none
    changes: Sequence[str] = ()
    cores: int = 1  # the cores that it keeps busy; 0 if it waits for the network
    after: Sequence[str] = (ENVIRONMENT,)  # the steps that must have passed before it starts
    #: gives the variables of its environment, beside those of this process, or raises `LackingError`. It is called when
    #: the steps that it waits for have passed
    variables: Callable[[], Mapping[str, str]] = dict
    #: whether its command takes ``--changed=REVISION``: with it, it is about what differs from that
    narrowed: bool = False
    full: bool = False  # whether it runs in full runs only, however little else a change concerns


def _output(*command: str) -> str:
    """Return what a command prints on its standard output; nothing if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def _seed() -> int:
    """Return a number that is the commit's."""
    return int(_output("git", "rev-parse", "HEAD")[:7] or "0", 16)


def _newest_python() -> dict[str, str]:
    """Return the variables by which `scripts/test` has the newest supported Python, which has the newest library."""
    oldest = int(_output(_PYTHON, "-c", "import sys; print(sys.version_info[1])"))
    for minor in range(13, oldest, -1):
        if interpreter := _output(_PYTHON, "scripts/interpreters.py", f"3.{minor}"):
            return {"VHLO_TOOLS_PYTHON": interpreter, "VHLO_TOOLS_VENV": _NEWEST}
    raise LackingError(f"there is no Python newer than 3.{oldest} that is supported")


def _programs(*names: str) -> dict[str, str]:
    if lacking := [each for each in names if shutil.which(each) is None]:
        raise LackingError(f"there is no {' and no '.join(lacking)}")
    return {}


def _browser() -> dict[str, str]:
    """Return no variables: pages have pictures that come with npm, and are seen in Chromium."""
    _programs("npm")
    if not _output(_PYTHON, "scripts/find_chromium.py"):
        raise LackingError("there is no Chromium, and it cannot be installed")
    _output(_PYTHON, "scripts/page_assets.py")
    return {}


def _tablegen() -> dict[str, str]:
    """Return the variables of tests that read a fork of VHLO, with LLVM's TableGen where it can be had."""
    found = _output(_PYTHON, "scripts/find_tablegen.py")
    return {"PATH": os.pathsep.join((os.environ["PATH"], found))} if found else {}


def _rooms(*names: str) -> tuple[str, ...]:
    """Return patterns of the files of some rooms, and of their tests."""
    return tuple(f"{folder}/{name}[./]*" for name in names for folder in ("vhlo_tools", "tests"))


_CODE: Final = ("vhlo_tools/*", "tests/*", "dialect_specs/*")
_BYTES: Final = _rooms("artifact", "bytecode")
_PROGRAMS: Final = _rooms("bindings", "conversion", "execution", "integrations", "program")
_STORES: Final = _rooms("artifact", "files", "stores", "verification")
_VERSIONS: Final = _rooms("aliasing", "compat", "gate", "spec", "spec_tools", "stores")
#: What decides about every environment.
_PROJECT: Final = ("pyproject.toml", "scripts/bootstrap.py")

#: What takes seconds shows a slip before minutes have gone.
_CHECKED: Final = (ENVIRONMENT, "lint", "format", "layers")
_CUT: Final = "scripts/cut_suite.py"
_CUT_CHANGES: Final = (*_BYTES, *_PROGRAMS, *_VERSIONS, "dialect_specs/*", _CUT, *_PROJECT)


def _own_environment(
    name: str,
    script: Sequence[str],
    changes: Sequence[str],
    cores: int = 2,
    variables: Callable[[], Mapping[str, str]] = dict,
) -> tuple[Step, Step]:
    """Return a step that makes an environment, gigabytes from the network for some, and one that runs tests in it."""
    made = f"{name}: environment"
    return (
        Step(made, (_PYTHON, *script[:1], "--prepare", *script[1:]), changes, 0, variables=variables),
        Step(name, (_PYTHON, *script), (*changes, *_PROJECT), cores, (made,), variables),
    )


STEPS: Final[Sequence[Step]] = (
    Step(
        "uv",
        (
            "sh",
            "-c",
            '[ -x build/uv/bin/uv ] || { "$0" -m venv build/uv && build/uv/bin/python -m pip install --quiet uv; }',
            sys.executable,
        ),
        cores=0,
        after=(),
    ),
    Step(ENVIRONMENT, ("./scripts/test", "--version"), after=("uv",)),
    Step("lint", (f"{_VENV}/bin/ruff", "check", ".")),
    Step("format", (f"{_VENV}/bin/ruff", "format", "--check", ".")),
    Step("layers", (f"{_VENV}/bin/lint-imports",)),
    Step("workflows", (_PYTHON, "scripts/check_workflows.py")),
    Step("types", (f"{_VENV}/bin/mypy",)),
    Step("types of users", (_PYTHON, "scripts/check_types.py")),
    Step("tests", ("./scripts/test",), cores=2, after=_CHECKED, variables=_tablegen),
    Step("wheel", (_PYTHON, "scripts/check_wheel.py"), after=_CHECKED),
    Step("site: environment", (_PYTHON, "scripts/build_site.py", "--prepare"), cores=0),
    Step("docs", (_PYTHON, "scripts/build_site.py"), after=(*_CHECKED, "site: environment")),
    # What follows are the longer steps.
    Step("long tests", ("./scripts/test", "--length=long"), _CODE, 2, _CHECKED, _tablegen, narrowed=True),
    Step(
        "sweep of the engines",
        # Other programs for each commit; what differs is printed with the seed.
        (_PYTHON, "tests/conformance/engine_sweep.py", "--count=5000", f"--seed={_seed()}", "--jobs=2"),
        _PROGRAMS,
        2,
        _CHECKED,
        full=True,
    ),
    Step("newest Python: environment", ("./scripts/test", "--version"), _CODE, 0, variables=_newest_python),
    Step(
        "newest Python",
        ("./scripts/test", "-m", "every_python"),
        (*_CODE, *_PROJECT),
        2,
        ("newest Python: environment", "tests"),
        _newest_python,
    ),
    Step(
        "long tests, newest Python",
        ("./scripts/test", "--length=long", "-m", "every_python and not releases"),
        _CODE,
        2,
        ("newest Python: environment", "tests"),
        _newest_python,
        narrowed=True,
    ),
    Step("data that end at 1.16", (_PYTHON, _CUT, "1.16.0", "--quick"), _CUT_CHANGES, 2, ("tests",)),
    *(
        Step(
            f"data that end at {version}",
            (f"{_NEWEST}/bin/python", _CUT, f"{version}.0", "--quick"),
            _CUT_CHANGES,
            2,
            ("newest Python: environment", "tests"),
            _newest_python,
        )
        for version in ("1.18", "1.20")
    ),
    *_own_environment(
        "lowest versions",
        ("scripts/lowest.py",),
        (*_PROGRAMS, *_rooms("aliasing", "cli", "compat", "spec", "spec_tools", "upstream")),
    ),
    Step(
        "compiled modules",
        (_PYTHON, "scripts/compiled.py"),
        (*_BYTES, "scripts/compiled.py", "scripts/build_hook.py", *_PROJECT),
        2,
        ("wheel",),
    ),
    *(
        step
        for name in ("jax", "torch", "tensorflow")
        for step in _own_environment(
            name, ("scripts/frontends.py", name), (*_PROGRAMS, *_rooms("files"), f"tests/frontends/{name}/*")
        )
    ),
    # Several gigabytes, as pip resolves torch: in full runs only.
    *(
        replace(step, full=True)
        for step in _own_environment(
            "torch-newest",
            ("scripts/frontends.py", "torch-newest"),
            (*_rooms("integrations"), "tests/frontends/torch_newest/*"),
        )
    ),
    *_own_environment(
        "scale",
        ("scripts/frontends.py", "scale"),
        (*_STORES, *_rooms("releases"), "tests/frontends/scale/*"),
        cores=1,  # It mostly waits.
    ),
    *_own_environment(
        "pages",
        ("scripts/frontends.py", "pages"),
        (*_rooms("viewing"), "examples/*", "tests/frontends/pages/*", "tests/frontends/viewers/*"),
        variables=_browser,
    ),
    Step(
        "site",
        (_PYTHON, "scripts/build_site.py", "--test-built"),
        ("docs/*", "site/*", "mkdocs.yml", "scripts/build_site.py", "tests/frontends/site/*"),
        after=("docs",),
        variables=_browser,
    ),
    # No CPython 3.14 is on every machine, but one comes with node's packages: what needs no bindings runs under it.
    Step(
        "Python 3.14 in Pyodide",
        (_PYTHON, "scripts/check_pyodide.py"),
        (*_BYTES, "scripts/check_pyodide.py", "scripts/bytes_core.py", *_PROJECT),
        variables=partial(_programs, "node", "npm"),
    ),
    Step(
        "hook and action",
        (_PYTHON, "scripts/check_hooks.py"),
        (
            *_rooms("gate", "cli"),
            ".pre-commit-hooks.yaml",
            "action.yml",
            "scripts/check_hooks.py",
            *_PROJECT,
        ),
    ),
    Step(
        "container",
        (_PYTHON, "scripts/check_container.py"),
        (*_rooms("gate", "cli"), "Dockerfile", ".dockerignore", "scripts/check_container.py", *_PROJECT),
    ),
)
