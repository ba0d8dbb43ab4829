"""Model of input-output aliases and buffer donors, as in XLA, with their form in the header of HLO text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from vhlo_tools.aliasing.shapes import Array, ShapeIndex, format_index, leaves, subshape
from vhlo_tools.errors import AliasError
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing.shapes import Signature

# Aliases and buffer donors, as in XLA
#
# Source: ``xla/hlo/ir/hlo_input_output_alias_config.h`` in openxla/xla.

# The reader of manifests reads the types of fields when it runs.

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


# Aliases and donors in the header of an HLO text module
#
# ``input_output_alias={ {}: (0, {}, may-alias), {1}: (2, {0}, must-alias) }, buffer_donor={ (3, {}) }``. Both the long
# form of an entry and the short one, ``{}: 0``, are accepted, which the documentation of XLA shows and its parser
# rejects.
# Source: ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla, and ``docs/aliasing.md`` there.

# Numbers of 64 bits: Python refuses to convert very long ones.
_NUMBER: Final = r"\d{1,19}"
_INDEX: Final = rf"\{{\s*(?:{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*)?\}}"
_DONOR: Final = pattern(rf"\(\s*({_NUMBER})\s*,\s*({_INDEX})\s*\)")
_ALIAS: Final = pattern(
    rf"({_INDEX})\s*:\s*(?:({_NUMBER})|\(\s*({_NUMBER})\s*,\s*({_INDEX})\s*(?:,\s*(may-alias|must-alias)\s*)?\))"
)
_LONGEST: Final = 1 << 20


def parse_aliases(text: str) -> list[Alias]:
    """Parse the value of ``input_output_alias=``.

    >>> parse_aliases("{ {}: 0 }")
    [Alias(output_index=(), parameter_number=0, parameter_index=(), kind='may-alias')]
    """
    found = []
    for match in _entries(text, _ALIAS, "{output index}: (parameter, {parameter index}[, may-alias or must-alias])"):
        kind: AliasKind = "must-alias" if match[5] == "must-alias" else "may-alias"
        found.append(Alias(_index(match[1]), int(match[2] or match[3]), _index(match[4] or "{}"), kind))
    return found


def parse_donors(text: str) -> list[Donor]:
    """Parse the value of ``buffer_donor=``."""
    found = _entries(text, _DONOR, "(parameter, {parameter index})")
    return [Donor(int(match[1]), _index(match[2])) for match in found]


def format_aliases(aliases: Iterable[Alias]) -> str:
    """Use the long form, which XLA prints and reads."""
    entries = (
        f"{format_index(each.output_index)}: "
        f"({each.parameter_number}, {format_index(each.parameter_index)}, {each.kind})"
        for each in aliases
    )
    return f"{{ {', '.join(entries)} }}"


def format_donors(donors: Iterable[Donor]) -> str:
    entries = (f"({each.parameter_number}, {format_index(each.parameter_index)})" for each in donors)
    return f"{{ {', '.join(entries)} }}"


def _entries(text: str, pattern: re.Pattern[str], expected: str) -> list[re.Match[str]]:
    body = text.strip()
    if len(body) > _LONGEST or not (body.startswith("{") and body.endswith("}")):
        raise AliasError(f"{body[:60]!r} is not a list of aliases or donors: expected {{ {expected}, ... }}")
    inner = body[1:-1].rstrip()
    at = _after_spaces(inner, 0)
    found = []
    while at < len(inner):
        match = pattern.match(inner, at)
        if match is None:
            raise AliasError(
                f"{inner[at : at + 60]!r} is not an entry of a list of aliases or donors: expected {expected}"
            )
        found.append(match)
        at = _after_spaces(inner, match.end())
        if at < len(inner) and inner[at] != ",":
            raise AliasError(f"expected a comma or the end of the list, found {inner[at : at + 60]!r}")
        at = _after_spaces(inner, at + 1)
    return found


def _after_spaces(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _index(text: str) -> ShapeIndex:
    return tuple(int(number) for number in re.findall(r"\d+", text))


# Model of input-output aliases and buffer donors of a program
#
# The model and its rules are those of XLA: ``xla/hlo/ir/hlo_input_output_alias_config.h`` and
# ``xla/hlo/ir/hlo_instruction.h`` (buffer donors) in openxla/xla.

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
        self._rules = _Rules(signature)
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
        if (broken := self._rules.first_broken(entry)) is not None:
            # What was refused is not there for those after it.
            self._rules = _Rules(self._signature)
            held: list[Alias | Donor] = [*self._aliases.values(), *self._donors]
            for each in held:
                self._rules.first_broken(each)
            raise AliasError(f"{broken.message}: {broken.remedy}")
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

    def __init__(self, signature: Signature, *, compiled: bool = True) -> None:
        self._signature = signature
        self._compiled = compiled
        self._outputs: dict[ShapeIndex, Alias] = {}
        self._held: dict[tuple[int, ShapeIndex], type[Alias | Donor]] = {}
        self._aliased: set[tuple[int, ShapeIndex]] = set()

    def first_broken(self, entry: Alias | Donor) -> AliasViolation | None:
        """Return the first rule that ``entry`` violates, given the entries before it."""
        number, index = entry.parameter_number, entry.parameter_index
        if isinstance(entry, Alias):
            place = format_index(entry.output_index)
            if subshape(self._signature.result, entry.output_index) is None:
                message = f"there is no output {place}: the result is {_shown(self._signature.result)}"
                return AliasViolation("output-index", entry, message, "give the index of an output")
            if number < 0:
                return self._no_parameter(entry)
            if (other := self._outputs.get(entry.output_index)) is not None:
                both = f"parameter {number} and with parameter {other.parameter_number}"
                message = f"output {place} is aliased with {both}"
                return AliasViolation("output-twice", entry, message, "alias an output with one parameter")
        if self._held.setdefault((number, index), type(entry)) is not type(entry):
            message = f"parameter {number} at {format_index(index)} is a donor and has an alias"
            remedy = "an aliased parameter is donated by its alias: remove the donor"
            return AliasViolation("donor-and-alias", entry, message, remedy)
        if isinstance(entry, Alias):
            self._outputs[entry.output_index] = entry
        return self._of_shapes(entry) if self._compiled else None

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
        place = f"parameter {number} at {format_index(index)}"
        if entry.kind == "must-alias" and output != held:
            sides = f"output {format_index(entry.output_index)} is {_shown(output)}; {place} is {held}"
            message = f"{sides}, but must-alias requires equal types and shapes"
            return AliasViolation(
                "shape", entry, message, "make it a may-alias, or choose an input of that type and shape"
            )
        if not isinstance(output, Array):
            message = f"output {format_index(entry.output_index)} is {_shown(output)}, which is not an array"
            return AliasViolation("output-index", entry, message, "give the index of an array within it")
        if twice:
            message = f"{place} is aliased with two outputs"
            return AliasViolation("parameter-twice", entry, message, "alias a parameter with one output")
        # Dynamic sizes cannot be compared.
        if output.bytes is not None and held.bytes is not None and output.bytes != held.bytes:
            given = _shown(f"{output} of {output.bytes} bytes")
            message = f"output {format_index(entry.output_index)} is {given}; {place} is {held} of {held.bytes}"
            return AliasViolation("size", entry, message, "alias an output with a parameter of the same size in bytes")
        return None

    def _no_parameter(self, entry: Alias | Donor) -> AliasViolation:
        count = len(self._signature.parameters)
        message = f"there is no parameter {entry.parameter_number}: the program has {count}"
        return AliasViolation("parameter-number", entry, message, "choose one of its parameters, counted from 0")


_SHOWN: Final = 80


def _shown(shape: object) -> str:
    text = str(shape)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _input(entry: Alias | Donor) -> tuple[int, ShapeIndex]:
    return entry.parameter_number, entry.parameter_index


# Matching of the donors of a program with outputs
#
# XLA matches them at compilation, larger outputs first. Source:
# ``xla/hlo/transforms/simplifiers/optimize_input_output_buffer_alias.cc`` in openxla/xla.


def compiled_aliases(config: AliasConfig) -> tuple[Alias, ...]:
    """Return the aliases of the compiled program: its own, and a may-alias for each matched donor.

    A donor matches a remaining output of the same size in bytes. Donors of dynamic size are not matched, and if any
    remaining output has a dynamic size, no donor is.
    """
    held = (
        (each, subshape(config.signature.parameters[each.parameter_number], each.parameter_index))
        for each in config.donors
    )
    donors = [(shape.bytes, each) for each, shape in held if isinstance(shape, Array) and shape.bytes is not None]
    outputs: list[tuple[int, ShapeIndex]] = []
    for index, shape in leaves(config.signature.result):
        if isinstance(shape, Array) and config.alias_of_output(index) is None:
            if shape.bytes is None:
                return config.aliases
            outputs.append((shape.bytes, index))
    matched = []
    donors.sort(key=lambda each: -each[0])
    outputs.sort(key=lambda each: -each[0])
    at = to = 0
    while at < len(donors) and to < len(outputs):
        (given, donor), (taken, index) = donors[at], outputs[to]
        if given == taken:
            matched.append(Alias(index, donor.parameter_number, donor.parameter_index))
        at += given >= taken
        to += given <= taken
    return tuple(sorted((*config.aliases, *matched)))


# Aliases and donors declared in a program, valid or not, and XLA's interpretation of them

#: The form of an alias in MLIR: attributes of arguments, or one attribute of the module.
Form = Literal["argument", "module"]


@dataclass(frozen=True, slots=True)
class Problem:
    """An alias attribute that declares no alias or donor.

    Attributes:
        kind: ``ignored`` if XLA silently ignores it; ``malformed`` if XLA rejects it, or misinterprets its type and
            reads out of bounds, which may crash the process.
        argument: The number of its argument; ``None`` for the module.
        message: A description of the problem, in a sentence.
        remedy: What to do about it.
    """

    kind: Literal["ignored", "malformed"]
    argument: int | None
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The aliases and donors declared in a program.

    Attributes:
        signature: The shapes of its parameters and result.
        arguments: The aliases and donors in attributes of its arguments, by argument.
        module: The aliases in the attribute of the module, in their order.
        problems: Alias attributes that declare nothing.
    """

    signature: Signature
    arguments: tuple[Alias | Donor, ...] = ()
    module: tuple[Alias, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """The effective aliases: those of the module if it has any, instead of all those of arguments."""
        return self.module or tuple(each for each in self.arguments if isinstance(each, Alias))

    @property
    def donors(self) -> tuple[Donor, ...]:
        """The donors."""
        return tuple(each for each in self.arguments if isinstance(each, Donor))

    @property
    def replaced(self) -> tuple[Alias, ...]:
        """The aliases of arguments that have no effect, because the module has others."""
        counting = {(each.output_index, each.parameter_number, each.parameter_index) for each in self.aliases}
        own = (each for each in self.arguments if isinstance(each, Alias))
        return tuple(
            each for each in own if (each.output_index, each.parameter_number, each.parameter_index) not in counting
        )

    @property
    def form(self) -> Form | None:
        """The form of its aliases; ``None`` if it has none."""
        if self.module:
            return "module"
        return "argument" if self.aliases else None

    def form_of(self, entry: Alias | Donor) -> Form:
        """Return the form of an effective alias, or of a donor."""
        return "module" if isinstance(entry, Alias) and self.module else "argument"

    def violations(self) -> list[AliasViolation]:
        """Return the violations that XLA rejects, at conversion or at compilation."""
        if not self.module:
            return violations(self.signature, self.arguments)
        # XLA first sets up the aliases of arguments, and then replaces them by those of the module.
        early = violations(self.signature, self.arguments, compiled=False)
        return [*early, *violations(self.signature, (*self.module, *self.donors))]

    def config(self) -> AliasConfig:
        """Return the effective aliases and donors.

        Raises:
            AliasError: If XLA would reject them; the message lists all problems.
        """
        wrong = [f"{each.message}: {each.remedy}" for each in self.violations()]
        wrong += [f"{each.message}: {each.remedy}" for each in self.problems if each.kind == "malformed"]
        if wrong:
            raise AliasError("; ".join(dict.fromkeys(wrong)))
        return AliasConfig(self.signature, self.aliases, self.donors)
