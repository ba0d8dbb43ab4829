"""HTML pages for people: one file each, which needs no network and shows nothing of a program as markup."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.pages.assembly import Page, assembled
    from vhlo_tools.pages.difference_pages import DifferenceContents, difference_contents
    from vhlo_tools.pages.layout_engine import ELK, has_layout_engine, layout_worker
    from vhlo_tools.pages.program_rows import ProgramContents
    from vhlo_tools.pages.programs import program_contents
    from vhlo_tools.pages.store_pages import StoreContents, results_contents, store_contents
else:
    __getattr__, __dir__ = lazy_exports(__name__)
