"""Loading of any accepted input as a program that can be converted to MLIR."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.program.attribute_encoding import PORTABLE, encode_attributes, is_inherent
    from vhlo_tools.program.common_options import (
        CheckOptions,
        ExpandOptions,
        ExportOptions,
        ImportOptions,
        LoadOptions,
        WriteOptions,
    )
    from vhlo_tools.program.device_groups import (
        channel_of,
        groups_along,
        ids_of,
        mesh_size,
        meshes_of,
        sizes_along,
    )
    from vhlo_tools.program.loading import LOADERS, ProgramSource, load_program, read_artifact
    from vhlo_tools.program.module_aliases import read_module_aliases, write_module_aliases
    from vhlo_tools.program.program import Program, explain_failure, names_in_utf8, place_of
    from vhlo_tools.program.screening import convert_hlo, screen_artifact
else:
    __getattr__, __dir__ = lazy_exports(__name__)
