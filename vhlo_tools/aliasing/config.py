"""Model of input-output aliases and buffer donors of a program.

The model and its rules are those of XLA: ``xla/hlo/ir/hlo_input_output_alias_config.h`` and
``xla/hlo/ir/hlo_instruction.h`` (buffer donors) in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from vhlo_tools.aliasing.alias_entries import Alias, AliasKind, Donor
from vhlo_tools.aliasing.hlo_form import format_aliases, format_donors
from vhlo_tools.aliasing.shapes import Array, format_index, subshape
from vhlo_tools.errors import AliasError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing.shapes import Shape, ShapeIndex, Signature

#: The rules of XLA, by the names under which the lint reports them.
Rule = Literal[
    "output-index",
    "parameter-number",
    "parameter-index",
    "output-twice",
    "parameter-twice",
    "size",
    "shape",
    "donor-and-alias",
]


@dataclass(frozen=True, slots=True)
class AliasViolation:
    """A violation of a rule of XLA by an alias or a donor.

    Attributes:
        rule: The rule.
        entry: The alias or donor.
        message: A description of the violation, in a sentence.
        remedy: What to do about it.
    """

    rule: Rule
    entry: Alias | Donor
    message: str
    remedy: str


class AliasConfig:
    """The aliases and donors of a program, checked as they are set up.

    >>> from vhlo_tools.aliasing import Array, Signature
    >>> config = AliasConfig(Signature((Array("f32", (4,)), Array("f32", (4,))), Array("f32", (4,))))
    >>> config.set_up_alias(parameter_number=1)
    >>> config.set_up_donor(0)
    >>> config
    AliasConfig({ {}: (1, {}, may-alias) }, buffer_donor={ (0, {}) })

    Args:
        signature: The shapes of parameters and result.
        aliases: The initial aliases.
        donors: The initial donors.

    Raises:
        AliasError: If these violate a rule.
    """

    def __init__(self, signature: Signature, aliases: Iterable[Alias] = (), donors: Iterable[Donor] = ()) -> None:
        self._signature = signature
        self._aliases: dict[ShapeIndex, Alias] = {}
        self._donors: set[Donor] = set()
        for alias in aliases:
            self._add(alias)
        for donor in donors:
            self._add(donor)

    @property
    def signature(self) -> Signature:
        """The shapes of parameters and result."""
        return self._signature

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """The aliases, by output."""
        return tuple(sorted(self._aliases.values()))

    @property
    def donors(self) -> tuple[Donor, ...]:
        """The donors, by parameter."""
        return tuple(sorted(self._donors))

    def set_up_alias(
        self,
        output_index: ShapeIndex = (),
        parameter_number: int = 0,
        parameter_index: ShapeIndex = (),
        kind: AliasKind = "may-alias",
    ) -> None:
        """Set up an alias of an output and an input.

        Args:
            output_index: The index of the output in the result; ``()`` is the whole result of a program that has one.
            parameter_number: The number of the parameter.
            parameter_index: The index of the input in the parameter; ``()`` is the whole parameter.
            kind: ``may-alias`` or ``must-alias``.

        Raises:
            AliasError: If there is no such output or input, one of them already has an alias, their sizes in bytes
                differ, for ``must-alias`` their types or shapes, or the input is a donor.
        """
        if kind not in get_args(AliasKind):
            raise AliasError(f"unknown kind of alias {kind!r}: expected {' or '.join(get_args(AliasKind))}")
        self._add(Alias(tuple(output_index), parameter_number, tuple(parameter_index), kind))

    def set_up_donor(self, parameter_number: int, parameter_index: ShapeIndex = ()) -> None:
        """Donate an input, for any output that it fits.

        Args:
            parameter_number: The number of the parameter.
            parameter_index: The index of the input in the parameter; ``()`` is the whole parameter.

        Raises:
            AliasError: If there is no such input, it is not an array, or it has an alias.
        """
        self._add(Donor(parameter_number, tuple(parameter_index)))

    def alias_of_output(self, output_index: ShapeIndex) -> Alias | None:
        """Return the alias of an output, or ``None``."""
        return self._aliases.get(output_index)

    def alias_of_parameter(self, parameter_number: int, parameter_index: ShapeIndex = ()) -> Alias | None:
        """Return the alias of an input, or ``None``."""
        for alias in self._aliases.values():
            if (alias.parameter_number, alias.parameter_index) == (parameter_number, parameter_index):
                return alias
        return None

    def _add(self, entry: Alias | Donor) -> None:
        broken = [
            violation
            for violation in violations(self._signature, (*self._aliases.values(), *self._donors, entry))
            if violation.entry is entry
        ]
        if broken:
            raise AliasError(f"{broken[0].message}: {broken[0].remedy}")
        if isinstance(entry, Alias):
            self._aliases[entry.output_index] = entry
        else:
            self._donors.add(entry)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AliasConfig):
            return NotImplemented
        return (self.signature, self.aliases, self.donors) == (other.signature, other.aliases, other.donors)

    def _repr_html_(self) -> str:
        from vhlo_tools.markup import table

        parameters = self._signature.parameters
        aliases = ((format_index(each.output_index), _input(each), str(each.kind)) for each in self.aliases)
        donors = (("", _input(each), "donor") for each in self.donors)
        rows = (
            (output, number, format_index(index), subshape(parameters[number], index), kind)
            for output, (number, index), kind in (*aliases, *donors)
        )
        return table("aliases", ("output", "parameter", "index", "shape", "kind"), rows)

    # Mutable, and so not hashable.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._aliases or self._donors)

    def __repr__(self) -> str:
        parts = [format_aliases(self.aliases)] * bool(self._aliases)
        parts += [f"buffer_donor={format_donors(self.donors)}"] * bool(self._donors)
        return f"AliasConfig({', '.join(parts)})"


def violations(
    signature: Signature, entries: Iterable[Alias | Donor], *, compiled: bool = True
) -> list[AliasViolation]:
    """Return the first violation of each entry; without ``compiled``, only those rejected at conversion."""
    rules = _Rules(signature, compiled=compiled)
    return [broken for broken in map(rules.first_broken, entries) if broken is not None]


class _Rules:
    """The rules, applied to entries one after the other.

    Violations that a conversion to HLO rejects are checked first: an entry that passes them can conflict with later
    entries, even if the program cannot be compiled because of it.
    """

    def __init__(self, signature: Signature, *, compiled: bool) -> None:
        self._signature = signature
        self._compiled = compiled
        self._outputs: dict[ShapeIndex, Alias] = {}
        self._held: dict[tuple[int, ShapeIndex], type[Alias | Donor]] = {}
        self._aliased: set[tuple[int, ShapeIndex]] = set()

    def first_broken(self, entry: Alias | Donor) -> AliasViolation | None:
        """Return the first rule that ``entry`` violates, given the entries before it."""
        broken = self._of_output(entry) if isinstance(entry, Alias) else None
        broken = broken or self._of_donors(entry)
        if broken is not None:
            return broken
        self._held.setdefault((entry.parameter_number, entry.parameter_index), type(entry))
        if isinstance(entry, Alias):
            self._outputs[entry.output_index] = entry
        return self._of_shapes(entry) if self._compiled else None

    def _of_output(self, alias: Alias) -> AliasViolation | None:
        number, place = alias.parameter_number, format_index(alias.output_index)
        if subshape(self._signature.result, alias.output_index) is None:
            message = f"there is no output {place}: the result is {_shown(self._signature.result)}"
            return AliasViolation("output-index", alias, message, "give the index of an output")
        if number < 0:
            return self._no_parameter(alias)
        if (other := self._outputs.get(alias.output_index)) is not None:
            message = f"output {place} is aliased with parameter {number} and with parameter {other.parameter_number}"
            return AliasViolation("output-twice", alias, message, "alias an output with one parameter")
        return None

    def _of_donors(self, entry: Alias | Donor) -> AliasViolation | None:
        number, index = entry.parameter_number, entry.parameter_index
        if self._held.get((number, index), type(entry)) is type(entry):
            return None
        message = f"parameter {number} at {format_index(index)} is a donor and has an alias"
        remedy = "an aliased parameter is donated by its alias: remove the donor"
        return AliasViolation("donor-and-alias", entry, message, remedy)

    def _of_shapes(self, entry: Alias | Donor) -> AliasViolation | None:
        """Return a violation that only compilation rejects."""
        number, index = entry.parameter_number, entry.parameter_index
        if not 0 <= number < len(self._signature.parameters):
            return self._no_parameter(entry)
        shape = self._signature.parameters[number]
        held = subshape(shape, index)
        if not isinstance(held, Array):
            message = f"parameter {number} has no array at {format_index(index)}: its shape is {_shown(shape)}"
            return AliasViolation("parameter-index", entry, message, "give the index of an array")
        if isinstance(entry, Donor):
            return None
        twice = (number, index) in self._aliased
        self._aliased.add((number, index))
        output = subshape(self._signature.result, entry.output_index)
        if entry.kind == "must-alias" and output != held:
            return _other_shape(entry, output, held)
        if not isinstance(output, Array):
            message = f"output {format_index(entry.output_index)} is {_shown(output)}, which is not an array"
            return AliasViolation("output-index", entry, message, "give the index of an array within it")
        if twice:
            message = f"parameter {number} at {format_index(index)} is aliased with two outputs"
            return AliasViolation("parameter-twice", entry, message, "alias a parameter with one output")
        # Dynamic sizes cannot be compared.
        if output.bytes is not None and held.bytes is not None and output.bytes != held.bytes:
            return _other_size(entry, output, held)
        return None

    def _no_parameter(self, entry: Alias | Donor) -> AliasViolation:
        count = len(self._signature.parameters)
        message = f"there is no parameter {entry.parameter_number}: the program has {count}"
        return AliasViolation("parameter-number", entry, message, "choose one of its parameters, counted from 0")


def _other_shape(alias: Alias, output: Shape | None, held: Array) -> AliasViolation:
    message = f"{_sides(alias, output, held)}, but must-alias requires equal types and shapes"
    return AliasViolation("shape", alias, message, "make it a may-alias, or choose an input of that type and shape")


def _other_size(alias: Alias, output: Array, held: Array) -> AliasViolation:
    message = _sides(alias, f"{output} of {output.bytes} bytes", f"{held} of {held.bytes}")
    return AliasViolation("size", alias, message, "alias an output with a parameter of the same size in bytes")


def _sides(alias: Alias, output: object, held: object) -> str:
    place = f"parameter {alias.parameter_number} at {format_index(alias.parameter_index)}"
    return f"output {format_index(alias.output_index)} is {_shown(output)}; {place} is {held}"


_SHOWN: Final = 80


def _shown(shape: object) -> str:
    text = str(shape)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _input(entry: Alias | Donor) -> tuple[int, ShapeIndex]:
    return entry.parameter_number, entry.parameter_index
