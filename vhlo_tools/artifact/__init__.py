"""Portable artifacts and the files that hold them, without MLIR."""

from vhlo_tools.artifact.artifact import Artifact, other_dialects
from vhlo_tools.artifact.content import Kind, recognise
from vhlo_tools.artifact.difference import DIFFERENCE_KINDS, Difference, DifferenceKind
from vhlo_tools.artifact.discovery import programs_at
from vhlo_tools.artifact.hlo_content import find_hlo_module
from vhlo_tools.artifact.inspection import inspect_bytes, inspect_folder
from vhlo_tools.artifact.jax_container import JaxContainer
from vhlo_tools.artifact.jax_export import JaxExport, decode_jax_export
from vhlo_tools.artifact.jax_signature import JaxSignature, JaxValue, read_signature
from vhlo_tools.artifact.saved_model import is_saved_model
from vhlo_tools.artifact.storage import Buffer, as_bytes, read_bytes
from vhlo_tools.artifact.torch_export import TorchExport, ViewFile, decode_torch_export

__all__ = [
    "DIFFERENCE_KINDS",
    "Artifact",
    "Buffer",
    "Difference",
    "DifferenceKind",
    "JaxContainer",
    "JaxExport",
    "JaxSignature",
    "JaxValue",
    "Kind",
    "TorchExport",
    "ViewFile",
    "as_bytes",
    "decode_jax_export",
    "decode_torch_export",
    "find_hlo_module",
    "inspect_bytes",
    "inspect_folder",
    "is_saved_model",
    "other_dialects",
    "programs_at",
    "read_bytes",
    "read_signature",
    "recognise",
]
