"""What migrations of tests are done with beside the real tools: some that die, lie or dawdle, by the names of files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import vhlo_tools as vt
from vhlo_tools.api.stores import MIGRATION_TOOLS
from vhlo_tools.artifact import Artifact, JaxContainer
from vhlo_tools.stores import MigrationSettings, StoredProgram, Tools

#: What stands in the place of every program that :data:`LYING` moves.
OTHER = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def _die_of_deadly(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    if "deadly" in Path(program.name).name:
        os.kill(os.getpid(), signal.SIGKILL)
    return MIGRATION_TOOLS.move(program, settings)


def _give_another(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    return vt.serialize(OTHER, settings.target)


def _change_the_file(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    moved = MIGRATION_TOOLS.move(program, settings)
    Path(program.name).write_bytes(b"written by somebody else")
    return moved


def _die_twice(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    deaths = Path(program.name).parent.with_name("deaths")
    if "deadly" in Path(program.name).name and (not deaths.exists() or deaths.stat().st_size < 2):
        with deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return MIGRATION_TOOLS.move(program, settings)


#: Kills the process that moves a file with `deadly` in its name.
DEADLY = Tools(_die_of_deadly, MIGRATION_TOOLS.blocking, MIGRATION_TOOLS.prove, MIGRATION_TOOLS.refused)
#: Does so twice, and then no more.
DEADLY_TWICE = Tools(_die_twice, MIGRATION_TOOLS.blocking, MIGRATION_TOOLS.prove, MIGRATION_TOOLS.refused)
#: Makes of every program the same other one.
LYING = Tools(_give_another, MIGRATION_TOOLS.blocking, MIGRATION_TOOLS.prove, MIGRATION_TOOLS.refused)
#: Changes a file while it is worked on, as somebody else might.
CHANGING = Tools(_change_the_file, MIGRATION_TOOLS.blocking, MIGRATION_TOOLS.prove, MIGRATION_TOOLS.refused)
