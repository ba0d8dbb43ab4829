"""The public functions, which choose the engine and the layer for what they are given."""

from vhlo_tools.api.functions import (
    deserialize,
    open_artifact,
    program_of,
    resolve_target,
    retarget,
    run,
    serialize,
    strip,
)

__all__ = ["deserialize", "open_artifact", "program_of", "resolve_target", "retarget", "run", "serialize", "strip"]
