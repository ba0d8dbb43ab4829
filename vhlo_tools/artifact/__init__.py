"""Portable artifacts and the files that contain them, without MLIR."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.artifact.artifact import Artifact, other_dialects
    from vhlo_tools.artifact.call_aliases import matching_calls
    from vhlo_tools.artifact.entry_function import EntryFunction, functions_in
    from vhlo_tools.artifact.inspection import inspect_bytes, inspect_folder, outline_of
    from vhlo_tools.artifact.inventory import Function
    from vhlo_tools.artifact.jax_container import JaxContainer
    from vhlo_tools.artifact.jax_readers import container_findings, first_writer
    from vhlo_tools.artifact.making import Making, given_options
    from vhlo_tools.artifact.outlining import Line, outline
else:
    __getattr__, __dir__ = lazy_exports(__name__)
