"""Conversion of programs to artifacts and back, through StableHLO's own passes."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.convert.deserialization import deserialize_artifact, hlo_of_artifact, print_module
    from vhlo_tools.convert.fidelity import ChangedForm, changed_attributes, changed_forms
    from vhlo_tools.convert.retargeting import LibraryRetargeting
    from vhlo_tools.convert.serialization import newest_artifact, serialize_program
else:
    __getattr__, __dir__ = lazy_exports(__name__)
