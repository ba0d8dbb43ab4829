"""Artifacts in Model Explorer, as StableHLO or as VHLO, with introductions, findings and aliases as data of nodes.

``model-explorer --extensions=vhlo_tools.integrations.model_explorer model.mlirbc`` opens an artifact of any version,
also one that is newer than the installed library: it is read from its bytes, without MLIR.

This package can be imported without Model Explorer, which the functions need.
"""

from vhlo_tools.integrations.model_explorer.conversion import Form, model_graphs
from vhlo_tools.integrations.model_explorer.node_data import NodeDataKind, node_data

__all__ = ["Form", "NodeDataKind", "model_graphs", "node_data"]
