"""Installation of a shell's completion script: the script in a file, and a line in the shell's own settings."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from vhlo_tools.cli.completion_shells import script_of
from vhlo_tools.files import write_atomically

_MARK: Final = "# completion of vhlo"

#: What runs a script of a file in the settings of a shell; zsh has no ``compdef`` until its completion is loaded.
_LINES: Final = {
    "bash": ". {path}",
    "zsh": "(( $+functions[compdef] )) || {{ autoload -U compinit && compinit }}; . {path}",
}


def install(shell: str) -> list[Path]:
    """Install or replace the script of a shell, and return the files that were written.

    fish reads a folder of scripts. bash and zsh read ``~/.bashrc`` and ``.zshrc``, which get one line, once.
    """
    script, settings = _places(shell)
    script.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(script, [script_of(shell).encode()], force=True)
    if settings is None:
        return [script]
    before = settings.read_bytes() if settings.exists() else b""
    line = f"{_LINES[shell].format(path=shlex.quote(str(script)))}  {_MARK}\n".encode()
    if line in before.splitlines(keepends=True):
        return [script]
    kept = b"".join(each for each in before.splitlines(keepends=True) if not each.rstrip().endswith(_MARK.encode()))
    write_atomically(settings, [kept, b"" if not kept or kept.endswith(b"\n") else b"\n", line], force=True)
    return [script, settings]


def _places(shell: str) -> tuple[Path, Path | None]:
    """Return the path of the script, and the settings that name it; fish needs none."""
    home = Path.home()
    if shell == "fish":
        return _folder("XDG_CONFIG_HOME", home / ".config") / "fish" / "completions" / "vhlo.fish", None
    script = _folder("XDG_DATA_HOME", home / ".local" / "share") / "vhlo-tools" / f"completion.{shell}"
    return script, home / ".bashrc" if shell == "bash" else Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"


def _folder(variable: str, usual: Path) -> Path:
    # One that is not absolute is to be ignored, by the specification of these folders.
    chosen = Path(os.environ.get(variable, ""))
    return chosen if chosen.is_absolute() else usual
