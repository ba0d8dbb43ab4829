"""Views of programs and stores: graphs, drawings, and pages of HTML."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.viewing.assembly import ELK, Page, assembled, layout_worker
    from vhlo_tools.viewing.columns import BlockSpan, Columns
    from vhlo_tools.viewing.drawing import dot_lines, mermaid_lines, svg_lines
    from vhlo_tools.viewing.folding import MOST_MEMBERS, Group, GroupKind
    from vhlo_tools.viewing.graph import Edge, OpName, ProgramGraph, Value, program_graph
    from vhlo_tools.viewing.picturing import MOST_BOXES, Arrow, Box, BoxKind, Picture, picture_of
    from vhlo_tools.viewing.programs import DifferenceContents, ProgramContents, difference_contents, program_contents
    from vhlo_tools.viewing.store_pages import StoreContents, results_contents, store_contents
else:
    __getattr__, __dir__ = lazy_exports(__name__)
