"""Which tests run: those that every change waits for, or all; those of all rooms, or of rooms that changed.

A plugin of pytest, which ``tests/conftest.py`` loads: docs/developing.md says what its options and markers mean.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

_LENGTHS: Final = ("short", "long", "all")
#: Folders beside the package, by the room or the tests that they belong to.
_BESIDE: Final = {
    "dialect_specs": ("dialect",),
    "docs": ("docs", "site"),
    "site": ("site",),
    "scripts": ("scripts",),
    "examples": ("examples", "docs"),
    "benchmarks": ("benchmarks", "docs"),
}
#: Folders of tests whose subject is no single room: a change of any room can break them.
ACROSS: Final = frozenset(
    {"artifacts", "benchmarks", "conformance", "docs", "examples", "findings", "releases", "site"}
)
_left = pytest.StashKey[Counter[str]]()
_broken = pytest.StashKey[frozenset[str] | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection")
    group.addoption(
        "--length",
        choices=_LENGTHS,
        help="short: without what is marked `long`, and with a sample of what is marked `sample`, which is the default "
        "where no path is named; long: only what `short` leaves; all: both",
    )
    group.addoption(
        "--changed",
        nargs="?",
        const="",
        metavar="REVISION",
        help="the tests of rooms that differ from the main branch, or from REVISION, and of the rooms above them",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.length is None:
        is_named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.length = "all" if is_named else "short"
    if config.option.changed == "":
        config.option.changed = _main_branch(config.rootpath)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.changed is None or collection_path.parent != config.rootpath / "tests":
        return None
    wanted = _wanted(config)
    # Files beside the folders are about all rooms.
    is_above = collection_path.suffix == ".py" and wanted and wanted >= ACROSS
    return None if wanted is None or is_above or collection_path.name in wanted else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.length == "all":
        return
    short = set(sampled(item for item in items if not _is_long(item)))
    is_wanted = short.__contains__ if config.option.length == "short" else lambda item: item not in short
    left = [item for item in items if not is_wanted(item)]
    items[:] = filter(is_wanted, items)
    config.hook.pytest_deselected(items=left)
    rooms = Counter(item.path.relative_to(config.rootpath / "tests").parts[0] for item in left)
    config.stash[_left] = rooms
    if hasattr(config, "workeroutput"):
        config.workeroutput["left"] = dict(rooms)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take what a worker of xdist says that it left: all of them leave the same."""
    node.config.stash[_left] = Counter(getattr(node, "workeroutput", {}).get("left", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left = config.stash.get(_left, Counter())
    if config.option.length == "short" and left:
        rooms = ", ".join(f"{room} {count}" for room, count in left.most_common())
        terminalreporter.section("left for longer runs")
        terminalreporter.line(f"{left.total()} tests, which `--length long` runs: {rooms}")
    if config.option.changed is not None:
        wanted = _wanted(config)
        said = "all" if wanted is None else ", ".join(sorted(wanted)) or "none"
        terminalreporter.line(f"tests that differ from {config.option.changed}, or are above what does: {said}")


def _is_long(item: pytest.Item) -> bool:
    # Environments of releases take minutes to make.
    return any(item.get_closest_marker(name) for name in ("long", "releases"))


def sampled(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items of a short run: of a test marked ``sample(n)``, n items that are spread evenly over all."""
    items = list(items)
    of_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen: set[pytest.Item] = set()
    for same in of_test.values():
        marker = same[0].get_closest_marker("sample")
        count = min(marker.args[0], len(same)) if marker else len(same)
        chosen.update(same[at * len(same) // count] for at in range(count))
    return [item for item in items if item in chosen]


def _main_branch(root: Path) -> str:
    """Return the main branch, as it is known here: that of the server before our own."""
    for name in ("origin/main", "main"):
        if not subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", name], cwd=root, capture_output=True
        ).returncode:
            return name
    raise pytest.UsageError("--changed: there is no branch `main`; name a revision, as in `--changed=HEAD~1`")


def changed_files(root: Path, since: str) -> list[str]:
    """Return the files that differ from where this branch left a revision, with those that git does not know yet."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"--changed={since}: git {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout

    left = git("merge-base", since, "HEAD").strip()
    named = git("diff", "--name-only", "-z", left) + git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(filter(None, named.split("\0")))


def _wanted(config: pytest.Config) -> frozenset[str] | None:
    if _broken not in config.stash:
        files = changed_files(config.rootpath, config.option.changed)
        layers = layers_of((config.rootpath / "pyproject.toml").read_text(encoding="utf-8"))
        config.stash[_broken] = broken_by(files, layers, above=config.option.length != "long")
    return config.stash[_broken]


def layers_of(project: str) -> tuple[frozenset[str], ...]:
    """Return the rooms of each layer, from the highest down, as the contract in a ``pyproject.toml`` says."""
    contracts = tomllib.loads(project)["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["type"] == "layers")
    return tuple(frozenset(layer.split(" | ")) for layer in contract["layers"])


def broken_by(files: Iterable[str], layers: Sequence[frozenset[str]], *, above: bool = True) -> frozenset[str] | None:
    """Return the entries of ``tests/`` that a change of files can break; ``None`` for all of them.

    Args:
        files: The paths of files, in the checkout.
        layers: The rooms of each layer, from the highest down.
        above: Whether to return those of the rooms above too, and those whose subject is no single room.
    """
    known = {room for layer in layers for room in layer}
    rooms: set[str] = set()
    entries: set[str] = set()
    for file in files:
        top, _, rest = file.partition("/")
        entry = rest.partition("/")[0]
        if top == "vhlo_tools":
            rooms.add(entry.removesuffix(".py"))
        elif top == "tests" and (entry.startswith("test_") or entry in known | ACROSS):
            entries.add(entry)
        elif top in _BESIDE:
            rooms |= {each for each in _BESIDE[top] if each in known}
            entries.update(_BESIDE[top])
        elif top.endswith(".md"):
            entries.update(("docs", "site", "test_release.py"))
        elif top not in {".ci", ".github", "LICENSE"}:
            return None
    if rooms - known:  # Such as the `__init__` of the package.
        return None
    if rooms and not above:
        entries |= rooms
    elif rooms:
        lowest = max(at for at, layer in enumerate(layers) if layer & rooms)
        higher = {room for layer in layers[:lowest] for room in layer}
        entries |= rooms | higher | ACROSS
    return frozenset(entries)
