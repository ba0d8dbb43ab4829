"""Formats of reports, and their renderers, which are imported on use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Final

from vhlo_tools.gate.report_model import Answer, Scope, Summary
from vhlo_tools.printable import json_record, json_text, printable

# The module and the renderer of each format.
_RENDERERS: Final = {
    "text": ("text_report", "text_report"),
    "concise": ("text_report", "concise_report"),
    "json": ("report_model", "json_report"),
    "jsonl": ("report_model", "json_lines"),
    "github": ("formats", "github_report"),
    "gitlab": ("formats", "gitlab_report"),
    "sarif": ("sarif", "sarif_report"),
    "junit": ("formats", "junit_report"),
}
FORMATS: Final = tuple(_RENDERERS)

#: Renders answers in the named format.
Renderer = Callable[[str, Scope, Iterable[Answer]], Iterator[str]]


def render(output_format: str, scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """``junit`` is one chunk; others report each program once it is evaluated."""
    module, name = _RENDERERS[output_format]
    renderer: Callable[[Scope, Iterable[Answer]], Iterator[str]] = getattr(
        import_module(f"vhlo_tools.gate.{module}"), name
    )
    return renderer(scope, answers)


def render_statistics(output_format: str, scope: Scope, answers: Iterable[Answer]) -> Iterator[str]:
    """Return the number of findings of each feature, as ``text`` or ``json``."""
    summary = Summary()
    for answer in answers:
        summary.add(answer)
    rows = summary.statistics()
    if output_format == "json":
        yield f"{json_text(json_record({'statistics': rows}), indent=2)}\n"
        return
    # Imported here because few reports are statistics.
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    shown = [{key: printable(str(value)) for key, value in row.items()} for row in rows]
    widths = {key: max((len(row[key]) for row in shown), default=0) for key in ("count", "level", "feature")}
    for row in shown:
        level, feature = (row[key].ljust(widths[key]) for key in ("level", "feature"))
        head = f"{row['count']:>{widths['count']}}  {level}  {feature}  "
        yield f"{head}{textwrap.shorten(row['title'], max(width - len(head), 20), placeholder='...')}\n"
    if not scope.quiet:
        yield f"{summary}{scope.left_out}\n"
