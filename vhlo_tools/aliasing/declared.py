"""Aliases and donors declared in a program, valid or not, and XLA's interpretation of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vhlo_tools.aliasing.alias_entries import Alias, Donor
from vhlo_tools.aliasing.config import AliasConfig, violations
from vhlo_tools.errors import AliasError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing.config import AliasViolation
    from vhlo_tools.aliasing.shapes import Signature

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
