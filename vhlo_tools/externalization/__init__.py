"""Constants of artifacts: listing, extraction, externalization and restoration, without MLIR or full copies."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.externalization.element_types import element_named
    from vhlo_tools.externalization.externalizing import Externalized, externalize
    from vhlo_tools.externalization.extracting import LARGEST_SUM, Extracted, extract
    from vhlo_tools.externalization.listing import Constant, list_constants
    from vhlo_tools.externalization.provenance import Moved, Provenance
    from vhlo_tools.externalization.restoring import restore
    from vhlo_tools.externalization.safetensors import TensorFile, read_tensors, write_tensors
    from vhlo_tools.externalization.tensors import Form, StoredTensor, pack
else:
    __getattr__, __dir__ = lazy_exports(__name__)
