"""The extension that Model Explorer loads: it takes the module ``main`` of the package that ``--extensions`` names.

Two adapters show an artifact as StableHLO and as VHLO; providers of node data colour the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from model_explorer import (
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)
from model_explorer.config_editor import TextInputConfigEditor
from model_explorer.node_data_provider import NodeDataProviderFilter

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import get_provider
from vhlo_tools.compat import resolve_target
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model_explorer.conversion import PURPOSE, Form, NodeDataKind, model_graphs, node_data
from vhlo_tools.spec import minimum_version
from vhlo_tools.viewing import ProgramGraph, program_graph

if TYPE_CHECKING:
    from vhlo_tools.version import Version

if TYPE_CHECKING:
    # Model Explorer says no types; its classes register those that are derived from them.
    class Adapter:
        """A class that opens files."""

    class NodeDataProvider:
        """A class that computes data of nodes."""

else:
    from model_explorer import Adapter, NodeDataProvider

#: The suffixes of files with artifacts: artifacts themselves, and those of jax.export.
_SUFFIXES: Final = ["mlirbc", "bc", "vhlo", "jax_export"]
_STABLEHLO: Final = "vhlo_tools_stablehlo"
_VHLO: Final = "vhlo_tools_vhlo"
_TARGET: Final = "target"
_KINDS: Final[dict[str, NodeDataKind]] = {
    "vhlo_tools_introductions": "introductions",
    "vhlo_tools_findings": "findings",
    "vhlo_tools_aliases": "aliases",
}
#: The name of each, what it shows, and its icon.
_SHOWN: Final = (
    ("Introductions", "The StableHLO version that brought each op, with all that it uses", "history"),
    ("Findings for a target", "What stands in the way of a version or a release", "report"),
    ("Aliases and donors", "The outputs that may be written over arguments, and donated arguments", "link"),
)
_FILTER: Final = NodeDataProviderFilter(modelFileExts=_SUFFIXES, adapterIds=[_STABLEHLO, _VHLO])


@lru_cache(maxsize=4)
def _graph(path: str, stamp: tuple[int, int]) -> ProgramGraph:
    """``stamp``, the time and size of the file, tells that it was replaced."""
    return program_graph(Artifact.open(path))


def _graph_of(path: str) -> ProgramGraph:
    status = Path(path).stat()
    return _graph(path, (status.st_mtime_ns, status.st_size))


def _metadata(form: str, name: str, description: str) -> Any:
    return AdapterMetadata(id=form, name=f"{name} (vhlo_tools)", description=description, fileExts=_SUFFIXES)


class StableHloAdapter(Adapter):
    """Shows an artifact with the names, types and attributes of StableHLO."""

    metadata: ClassVar[Any] = _metadata(
        _STABLEHLO,
        "Portable artifact as StableHLO",
        "StableHLO portable artifacts of any version, read from their bytes",
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        return {"graphs": model_graphs(_graph_of(model_path), "stablehlo")}


class VhloAdapter(Adapter):
    """Shows an artifact with the names, types and attributes that it has in the file."""

    metadata: ClassVar[Any] = _metadata(
        _VHLO, "Portable artifact as VHLO", "StableHLO portable artifacts of any version, as they are in the file"
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        return {"graphs": model_graphs(_graph_of(model_path), "vhlo")}


class NodeData(NodeDataProvider):
    """Computes introductions, findings and aliases for the nodes of a graph."""

    metadata: ClassVar[Any] = [
        NodeDataProviderMetadata(id=kind, name=name, description=description, icon=icon, filter=_FILTER)
        for kind, (name, description, icon) in zip(_KINDS, _SHOWN, strict=True)
    ]

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Only findings ask the user for something: their target."""
        if _KINDS[provider_id] != "findings":
            return GetConfigEditorsResult(configEditors=[])
        asked = TextInputConfigEditor(
            id=_TARGET,
            label="Target",
            description="A version, a window or a release: 1.9.0, 12w, jaxlib==0.4.31",
            required=True,
            defaultValue=str(minimum_version()),
        )
        return GetConfigEditorsResult(configEditors=[asked])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any
    ) -> NodeDataProviderResult:
        """Return the data of the nodes of one graph, or the error in the file or the target."""
        kind = _KINDS[provider_id]
        try:
            target = None
            if kind == "findings":
                spelling = str(config_values.get(_TARGET) or minimum_version())
                target = resolve_target(spelling, lambda: get_provider(None).library).version
            found = node_data(_graph_of(model_path), kind, target=target)
        except (VhloToolsError, OSError) as error:
            return NodeDataProviderResult(error=str(error))
        return NodeDataProviderResult(result=found.get(graph_id))


# Server of Model Explorer with programs, and data of their nodes

#: The package whose module ``main`` Model Explorer loads.
_EXTENSION: Final = "vhlo_tools.integrations.model_explorer"


def visualize(
    paths: Sequence[str | PathLike[str]],
    form: Form = "stablehlo",
    *,
    target: str | None = None,
    host: str = "localhost",
    port: int = 8080,
    open_browser: bool = True,
) -> None:
    """Start a server of Model Explorer with programs, and serve until it is interrupted; in a notebook, show them.

    Args:
        paths: The files of artifacts, or of jax.export.
        form: ``stablehlo``: names, types and attributes as in programs; ``vhlo``: as in the file.
        target: A version or a release; what stands in its way is then shown too.
        host: The host of the server.
        port: Its port.
        open_browser: Whether to open a browser.

    Raises:
        MalformedArtifactError: If a file is damaged, or no artifact.
        MissingExtraError: If Model Explorer is not installed.
        OSError: If a file cannot be read.
        UnknownTargetError: If the target is not known.
    """
    config = configuration(paths, form, target=target)
    import model_explorer

    model_explorer.visualize_from_config(
        config, host=host, port=port, extensions=[_EXTENSION], no_open_in_browser=not open_browser
    )


def configuration(paths: Sequence[str | PathLike[str]], form: Form = "stablehlo", *, target: str | None = None) -> Any:
    """Return a ``ModelExplorerConfig`` with programs and data of their nodes; arguments as for :func:`visualize`."""
    require_extra("model-explorer", PURPOSE, "model_explorer")
    import model_explorer
    from model_explorer.node_data_builder import ModelNodeData

    version: Version | None = None
    if target is not None:
        version = resolve_target(target, lambda: get_provider(None).library).version
    kinds: tuple[NodeDataKind, ...] = ("introductions", "aliases", "findings")
    config = model_explorer.config()
    for path in (fspath(each) for each in paths):
        # Read here first, so that what is wrong with it is said where it was asked for.
        graph = program_graph(Artifact.open(path))
        config.add_model_from_path(path, adapterId=f"vhlo_tools_{form}")
        for kind in kinds if version else kinds[:2]:
            data = ModelNodeData(node_data(graph, kind, target=version))
            config.add_node_data(kind, data, model_name=Path(path).name)
    return config
