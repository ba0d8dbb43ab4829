"""Proofs that two programs are equivalent: without running them if possible, and otherwise by running both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.conversion import strip
from vhlo_tools.api.differences import diff
from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.verification import verify
from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import EngineError, MalformedArtifactError, ProviderError, VerificationError
from vhlo_tools.records import dataclass
from vhlo_tools.stores import Proof

if TYPE_CHECKING:
    from vhlo_tools.api.running import EngineChoice
    from vhlo_tools.files import Buffer
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.stores import StoredProgram
    from vhlo_tools.verification import Drawing, Tolerance

_Names = tuple[str, str]

# From best to worst.
_VERDICTS: Final = ("same program", "same results", "unknown", "other results")


@dataclass(frozen=True, slots=True)
class Prover:
    """Compares pairs of programs, in any process."""

    seed: int = 0  # for drawing inputs
    rounds: int | None = None  # as for vhlo_tools.verify, as are the next three
    drawing: Drawing | None = None
    tolerance: Tolerance | None = None
    engine: EngineChoice = "auto"
    timeout: float | None = None  # of each run, in seconds; None for the default
    legalize: bool = True  # constructs that no artifact can contain
    provider: str | None = None
    trusted: bool = False  # MLIR may parse bytes directly, and not in a child process first

    def prove(self, before: StoredProgram, after: StoredProgram, names: _Names) -> Proof:
        """Compare two programs, for jax.export files each pair of artifacts; return the worst proof."""
        old: Sequence[Artifact | Buffer] = before.artifacts or [before.data]
        new: Sequence[Artifact | Buffer] = after.artifacts or [after.data]
        if len(old) != len(new):
            reason = f"{names[0]} has {len(old)} artifacts, a function and its derivatives, and {names[1]} {len(new)}"
            return Proof("other results", reason)
        proofs = [self._pair(one, other, names) for one, other in zip(old, new, strict=True)]
        return max(proofs, key=lambda proof: _VERDICTS.index(proof.verdict))

    def _pair(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> Proof:
        if self._is_same_program(before, after, names):
            return Proof("same program")
        try:
            report = verify(
                before,
                after,
                seed=self.seed,
                rounds=self.rounds,
                drawing=self.drawing,
                tolerance=self.tolerance,
                engine=self.engine,
                timeout=self.timeout,
                names=names,
                provider=self.provider,
                trusted=self.trusted,
            )
        except VerificationError as error:
            return Proof("other results", str(error))
        except (EngineError, MalformedArtifactError, ProviderError) as error:
            return Proof("unknown", f"they are not the same program, and cannot be executed: {error}")
        return Proof("same results" if report.passed else "other results", str(report))

    def _is_same_program(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> bool:
        """Whether the library reads the same program from both, ignoring locations, so that the same would run.

        Artifacts that are too new for the library are compared on their bytes, at both versions.
        """
        try:
            if self._digest(before, names[0]) == self._digest(after, names[1]):
                return True
        except (MalformedArtifactError, ProviderError):
            if not isinstance(before, Artifact) or not isinstance(after, Artifact):
                raise
            back = after.retargeted(before.version)
            return not (self._differ(before, after, names) or self._differ(before, back, names))
        return not self._differ(before, after, names)

    def _differ(self, before: Artifact | Buffer, after: Artifact | Buffer, names: _Names) -> bool:
        found = diff(before, after, ignore=("version",), names=names, provider=self.provider, trusted=self.trusted)
        return bool(found)

    def _digest(self, program: Artifact | Buffer, name: str) -> bytes:
        """Digest the program that the library reads, rewritten at its newest version without locations."""
        from vhlo_tools.conversion import newest_artifact
        from vhlo_tools.program import load_program

        source: ProgramSource = as_program(program, name=name, provider=self.provider)
        loaded = load_program(source, name=name, provider=self.provider, trusted=self.trusted)
        written = newest_artifact(loaded, allow_other_dialects=True, legalize=self.legalize)
        return hashlib.sha256(bytes(strip(written))).digest()
