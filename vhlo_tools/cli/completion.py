"""``vhlo completion``: prints the script that makes a shell complete commands, options and their values."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar, Final

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.files import write_atomically

# Completion in bash, zsh and fish: the script of each, and its protocol with ``vhlo``
#
# A script asks by the variable ``_VHLO_COMPLETE``, as click names it. It passes the line up to the cursor in
# ``VHLO_COMPLETE_LINE``, as it was typed, and gets a line for each item: type, value and help, separated by ``\x1f``.
# The values are whole words, such as ``--target=jaxlib==0.4.31``, except in bash. For ``file`` and ``dir`` the shell
# itself completes the value, and the help is the part of the word before it.

_LINE: Final = "VHLO_COMPLETE_LINE"
_BREAKS: Final = "VHLO_COMPLETE_BREAKS"

#: The length of a help text beside a value.
_HELP: Final = 72
_OPTION: Final = re.compile(r"--?[A-Za-z][\w-]*=")

_BASH: Final = r"""# Completion of vhlo in bash 4.4 or later.
_vhlo() {
    local type value help
    COMPREPLY=()
    while IFS=$'\x1f' read -r type value help; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            partial) COMPREPLY+=("$value"); compopt -o nospace ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done <<< "$(VHLO_COMPLETE_LINE=${COMP_LINE:0:COMP_POINT} VHLO_COMPLETE_BREAKS=$COMP_WORDBREAKS \
        _VHLO_COMPLETE=bash_complete "${1/#\~/$HOME}" 2> /dev/null)"
}
complete -o nosort -F _vhlo vhlo
"""

_ZSH: Final = r"""#compdef vhlo
# Completion of vhlo in zsh.
_vhlo() {
    local type value help
    local -a values shown partial partial_shown
    while IFS=$'\x1f' read -r type value help; do
        case $type in
            plain) values+=("$value"); shown+=("$value${help:+  -- $help}") ;;
            partial) partial+=("$value"); partial_shown+=("$value${help:+  -- $help}") ;;
            dir) [[ -z $help ]] || compset -P "${(b)help}"; _files -/ ;;
            file) [[ -z $help ]] || compset -P "${(b)help}"; _files ;;
        esac
    done <<< "$(VHLO_COMPLETE_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" _VHLO_COMPLETE=zsh_complete vhlo 2> /dev/null)"
    (( ! $#values )) || compadd -l -V vhlo -d shown -a values
    (( ! $#partial )) || compadd -l -V vhlo -S '' -d partial_shown -a partial
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _vhlo "$@"
else
    compdef _vhlo vhlo
fi
"""

_FISH: Final = r"""# Completion of vhlo in fish.
function __vhlo_complete
    set -lx VHLO_COMPLETE_LINE (commandline -cp)
    set -lx _VHLO_COMPLETE fish_complete
    for item in (vhlo 2> /dev/null)
        set -l part (string split \x1f -- $item)
        switch $part[1]
            case plain partial
                printf '%s\t%s\n' $part[2] $part[3]
            case file
                for path in (__fish_complete_path $part[2])
                    printf '%s%s\n' $part[3] $path
                end
            case dir
                for path in (__fish_complete_directories $part[2] '')
                    printf '%s%s\n' $part[3] $path
                end
        end
    end
end
complete --command vhlo --no-files --keep-order --arguments '(__vhlo_complete)'
"""


def words_before(line: str, breaks: Collection[str] = ()) -> tuple[list[str], str, int]:
    """Split a line at its cursor, as shells do, with quotes and backslashes resolved.

    At ``breaks`` a shell begins a new word for completion, but not for the command. Returns the words before the
    cursor, the word at it, and the length of its part that the shell takes for words of their own.
    """
    words: list[str] = []
    word: str | None = None
    own, quote = 0, ""
    characters = iter(line)
    for character in characters:
        if quote and character == quote:
            quote = ""
        elif character == "\\" and quote != "'":
            word = (word or "") + next(characters, "")
        elif quote:
            word = (word or "") + character
        elif character in "'\"":
            word, quote = word or "", character
        elif character.isspace():
            words, word, own = [*words, *([] if word is None else [word])], None, 0
        else:
            word = (word or "") + character
            own = len(word) if character in breaks else own
    return words, word or "", own


class _Complete(ShellComplete):
    """Completion with a script of ours."""

    #: Characters at which the shell begins a new word for completion, although not for the command.
    breaks: ClassVar[frozenset[str]] = frozenset()
    #: What stands before a value in its word, such as ``--target=``, and how much of the word the shell leaves alone.
    _prefix: str
    _own: int

    def source(self) -> str:
        return self.source_template

    def get_completion_args(self) -> tuple[list[str], str]:
        breaks = self.breaks & set(os.environ.get(_BREAKS, ""))
        words, incomplete, self._own = words_before(os.environ.get(_LINE, ""), breaks)
        option = _OPTION.match(incomplete)
        self._prefix = option[0] if option else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        if item.type in ("file", "dir"):
            return "\x1f".join((item.type, item.value, self._prefix))
        # Options begin a word; values may stand behind one of them.
        value = item.value if item.value.startswith("-") else self._prefix + item.value
        return "\x1f".join((item.type, value[self._own :], shorten(item.help or "", _HELP, placeholder=" ...")))


class _Bash(_Complete):
    name = "bash"
    source_template = _BASH
    # The others of COMP_WORDBREAKS are white space, quotes, and what ends a command.
    breaks = frozenset("=:@")


class _Zsh(_Complete):
    name = "zsh"
    source_template = _ZSH


class _Fish(_Complete):
    name = "fish"
    source_template = _FISH


#: The shells, by name.
SHELLS: Final[dict[str, type[ShellComplete]]] = {each.name: add_completion_class(each) for each in (_Bash, _Zsh, _Fish)}


# Installation of a shell's completion script: the script in a file, and a line in the shell's own settings

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
    write_atomically(script, [SHELLS[shell].source_template.encode()], force=True)
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


@command()
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
@click.option("--install", "installs", is_flag=True, help="Install it for you, instead of printing it.")
def completion(shell: str | None, installs: bool) -> None:
    """Print the script that makes SHELL complete commands, options, versions, releases and features.

    By default SHELL is the one that the variable SHELL names. With --install it is written to where the shell finds it:
    fish in its folder of completions, bash and zsh by a line in ~/.bashrc or ~/.zshrc.
    """
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    if not installs:
        click.echo(SHELLS[chosen].source_template, nl=False)
        return
    for path in install(chosen):
        echo(f"wrote {path}")
    echo(f"start a new {chosen}, and press Tab after vhlo")
