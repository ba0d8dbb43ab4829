"""Recognition of files by content, and readers of program containers: HLO, jax.export, torch.export, SavedModel.

The readers return the bytes of a file's contents and know nothing of artifacts; no MLIR and no framework is needed.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.formats.backups import BACKUPS, list_backups
    from vhlo_tools.formats.discovery import SET_ASIDE, objects_at, programs_at
    from vhlo_tools.formats.hlo.detection import find_hlo_module
    from vhlo_tools.formats.hlo.header import HloHeader
    from vhlo_tools.formats.hlo.hlo_text import read_hlo_text, with_long_aliases
    from vhlo_tools.formats.hlo.module import read_hlo_module
    from vhlo_tools.formats.jax_export.export_file import JaxExport, decode_jax_export, replace_modules
    from vhlo_tools.formats.jax_export.parts import parts_of
    from vhlo_tools.formats.jax_export.signature import JaxSignature, JaxValue, read_signature
    from vhlo_tools.formats.recognition import ARTIFACT_PRODUCER, Kind, is_saved_model, recognise
    from vhlo_tools.formats.saved_model import SavedSignature, read_saved_model
    from vhlo_tools.formats.source import Source, identify
    from vhlo_tools.formats.storage import Buffer, as_bytes, read_bytes
    from vhlo_tools.formats.torch_export import TorchExport, ViewFile, decode_torch_export
else:
    __getattr__, __dir__ = lazy_exports(__name__)
