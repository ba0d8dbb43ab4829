"""What a program says of its aliases and donors, right or wrong, and what XLA makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vhlo_tools.aliasing.config import Alias, AliasConfig, Donor, Violation, violations
from vhlo_tools.aliasing.shapes import Signature
from vhlo_tools.errors import AliasError

__all__ = ["Declared", "Form", "Problem"]

#: Where MLIR writes an alias: as attributes of arguments, or in one attribute of the module.
Form = Literal["argument", "module"]


@dataclass(frozen=True, slots=True)
class Problem:
    """An attribute that says nothing of aliases, although its name promises that it does.

    Attributes:
        kind: ``ignored`` if XLA passes over it without a word; ``malformed`` if it refuses it, or reads past the end
            of what it takes for something else, which may end the process.
        argument: The number of the argument that has it; ``None`` for the module.
        message: What is wrong, in a sentence.
        remedy: What to do about it.
    """

    kind: Literal["ignored", "malformed"]
    argument: int | None
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What a program says of its aliases and donors.

    Attributes:
        signature: The shapes of its parameters and result.
        arguments: What attributes of its arguments say, by argument.
        module: What the attribute of the module says, in its order.
        problems: Attributes that say nothing.
    """

    signature: Signature
    arguments: tuple[Alias | Donor, ...] = ()
    module: tuple[Alias, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """The aliases that count: those of the module if it has any, in place of all those of arguments."""
        return self.module or tuple(each for each in self.arguments if isinstance(each, Alias))

    @property
    def donors(self) -> tuple[Donor, ...]:
        """The donors."""
        return tuple(each for each in self.arguments if isinstance(each, Donor))

    @property
    def replaced(self) -> tuple[Alias, ...]:
        """The aliases of arguments that do not count, because the module has others."""
        counting = {(each.output_index, each.parameter_number, each.parameter_index) for each in self.aliases}
        own = (each for each in self.arguments if isinstance(each, Alias))
        return tuple(
            each for each in own if (each.output_index, each.parameter_number, each.parameter_index) not in counting
        )

    @property
    def form(self) -> Form | None:
        """Where its aliases are written; ``None`` if it has none."""
        if self.module:
            return "module"
        return "argument" if self.aliases else None

    def form_of(self, entry: Alias | Donor) -> Form:
        """Return where an alias that counts, or a donor, is written."""
        return "module" if isinstance(entry, Alias) and self.module else "argument"

    def violations(self) -> list[Violation]:
        """Return what XLA refuses of it, at conversion or at compilation."""
        if not self.module:
            return violations(self.signature, self.arguments)
        # XLA sets those of arguments up before it looks at the module, whose aliases then take their place.
        early = violations(self.signature, self.arguments, compiled=False)
        return [*early, *violations(self.signature, (*self.module, *self.donors))]

    def config(self) -> AliasConfig:
        """Return the aliases and donors that count.

        Raises:
            AliasError: If XLA would refuse them; the message says everything that is wrong.
        """
        wrong = [f"{each.message}: {each.remedy}" for each in self.violations()]
        wrong += [f"{each.message}: {each.remedy}" for each in self.problems if each.kind == "malformed"]
        if wrong:
            raise AliasError("; ".join(dict.fromkeys(wrong)))
        return AliasConfig(self.signature, self.aliases, self.donors)
