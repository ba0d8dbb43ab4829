"""Try the pre-commit hook and the GitHub action for real: each must pass a good program, and fail on a blocked one.

Both install the package of this checkout, as it is now, into environments of their own. Run it with the Python of the
development environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from action_steps import run_action

ROOT: Final = Path(__file__).resolve().parent.parent
GOOD: Final = ROOT / "examples" / "saxpy.mlir"
BLOCKED: Final = ROOT / "tests" / "programs" / "features" / "tan.mlir"
SETTINGS: Final = 'target = ["fleet"]\n\n[targets]\nfleet = ["1.3.0"]\n'
# What a commit needs on a machine where nobody has said who they are.
IDENTITY: Final = ("-c", "user.name=check", "-c", "user.email=check@localhost", "-c", "commit.gpgsign=false")


class HookError(Exception):
    """The hook or the action did not do what it must."""


def check_hook(checkout: Path, work: Path) -> None:
    """Install the hook of ``checkout`` in a repository made in ``work``, and run it."""
    repository = new_repository(work / "repository")
    revision = git(checkout, "rev-parse", "HEAD")
    (repository / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {checkout}\n  rev: {revision}\n  hooks:\n  - id: vhlo-check\n", encoding="utf-8"
    )
    for program, expected in ((GOOD, 0), (BLOCKED, 1)):
        shutil.copy(program, repository / "model.mlir")
        git(repository, "add", "--all")
        done = run(repository, sys.executable, "-m", "pre_commit", "run", PRE_COMMIT_HOME=str(work / "pre-commit"))
        expect(done, expected, "tan, since 1.4.0" if expected else "Passed", "the pre-commit hook")


def check_action(checkout: Path, work: Path) -> None:
    """Run the steps of the action of ``checkout`` in a repository made in ``work``."""
    repository, temporary = new_repository(work / "workspace"), work / "runner"
    for number, (program, expected) in enumerate(((GOOD, 0), (BLOCKED, 1))):
        shutil.copy(program, repository / "model.mlir")
        folder = temporary / "install" if not number else temporary / "again"
        if number:
            # The second run has what the first installed.
            folder.mkdir()
            (folder / "vhlo-tools").symlink_to(temporary / "install" / "vhlo-tools")
        inputs = {"paths": "model.mlir", "sarif-file": "report.sarif", "python": sys.executable}
        done = run_action(checkout / "action.yml", repository, folder, inputs, skip=number)
        said = subprocess.CompletedProcess(["action.yml"], done.code, done.log)
        expect(said, expected, "::error file=model.mlir" if expected else "", "the action")
        if done.outputs != {"exit-code": str(expected), "sarif-file": "report.sarif"}:
            raise HookError(f"the action has the outputs {done.outputs}")
        if not (repository / "report.sarif").is_file() or f"(exit code {expected})" not in done.summary:
            raise HookError(f"the action wrote no report, or this summary: {done.summary!r}")


def copy_checkout(place: Path) -> Path:
    """Copy the files of this checkout as they are, changes included, and commit them."""
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    for name in filter(None, listed):
        # Files of tests are many, and no part of the package.
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return commit_all(place)


def new_repository(place: Path) -> Path:
    """Make a repository with settings."""
    place.mkdir(parents=True)
    (place / "vhlo-tools.toml").write_text(SETTINGS, encoding="utf-8")
    return commit_all(place)


def commit_all(place: Path) -> Path:
    """Make a repository of a folder, with one commit."""
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, *IDENTITY, "commit", "--quiet", "--message", "Begin")
    return place


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return what it printed."""
    done = run(folder, "git", *arguments)
    if done.returncode:
        raise HookError(f"git {arguments[0]} failed ({done.returncode}):\n{done.stdout}")
    return done.stdout.strip()


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder``, away from any repository that we are called from."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | variables
    return subprocess.run(
        command,
        cwd=folder,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def expect(done: subprocess.CompletedProcess[str], code: int, said: str, what: str) -> None:
    """Raise unless a process exited with ``code`` and said ``said``."""
    if done.returncode != code or said not in done.stdout:
        raise HookError(f"{what} exited with {done.returncode}, expected {code} and {said!r}; it said:\n{done.stdout}")


def main() -> int:
    """Try both at once, as most of the time goes into two installations."""
    # Compiling what is installed would take as long as installing it.
    os.environ["PIP_NO_COMPILE"] = "1"
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-hooks-") as name, ThreadPoolExecutor() as pool:
        work = Path(name)
        try:
            checkout = copy_checkout(work / "checkout")
            tried = {what: pool.submit(check, checkout, work) for what, check in CHECKS.items()}
            for what, trial in tried.items():
                trial.result()
                print(f"{what} passes a good program and fails on a blocked one", flush=True)
        except HookError as error:
            print(f"check_hooks: {error}", file=sys.stderr)
            return 1
    return 0


CHECKS: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    "the pre-commit hook": check_hook,
    "the action": check_action,
}


if __name__ == "__main__":
    sys.exit(main())
