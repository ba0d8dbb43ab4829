"""Options shared by many functions: one typed dictionary for each group, for ``**options: Unpack[...]``."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from vhlo_tools.compat import AllowRelaxed, Expand


class LoadOptions(TypedDict, total=False):
    """Options for loading a program.

    Attributes:
        name: The name of the program in messages, by default its path.
        provider: The MLIR bindings to use, by default those of a given module, or the installed ones.
        trusted: Whether MLIR may parse an artifact, bytecode or text directly in this process. Otherwise a child
            process parses it first, because what is damaged can crash the parser. Artifacts that this process wrote are
            trusted.
    """

    name: str | None
    provider: str | None
    trusted: bool


class ExpandOptions(TypedDict, total=False):
    """Options for the rewriting of what is newer than a target.

    Attributes:
        expand: Whether features newer than the target are rewritten into older ones where the program computes the same
            afterwards, or the ids of the features for which this is done; by default not.
        allow_relaxed: The ids of the features that may be rewritten with something given up, or ``all``; by default
            none.
        allow_signature_change: Whether that may change the types of arguments and results of public functions; by
            default not.
    """

    expand: Expand
    allow_relaxed: AllowRelaxed
    allow_signature_change: bool


class WriteOptions(ExpandOptions, total=False):
    """Options for the permitted contents of a new artifact.

    Attributes:
        allow_other_dialects: Whether ops of dialects other than StableHLO, such as ``sdy``, may remain unchanged; by
            default not.
        legalize: Whether constructs that no artifact can contain are rewritten into equivalent StableHLO where a
            rewrite is known: constants in resources, ops of `chlo`, `mhlo`, `arith`, `math`, `tensor` and `shape`,
            attributes without a form in VHLO. By default they are.
    """

    allow_other_dialects: bool
    legalize: bool


class ImportOptions(TypedDict):
    """Options of one framework each, as :func:`vhlo_tools.serialize` describes them; ``None`` where not given."""

    signature: str | None
    batch_size: int | None
    importer: str | None
    import_timeout: float | None
    import_memory: int | None
    verify: bool | None


class CheckOptions(LoadOptions, WriteOptions, total=False):
    """Options for loading a program, and for the permitted contents of an artifact.

    Attributes:
        read_with: For MLIR text that only an older release reads, that release, such as ``jaxlib==0.4.20``, as for
            :func:`vhlo_tools.serialize`.
    """

    read_with: str | None


class ExportOptions(WriteOptions, total=False):
    """Options for exporting a framework's program."""

    as_of: date | None  # day from which windows in a target count back, by default today
    provider: str | None  # bindings that define the versions, by default the installed ones
