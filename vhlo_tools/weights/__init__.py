"""The constants of artifacts: listed, written as files, taken out and put back. No MLIR, and none held in memory."""

from vhlo_tools.weights.constants import Constant, list_constants
from vhlo_tools.weights.element_types import element_named
from vhlo_tools.weights.externalizing import Externalized, externalize
from vhlo_tools.weights.extracting import Extracted, extract
from vhlo_tools.weights.restoring import restore
from vhlo_tools.weights.safetensors import TensorFile, read_tensors, write_tensors
from vhlo_tools.weights.tensors import Tensor

__all__ = [
    "Constant",
    "Externalized",
    "Extracted",
    "Tensor",
    "TensorFile",
    "element_named",
    "externalize",
    "extract",
    "list_constants",
    "read_tensors",
    "restore",
    "write_tensors",
]
