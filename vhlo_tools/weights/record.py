"""What a file of weights says of where they came from, so that they can be put back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from vhlo_tools.errors import InvalidInputError

__all__ = ["Moved", "Record"]

_KEY: Final = "vhlo_tools.constants"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Moved:
    """A constant that became an argument.

    Attributes:
        argument: The number of the argument.
        tensor: The name of its value in the file; constants that shared one do so again.
        path: Where it stood in the program, for people.
        position: The same in numbers: region, block and op, from the function inwards.
        type: The type of the argument, as text.
        element: The element type of the value.
        shape: The sizes of the value.
        form: How the artifact held it: whole, splat, packed.
        splat: Of a splat, the bytes of the element, as hexadecimal digits.
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
class Record:
    """What was moved, and from where.

    Attributes:
        function: The function.
        arguments: How many arguments it had before.
        moved: The constants, in the order of their arguments.
    """

    function: str
    arguments: int
    moved: tuple[Moved, ...]

    def to_metadata(self) -> dict[str, str]:
        """Return it as metadata of a file of tensors."""
        return {_KEY: json.dumps({"format": _FORMAT, **asdict(self)})}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], name: str) -> Record:
        """Return what the metadata of the file ``name`` say.

        Raises:
            InvalidInputError: If they say nothing, or something else.
        """
        if _KEY not in metadata:
            raise InvalidInputError(f"{name} was not written by `vhlo constants externalize`: it says of no constants")
        try:
            held = json.loads(metadata[_KEY])
            if held["format"] != _FORMAT:
                raise InvalidInputError(f"{name} has format {held['format']}, of a newer vhlo: expected {_FORMAT}")
            moved = tuple(
                Moved(**{**each, "position": tuple(each["position"]), "shape": tuple(each["shape"])})
                for each in held["moved"]
            )
            record = cls(held["function"], held["arguments"], moved)
            record._check()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidInputError(f"{name} is damaged: what it says of constants cannot be read: {error}") from error
        return record

    def _check(self) -> None:
        numbers = [self.arguments, *(number for each in self.moved for number in (*each.position, *each.shape))]
        if any(not isinstance(number, int) or number < 0 for number in numbers):
            raise ValueError("a number is none")
        for index, each in enumerate(self.moved):
            texts = (each.tensor, each.path, each.type, each.element, each.form, each.splat, each.digest)
            if not all(isinstance(text, str) for text in texts) or len(each.shape) > 100:
                raise ValueError("a text is none")
            if each.argument != self.arguments + index or len(each.position) < 3 or len(each.position) % 3:
                raise ValueError(f"{each.path} has no place")
            bytes.fromhex(each.splat)
