"""Rendering of findings for people, scripts and CI systems: text, JSON, GitHub annotations, GitLab, SARIF and JUnit.

A renderer is a function from a :class:`Scope` and answers, which may be computed lazily, to chunks of the report.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.reporting.fingerprinting import Identity, fingerprints, identity_of
    from vhlo_tools.reporting.model import Answer, Question, Scope, Verdict, is_refused
    from vhlo_tools.reporting.places import path_from
    from vhlo_tools.reporting.rendering import FORMATS, Renderer, render, render_statistics
    from vhlo_tools.reporting.summary import Summary
    from vhlo_tools.reporting.text import finding_lines, verdict_lines, wrapped
else:
    __getattr__, __dir__ = lazy_exports(__name__)
