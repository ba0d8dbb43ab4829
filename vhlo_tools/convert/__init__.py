"""What needs a compiler: programs to artifacts and back, through StableHLO's own passes."""

from vhlo_tools.convert.deserialization import deserialize_artifact, print_module
from vhlo_tools.convert.fidelity import ChangedForm, changed_attributes, changed_forms
from vhlo_tools.convert.hlo import hlo_of_artifact
from vhlo_tools.convert.serialization import newest_artifact, serialize_program

__all__ = [
    "ChangedForm",
    "changed_attributes",
    "changed_forms",
    "deserialize_artifact",
    "hlo_of_artifact",
    "newest_artifact",
    "print_module",
    "serialize_program",
]
