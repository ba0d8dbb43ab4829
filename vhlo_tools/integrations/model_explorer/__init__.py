"""Artifacts in Model Explorer, as StableHLO or as VHLO, with introductions, findings and aliases as data of nodes.

``python -m vhlo_tools.integrations.model_explorer model.mlirbc`` opens an artifact of any version, also one that is
newer than the installed library: it is read from its bytes, without MLIR. In Model Explorer itself the extension is
loaded with ``model-explorer --extensions=vhlo_tools.integrations.model_explorer``, and chosen as the adapter of a file.

This package can be imported without Model Explorer, which the functions need.
"""

from vhlo_tools.integrations.model_explorer.conversion import Form, NodeDataKind, model_graphs, node_data
from vhlo_tools.integrations.model_explorer.main import configuration, visualize

__all__ = ["Form", "NodeDataKind", "configuration", "model_graphs", "node_data", "visualize"]
