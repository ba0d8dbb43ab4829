"""Findings rendered for people, scripts and CI systems: text, JSON, GitHub's annotations, SARIF and JUnit.

A renderer is a function from a :class:`Scope` and answers, which may still be on their way, to pieces of the report.
Each is loaded when it is used.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Final

from vhlo_tools.report.fingerprints import Identity, fingerprints, identity_of
from vhlo_tools.report.model import Answer, Question, Scope, Verdict, is_refused
from vhlo_tools.report.places import path_from
from vhlo_tools.report.text import finding_lines, verdict_lines, wrapped

__all__ = [
    "FORMATS",
    "Answer",
    "Identity",
    "Question",
    "Scope",
    "Verdict",
    "finding_lines",
    "fingerprints",
    "identity_of",
    "is_refused",
    "path_from",
    "render",
    "verdict_lines",
    "wrapped",
]

# Of each format, the module and the renderer.
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
    """Return a report in pieces.

    Args:
        output_format: One of :data:`FORMATS`. Those of ``text``, ``jsonl`` and ``github`` say what there is to say of a
            program as soon as it is judged; the others are documents, and come in one piece.
        scope: What the report is about.
        answers: What the programs answer, in the order of ``scope.paths``; each is asked for when it is needed.
    """
    module, name = _RENDERERS[output_format]
    renderer: Callable[[Scope, Iterable[Answer]], Iterator[str]] = getattr(import_module(f"{__name__}.{module}"), name)
    return renderer(scope, answers)
