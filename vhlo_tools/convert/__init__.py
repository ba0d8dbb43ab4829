"""What needs a compiler: programs to artifacts and back, through StableHLO's own passes."""

from vhlo_tools.convert.deserialization import deserialize_artifact, print_module
from vhlo_tools.convert.serialization import serialize_program

__all__ = ["deserialize_artifact", "print_module", "serialize_program"]
