"""What the page asks of the toolkit: files opened, reported and retargeted, without MLIR. Run by Pyodide."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact, JaxContainer, inspect_bytes, outline
from vhlo_tools.files import Kind, recognise
from vhlo_tools.spec import known_releases, known_versions

_FILES: list[tuple[str, bytes]] = []


def answer(kind: str, values: str, data: Any = None) -> tuple[str, bytes | None]:
    """Return an answer as JSON, and its bytes if it has any; of an error what it says.

    Args:
        kind: What is asked for: the name of one of the functions below.
        values: The arguments, as JSON.
        data: The contents of a file.
    """
    arguments = json.loads(values)
    if data is not None:
        arguments["data"] = bytes(data)
    try:
        said, content = _KINDS[kind](**arguments)
    except vt.VhloToolsError as error:
        return json.dumps({"error": str(error)}), None
    return json.dumps(said), content


def _start() -> tuple[dict[str, Any], None]:
    """Return the versions of the toolkit and of Python, and targets to choose from."""
    made = tomllib.loads(Path("/package/made.toml").read_text(encoding="utf-8"))
    releases = [str(each) for each in known_releases() if each.package == "jaxlib"][::-1]
    targets = [str(each.version) for each in known_versions()][::-1]
    python = ".".join(map(str, sys.version_info[:3]))
    return {"version": made["version"], "python": python, "targets": [*targets, *releases]}, None


def _open(name: str, data: bytes) -> tuple[dict[str, Any], None]:
    """Keep a file, and return its number and the lines of its outline."""
    _opened(name, data)
    lines = [(line.label, line.text) for line in outline(inspect_bytes(data, name))]
    _FILES.append((name, data))
    return {"number": len(_FILES) - 1, "name": name, "outline": lines}, None


def _report(number: int) -> tuple[dict[str, Any], None]:
    """Return the page of a file."""
    name, data = _FILES[number]
    return {"html": vt.report(data, name=name).html}, None


def _retarget(number: int, target: str) -> tuple[dict[str, Any], bytes]:
    """Return a file at the version of a target."""
    name, data = _FILES[number]
    version = vt.resolve_target(target).version
    moved = _opened(name, data).retargeted(version)
    return {"version": str(version)}, bytes(moved)


def _opened(name: str, data: bytes) -> Artifact | JaxContainer:
    holds = JaxContainer if recognise(data, name) is Kind.JAX_EXPORT else Artifact
    return holds(data, name=name)


_KINDS: dict[str, Callable[..., tuple[dict[str, Any], bytes | None]]] = {
    "start": _start,
    "open": _open,
    "report": _report,
    "retarget": _retarget,
}
