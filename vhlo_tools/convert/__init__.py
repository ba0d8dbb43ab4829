"""What needs a compiler: programs to artifacts and back, through StableHLO's own passes."""

from vhlo_tools.convert.deserialization import deserialize_artifact, print_module
from vhlo_tools.convert.fidelity import changed_attributes
from vhlo_tools.convert.serialization import newest_artifact, serialize_program

__all__ = ["changed_attributes", "deserialize_artifact", "newest_artifact", "print_module", "serialize_program"]
