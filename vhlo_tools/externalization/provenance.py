"""Record in a file of weights of the constants from which they come, for restoration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from vhlo_tools.documents import read_json
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.records import dataclass

_KEY: Final = "vhlo_tools.constants"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Moved:
    """A constant that became an argument.

    Attributes:
        argument: The number of the argument.
        tensor: The name of its value in the file; constants with one value share it again after restoration.
        path: Its path in the program, for display.
        position: Its position: the numbers of region, block and op, from the function inwards.
        type: The type of the argument, as text.
        element: The element type of the value.
        shape: The shape of the value.
        form: The form of the elements in the artifact: whole, splat, packed.
        splat: For a splat, the bytes of the element, as hexadecimal digits.
        digest: The SHA-256 of the elements.
    """

    argument: int
    tensor: str
    path: str
    position: tuple[int, ...]
    type: str
    element: str
    shape: tuple[int, ...]
    form: str
    splat: str
    digest: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The externalized constants of a function.

    Attributes:
        function: The function.
        arguments: The number of its arguments before.
        moved: The constants, in the order of their arguments.
    """

    function: str
    arguments: int
    moved: tuple[Moved, ...]

    def to_metadata(self) -> dict[str, str]:
        """Return the record as metadata of a file of tensors."""
        return {_KEY: json.dumps({"format": _FORMAT, **asdict(self)})}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], name: str) -> Provenance:
        """Return the record in the metadata of the file ``name``.

        Raises:
            InvalidInputError: If there is no record, or it is damaged or of another format.
        """
        if _KEY not in metadata:
            raise InvalidInputError(
                f"{name} was not written by `vhlo constants externalize`: it has no record of constants"
            )
        try:
            held = read_json(metadata[_KEY])
            if held["format"] != _FORMAT:
                raise InvalidInputError(
                    f"{name} has format {held['format']} of a newer version of vhlo: expected {_FORMAT}"
                )
            moved = tuple(
                Moved(**{**each, "position": tuple(each["position"]), "shape": tuple(each["shape"])})
                for each in held["moved"]
            )
            record = cls(held["function"], held["arguments"], moved)
            record._check()
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(f"{name} is damaged: its record of constants cannot be read: {error}") from error
        return record

    def _check(self) -> None:
        numbers = [self.arguments, *(number for each in self.moved for number in (*each.position, *each.shape))]
        if not isinstance(self.function, str):
            raise ValueError("expected the name of a function")
        if any(not isinstance(number, int) or isinstance(number, bool) or number < 0 for number in numbers):
            raise ValueError("expected a non-negative integer")
        for index, each in enumerate(self.moved):
            texts = (each.tensor, each.path, each.type, each.element, each.form, each.splat, each.digest)
            if not all(isinstance(text, str) for text in texts) or len(each.shape) > 100:
                raise ValueError("expected a string")
            if each.argument != self.arguments + index or len(each.position) < 3 or len(each.position) % 3:
                raise ValueError(f"{each.path} has no valid position")
            bytes.fromhex(each.splat)
