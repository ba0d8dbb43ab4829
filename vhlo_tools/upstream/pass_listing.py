"""List and describe the passes of a provider.

A provider only answers whether it has a pass of a given name, so ``passes.toml`` contains the names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from vhlo_tools.bindings import Toolbox
from vhlo_tools.upstream.own_passes import OWN_PASSES
from vhlo_tools.upstream.pipelines import PIPELINES

_OWN_GROUP: Final = "Of this program"
_WIDTH: Final = 52


@cache
def described_passes() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each pass, by name, in groups by subject."""
    text = files("vhlo_tools.upstream").joinpath("passes.toml").read_text(encoding="utf-8")
    groups: dict[str, Mapping[str, str]] = tomllib.loads(text)
    own = {name: each.description for name, each in OWN_PASSES.items()}
    own |= {name: f"Pipeline of {', '.join(each.split('{')[0] for each in parts)}" for name, parts in PIPELINES.items()}
    of_library = {name for group in groups.values() for name in group}
    return {**groups, _OWN_GROUP: {name: text for name, text in own.items() if name not in of_library}}


def known_passes() -> list[str]:
    """The provider may lack some of these passes."""
    return [name for group in described_passes().values() for name in group]


def list_passes(toolbox: Toolbox) -> str:
    return "\n".join(
        line
        for title, group in described_passes().items()
        for line in _group(title, list(_entries(toolbox, title, group)))
    )


def _group(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield f"{title}:"
        yield from entries
        yield ""


def _entries(toolbox: Toolbox, title: str, group: Mapping[str, str]) -> Iterator[str]:
    for name, description in sorted(group.items()):
        options = _own_options(name) if title == _OWN_GROUP else _options(toolbox, name)
        if options is None:
            continue
        yield f"  --{name}".ljust(_WIDTH) + f" - {description}"
        if options:
            yield f"      options: {options}"


def _own_options(name: str) -> str:
    own = OWN_PASSES.get(name)
    return " ".join(f"{key}={value}" for key, value in own.options.items()) if own and own.options else ""


def _options(toolbox: Toolbox, name: str) -> str | None:
    """Return the options with their defaults; ``None`` if the provider lacks the pass."""
    # With the name of an op as anchor, passes for other ops are rejected; `any` accepts all passes.
    said = toolbox.described(f"any({name})")
    if said is None:
        return None
    inner = said.removeprefix("any(").removesuffix(")")
    options = inner.removeprefix(name)
    if not inner.startswith(name) or not options.startswith("{"):
        return ""  # a pipeline, which is printed as its passes
    return " ".join(options[1:-1].split())


def version_text(toolbox: Toolbox) -> str:
    library = toolbox.provider.library
    return f"vhlo_tools {version('vhlo-tools')}, with {library.name} (StableHLO {library.current})\n"
