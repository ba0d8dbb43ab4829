"""``vhlo spec probe``: determine the VHLO of the installed library by questions in child processes."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.probing.surveying import survey_library
else:
    __getattr__, __dir__ = lazy_exports(__name__)
