"""The formats of reports, and their renderers, which are imported on use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Final

from vhlo_tools.report.model import Answer, Scope

__all__ = ["FORMATS", "render"]

# The module and the renderer of each format.
_RENDERERS: Final = {
    "text": ("text", "text_report"),
    "json": ("objects", "json_report"),
    "jsonl": ("objects", "json_lines"),
    "github": ("github", "github_report"),
    "sarif": ("sarif", "sarif_report"),
    "junit": ("junit", "junit_report"),
}
FORMATS: Final = tuple(_RENDERERS)


def render(output_format: str, scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Return the chunks of a report.

    Args:
        output_format: One of :data:`FORMATS`. ``text``, ``jsonl`` and ``github`` report each program as soon as it is
            evaluated; the others are documents of a single chunk.
        scope: The scope of the report.
        answers: The answers of the programs, in the order of ``scope.paths``; each is computed when it is needed.
    """
    module, name = _RENDERERS[output_format]
    renderer: Callable[[Scope, Iterable[Answer]], Iterator[str]] = getattr(
        import_module(f"vhlo_tools.report.{module}"), name
    )
    return renderer(scope, answers)
