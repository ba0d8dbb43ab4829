"""Server of Model Explorer with programs, and data of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import get_provider
from vhlo_tools.compat import resolve_target
from vhlo_tools.integrations.extras import require_extra
from vhlo_tools.integrations.model_explorer.conversion import PURPOSE, Form
from vhlo_tools.integrations.model_explorer.node_data import NodeDataKind, node_data
from vhlo_tools.viewing import program_graph

if TYPE_CHECKING:
    from vhlo_tools.version import Version

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
