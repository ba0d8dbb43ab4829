"""PyTorch: modules and exported programs as artifacts, through torch-mlir.

Importing this needs neither; the functions do, and say so.
"""

from vhlo_tools.integrations.torch.exporting import export, open_model

__all__ = ["export", "open_model"]
