"""The constants of artifacts: listed, written as files, taken out and put back. No MLIR, and none held in memory."""

from vhlo_tools.weights.constants import Constant, list_constants
from vhlo_tools.weights.extracting import Extracted, extract

__all__ = ["Constant", "Extracted", "extract", "list_constants"]
