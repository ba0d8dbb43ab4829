"""Export of PyTorch modules and exported programs as artifacts, through torchax or torch-mlir.

This package can be imported without them and torch; its functions raise an error if a needed package is missing.
"""

from vhlo_tools.integrations.torch.exporting import export, open_model

__all__ = ["export", "open_model"]
