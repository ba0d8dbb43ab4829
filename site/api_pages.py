"""The pages of the public names of ``vhlo_tools``: what stands together; mkdocstrings shows each from its docstring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pages import Page

import vhlo_tools

__all__ = ["FOLDER", "GROUPS", "api_pages", "grouped_names", "navigation"]

FOLDER: Final = "reference/python"
#: The groups, as file, title and names. Errors and warnings are gathered by what they are, into a group of their own.
GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "artifacts": (
        "Write, read and move artifacts",
        (
            *("serialize", "deserialize", "open_artifact", "retarget", "strip", "expand"),
            *("Artifact", "ExpandedProgram", "resolve_target", "Version"),
        ),
    ),
    "checking": (
        "Check who can read what",
        (
            *("check", "check_store", "require", "Finding", "Diagnostic", "SourceLocation"),
            *("confirm", "compile_for", "Compilation", "CompiledAlias", "matrix"),
        ),
    ),
    "stores": (
        "Work on stores",
        (
            *("migrate", "plan_migration", "MigrationRecord", "MigrationSummary"),
            *("store_status", "StoreFile", "verify_stores", "PairRecord"),
        ),
    ),
    "running": (
        "Run programs",
        (
            *("run", "load_executable", "run_parallel", "load_parallel_executable"),
            *("Executable", "ParallelExecutable", "Execution", "RunReport", "Buffer", "CustomCall"),
            *("Probe", "ProbeSite", "ProbedValue", "read_probes"),
        ),
    ),
    "comparing": (
        "Compare programs",
        (
            *("diff", "Difference", "verify", "VerificationReport", "Tolerance"),
            *("draw_inputs", "Drawing", "record_golden", "check_golden"),
        ),
    ),
    "looking": ("Look at programs", ("report", "Page", "draw_graph")),
    "aliases": ("Input-output aliases", ("AliasConfig", "Alias", "Donor")),
    "constants": (
        "Constants",
        (
            *("constants", "extract_constants", "externalize_constants", "restore_constants"),
            *("Constant", "Extracted", "Externalized"),
        ),
    ),
    "manifests": (
        "Manifests and signatures",
        (
            *("Manifest", "ManifestDifference", "sign", "verify_signature"),
            *("KeySigner", "CertificateSigner", "Verifier"),
        ),
    ),
}
ERRORS: Final = "errors"
#: What is in no group yet, so that a new public name is never left out.
OTHER: Final = "other"


def grouped_names() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the groups with those of errors, and of what is in no group if there is anything.

    Raises:
        ValueError: If a group has a name that is not public.
    """
    public = set(vhlo_tools.__all__) - {"__version__"}
    named = {name for _, names in GROUPS.values() for name in names}
    if unknown := named - public:
        raise ValueError(f"site/api_pages.py groups what vhlo_tools does not have: {', '.join(sorted(unknown))}")
    rest = sorted(public - named)
    errors = tuple(name for name in rest if _is_error(getattr(vhlo_tools, name)))
    other = tuple(name for name in rest if name not in errors)
    groups = {**GROUPS, ERRORS: ("Errors and warnings", errors)}
    return {**groups, OTHER: ("More", other)} if other else groups


def navigation() -> list[dict[str, Any]]:
    """Return the part of the navigation that is the reference of Python."""
    return [{title: f"{FOLDER}/{name}.md"} for name, (title, _) in grouped_names().items()]


def api_pages() -> list[Page]:
    """Return a page for each group."""
    return [
        Page(f"{FOLDER}/{name}.md", "\n".join(_group(title, names))) for name, (title, names) in grouped_names().items()
    ]


def _group(title: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"# {title}\n"
    yield "After `import vhlo_tools as vt`, each is `vt.NAME`.\n"
    yield from (f"::: vhlo_tools.{name}\n" for name in names)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)
