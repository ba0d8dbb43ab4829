"""Tools of maintainers of a specification: lint, import, survey, scaffold, truncation and description."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.spec_tools.checkout import survey_checkout
    from vhlo_tools.spec_tools.checkout_files import TableGen, find_tablegen
    from vhlo_tools.spec_tools.cutting import cut
    from vhlo_tools.spec_tools.description import Change, describe, diff
    from vhlo_tools.spec_tools.drafting import draft
    from vhlo_tools.spec_tools.linting import has_release, lint, write_release
    from vhlo_tools.spec_tools.new_version import plan_version
    from vhlo_tools.spec_tools.probing import survey_library
    from vhlo_tools.spec_tools.rules import RULES, Violation
    from vhlo_tools.spec_tools.survey import Comparison, Difference, Survey, Unread, compare, facts_of
    from vhlo_tools.spec_tools.toml_editing import Edit
    from vhlo_tools.spec_tools.version_changes import (
        NewAttribute,
        NewEntry,
        NewOp,
        Plan,
        parse_attribute,
        parse_case,
        parse_kind,
        parse_op,
        write_edits,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
