"""Surveys of other sources of VHLO, their comparison with a specification, and drafts of missing entries."""

from vhlo_tools.dialect.survey.comparison import Comparison, Difference, compare
from vhlo_tools.dialect.survey.drafting import draft
from vhlo_tools.dialect.survey.facts import Survey, Unread, facts_of

__all__ = ["Comparison", "Difference", "Survey", "Unread", "compare", "draft", "facts_of"]
