"""Graph of a program: its ops, the values between them, their source locations, and a tree that folds them.

All of it is read from the bytes of an artifact. Ops and values are numbers, and facts about them stand in columns, so
that a million ops take seconds; texts are made on demand.

>>> from vhlo_tools.graphs import program_graph
>>> graph = program_graph(artifact)  # doctest: +SKIP
>>> [graph.name(op) for op in range(len(graph))]  # doctest: +SKIP
['builtin.module', 'func.func', 'stablehlo.add', 'func.return']
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.graphs.columns import BlockSpan, Columns
    from vhlo_tools.graphs.dot import dot_lines
    from vhlo_tools.graphs.folding import MOST_MEMBERS, Group, GroupKind
    from vhlo_tools.graphs.graph import Edge, Node, OpName, ProgramGraph, Value, program_graph
    from vhlo_tools.graphs.mermaid import mermaid_lines
    from vhlo_tools.graphs.picturing import MOST_BOXES, Arrow, Box, BoxKind, Picture, picture_of
    from vhlo_tools.graphs.svg import svg_lines
else:
    __getattr__, __dir__ = lazy_exports(__name__)
