"""Option that names the folder of a specification, for the commands of ``vhlo spec``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from vhlo_tools.spec import known_specification, load_specification


def specs_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option, and pass the loaded specification to the command."""

    @click.option(
        "--specs",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder with the specification, laid out as dialect_specs/; files may be missing. By default that of "
        "vhlo_tools.",
    )
    @wraps(function)
    def run(folder: Path | None, **arguments: Any) -> Any:
        return function(specs=load_specification(folder) if folder else known_specification(), **arguments)

    return run
