"""Completion candidates per parameter, by the names of arguments and options.

A parameter of a name takes the same values in every command, so one table serves all. It is imported only while a shell
asks.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from vhlo_tools.errors import VhloToolsError
from vhlo_tools.spec import (
    known_explanations,
    known_features,
    known_jax_releases,
    known_releases,
    known_specification,
    known_versions,
)

#: The type of an item that is not complete: no space follows it.
PARTIAL: Final = "partial"

Item = CompletionItem
Completer = Callable[[click.Context, str], Iterable[Item]]

_KEYWORDS: Final[Mapping[str, str]] = {
    "current": "the newest that the installed library writes",
    "minimum": "the oldest with compatibility guarantees",
    "WEEK_4": "the library's own answer for readers of 4 weeks ago",
    "WEEK_12": "the library's own answer for readers of 12 weeks ago",
    "MAX": "the library's own answer for the oldest readers",
    "NONE": "the library's own answer for its own readers",
}
_WINDOWS: Final[Mapping[str, str]] = {
    f"{said[0]}{said[1][0]}": f"the newest released {' '.join(said)} ago"
    for said in (("4", "weeks"), ("12", "weeks"), ("90", "days"), ("1", "year"), ("2", "years"))
}


def complete_parameters(command: click.Command) -> click.Command:
    """Add completion of parameters to a command, and to the commands of a group."""
    for each in getattr(command, "commands", {}).values():
        complete_parameters(each)
    for parameter in command.params:
        completer = COMPLETERS.get(f"{command.name} {parameter.name}") or COMPLETERS.get(parameter.name or "")
        known = isinstance(parameter.type, click.Choice | click.types.BoolParamType | _Completed)
        if completer is not None and not known:
            parameter.type = _Completed(parameter.type, completer)
    return command


if TYPE_CHECKING:
    _ParameterType = click.ParamType[Any]
else:
    # Old releases of click have the class without the type of its values.
    _ParameterType = click.ParamType


class _Completed(_ParameterType):
    def __init__(self, inner: click.ParamType[Any], completer: Completer) -> None:
        self.name = inner.name
        self._inner = inner
        self._completer = completer

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._inner.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
        return list(self._completer(ctx, incomplete))


def _matching(items: Iterable[Item], incomplete: str) -> Iterator[Item]:
    return (each for each in items if each.value.startswith(incomplete))


def _listed(members: Completer) -> Completer:
    """Return a completer of comma lists, which completes the last member."""

    def complete(context: click.Context, incomplete: str) -> Iterator[Item]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        for each in _matching(members(context, last), last):
            if each.value not in given:
                yield Item(f"{before}{comma}{each.value}", each.type, each.help)

    return complete


def _of(items: Callable[[], Iterable[Item]]) -> Completer:
    return lambda context, incomplete: _matching(items(), incomplete)


def _released(context: click.Context, incomplete: str) -> Iterator[Item]:
    """Yield releases: of a package either its name or, once that is there, its releases."""
    found: dict[str, list[Item]] = {}
    for each in known_releases():
        found.setdefault(each.package, []).append(Item(str(each), help=f"StableHLO {each.stablehlo}, {each.date}"))
    found["jax"] = [Item(str(each), help=f"jaxlib {each.jaxlib}, {each.date}") for each in known_jax_releases()]
    package, separator, _ = incomplete.partition("==")
    if separator:
        yield from reversed(found.get(package, []))
    else:
        yield from (Item(f"{each}==", PARTIAL, f"a release of {each}") for each in found)


def _targets(context: click.Context, incomplete: str) -> Iterator[Item]:
    """Yield what targets can be; of a package as :func:`_released` does."""
    if "==" in incomplete:
        yield from _released(context, incomplete)
        return
    yield from (Item(name, help=f"from the settings: {', '.join(each)}") for name, each in _named(context).items())
    yield from (Item(name, help=said) for name, said in {**_KEYWORDS, **_WINDOWS}.items())
    yield from _released(context, incomplete)
    yield from _versions()


def _versions() -> list[Item]:
    return [Item(str(each.version), help=f"{each.date}: {each.brought}") for each in reversed(known_versions())]


def _named(context: click.Context) -> Mapping[str, tuple[str, ...]]:
    """Return the named targets of the settings, which only `check` reads."""
    if context.command.name != "check" or context.params.get("isolated"):
        return {}
    from vhlo_tools.gate import load_settings

    config = context.params.get("config")
    # What is wrong with them is said when they are used.
    with suppress(VhloToolsError, OSError):
        return load_settings(config=Path(config) if config else None).targets
    return {}


def _features() -> list[Item]:
    return [Item(each.id, help=f"{each.introduced}: {each.title}") for each in known_features()]


def _explained() -> list[Item]:
    # An id that ends in * stands for many.
    others = [Item(each.id, help=each.text) for each in known_explanations() if not each.id.endswith("*")]
    return [*_features(), *others]


def _with_kinds() -> list[Item]:
    from vhlo_tools.gate import KINDS

    return [*_explained(), *(Item(kind, help=f"every finding of the kind {kind}") for kind in KINDS)]


def _relaxed() -> list[Item]:
    found = ((feature, feature.expansion("relaxed")) for feature in known_features())
    ids = [Item(feature.id, help=f"gives up {each.gives_up}") for feature, each in found if each]
    return [*ids, Item("all", help="all of these")]


def _entries() -> list[Item]:
    names = {each.name: each.kind for each in known_specification().entries()}
    return [Item(name, help=kind) for name, kind in names.items()]


def _providers() -> list[Item]:
    from vhlo_tools.bindings import PROVIDERS

    return [Item(each.prefix) for each in PROVIDERS]


def _engines() -> list[Item]:
    from vhlo_tools.api import ENGINE_CHOICES
    from vhlo_tools.compat import PLUGIN_ENGINE, installed_plugins

    plugins = [f"{PLUGIN_ENGINE}{each}" for each in installed_plugins()]
    return [Item(each) for each in (*ENGINE_CHOICES, *plugins) if each != "auto"]


def _revisions() -> list[Item]:
    """Return the branches and tags of the repository of the working directory, if it is in one."""
    command = ["git", "-c", "core.fsmonitor=false", "for-each-ref", "--format=%(refname:short)"]
    with suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=1, check=True)
        return [Item(each) for each in found.stdout.splitlines()]
    return []


_FILES: Final = (
    "hlo source other paths before after model inputs output report journal weights config picture manifest "
    "private_key public_key certificate certificate_chain signature_file tblgen baseline exclude against arguments "
    "reference"
)
_FOLDERS: Final = "cache_dir checkout folder include output_dir probe tests"
_UNKNOWN: Final = (
    "aliases as_of attributes backup_suffix brought call cases dask donated donors function handlers kinds "
    "max_device_memory max_nodes name only ops probe_function probe_ops signature types"
)

#: The completers, by the names of parameters, or of commands and parameters where that of a parameter says too little.
COMPLETERS: Final[Mapping[str, Completer]] = {
    **dict.fromkeys(("target", "readable_by", "wanted"), _listed(_targets)),
    **dict.fromkeys(("start", "end", "version"), _of(_versions)),
    **dict.fromkeys(("deny", "warn", "allow"), _of(_with_kinds)),
    **dict.fromkeys(("producers", "consumers", "confirm_with"), _listed(_released)),
    **dict.fromkeys(("read_with", "release", "compile_for"), _released),
    "explain": _of(_explained),
    "allow_relaxed": _listed(_of(_relaxed)),
    "feature": _of(_features),
    "show name": _of(_entries),
    "check against": _of(_revisions),
    "provider": _of(_providers),
    "engines": _listed(_of(_engines)),
    "platform": _of(lambda: [Item(each) for each in ("cpu", "cuda", "rocm", "tpu", "any")]),
    "horizon": _of(lambda: [Item(each) for each in ("30d", "90d", "6m", "1y")]),
    **dict.fromkeys(_FILES.split(), lambda context, incomplete: [Item(incomplete, "file")]),
    **dict.fromkeys(_FOLDERS.split(), lambda context, incomplete: [Item(incomplete, "dir")]),
}

#: Parameters of which nothing can be known: names within a program, new names, days and patterns.
NOTHING: Final = frozenset(_UNKNOWN.split())
