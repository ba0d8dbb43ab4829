"""Aliases and buffer donors, as in XLA.

Source: ``xla/hlo/ir/hlo_input_output_alias_config.h`` in openxla/xla.
"""

from __future__ import annotations

from typing import Literal

# The reader of manifests reads the types of fields when it runs.
from vhlo_tools.aliasing.shapes import ShapeIndex
from vhlo_tools.records import dataclass

#: ``may-alias``: the output is written over the input if the buffer is donated at run time, and copied otherwise;
#: ``must-alias``: not donating it is an error.
AliasKind = Literal["may-alias", "must-alias"]


@dataclass(frozen=True, slots=True, order=True)
class Alias:
    """An output that may be written over an input.

    Attributes:
        output_index: The index of the output in the result; ``()`` for a program with one result.
        parameter_number: The number of the parameter.
        parameter_index: The index of the input in the parameter; ``()`` for a parameter that is not a tuple.
        kind: Whether the alias is optional or required.
    """

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex = ()
    kind: AliasKind = "may-alias"


@dataclass(frozen=True, slots=True, order=True)
class Donor:
    """An input that is donated without naming an output.

    Attributes:
        parameter_number: The number of the parameter.
        parameter_index: The index of the input in the parameter.
    """

    parameter_number: int
    parameter_index: ShapeIndex = ()
