"""Completion: what is offered for which parameter, and what real shells make of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from support.corpus import ROOT
from support.forked_python import COMMAND
from support.shell_sessions import ShellSession
from support.vhlo_process import vhlo, warm_python

from vhlo_tools.cli.completers import COMPLETERS, NOTHING
from vhlo_tools.cli.completion import SHELLS, words_before
from vhlo_tools.cli.main import cli, main
from vhlo_tools.spec import known_features, known_jax_releases, known_releases, known_versions

#: Returns the values that are offered at the end of a line, each with its type and help.
Ask = Callable[[str], dict[str, tuple[str, str]]]

SETTINGS = 'paths = ["exports"]\n[targets]\nfleet = ["jaxlib==0.4.31"]\nfleet_of_old = ["1.0.0"]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vhlo-tools.toml").write_text(SETTINGS)
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "a program.mlir").write_text("module {}")
    (tmp_path / "other.txt").touch()
    return tmp_path


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(line: str) -> dict[str, tuple[str, str]]:
        with monkeypatch.context() as patched:
            patched.setenv("_VHLO_COMPLETE", "zsh_complete")
            patched.setenv("VHLO_COMPLETE_LINE", line)
            assert main([]) == 0
        lines = (each.split("\x1f") for each in capsys.readouterr().out.splitlines() if each)
        return {value: (kind, help_) for kind, value, help_ in lines}

    return ask


def every_parameter() -> Iterator[tuple[click.Command, click.Parameter]]:
    waiting: list[click.Command] = [cli]
    while waiting:
        command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            below = (command.get_command(context, name) for name in command.list_commands(context))
            waiting.extend(each for each in below if each is not None)
        yield from ((command, each) for each in command.params)


def is_open(parameter: click.Parameter) -> bool:
    """Return whether the type alone does not say what values there are."""
    plain = isinstance(parameter.type, click.Choice | click.types.BoolParamType) or "range" in parameter.type.name
    return not (plain or getattr(parameter, "is_flag", False) or parameter.type.name in ("integer", "float"))


def test_every_parameter_is_completed_or_cannot_be() -> None:
    """A parameter that is new has to stand in one of the tables; and what stands there is a parameter."""
    names = {key for command, each in every_parameter() for key in (each.name, f"{command.name} {each.name}")}
    assert {*COMPLETERS, *NOTHING} <= names
    for command, each in every_parameter():
        if is_open(each):
            known = each.name in COMPLETERS or f"{command.name} {each.name}" in COMPLETERS
            assert known or each.name in NOTHING, f"{command.name}: {each.name}"


@pytest.mark.parametrize(
    "before",
    [
        *("check --target ", "check x --readable-by ", "serialize x --target "),
        *("migrate x --target=", "targets ", "targets 1.0.0 "),
    ],
)
def test_targets(before: str, offered: Ask) -> None:
    option = before.rpartition(" ")[2]
    found = offered(f"vhlo {before}")
    versions = {f"{option}{each.version}" for each in known_versions()}
    packages = {f"{option}{each.package}==" for each in known_releases()} | {f"{option}jax=="}
    words = {f"{option}{each}" for each in ("current", "minimum", "WEEK_4", "WEEK_12", "MAX", "NONE", "12w", "2y")}
    assert found.keys() >= versions | packages | words
    assert {value for value, (kind, _) in found.items() if kind == "partial"} == packages
    assert all(help_ for _, help_ in found.values())
    # Names of the settings stand where they may be used.
    assert (f"{option}fleet" in found) == before.startswith("check")


def test_releases(offered: Ask) -> None:
    found = offered("vhlo check --target jaxlib==0.4.3")
    expected = [str(each) for each in known_releases() if str(each).startswith("jaxlib==0.4.3")]
    assert list(found) == expected[::-1]
    assert found["jaxlib==0.4.31"] == ("plain", "StableHLO 1.4.2, 2024-07-29")
    assert list(offered("vhlo check --target jax==")) == [str(each) for each in known_jax_releases()][::-1]
    assert not offered("vhlo check --target numpy==")


@pytest.mark.whole_data("offers the newest releases")
def test_lists(offered: Ask) -> None:
    assert list(offered("vhlo check --target jaxlib==0.4.31,torch-mlir==2026")) == [
        "jaxlib==0.4.31,torch-mlir==20261001"
    ]
    assert list(offered("vhlo check --target fleet,fl")) == ["fleet,fleet_of_old"]
    assert list(offered("vhlo verify a b --engines xla,")) == ["xla,reference", "xla,iree"]
    assert list(offered("vhlo migrate --allow-relaxed=all,dot_algorithm,dot")) == [
        "--allow-relaxed=all,dot_algorithm,dot_algorithm_f8E4M3FN"
    ]


def test_settings_that_are_wrong_or_not_asked_for(folder: Path, offered: Ask) -> None:
    assert "fleet" in offered("vhlo check --target f")
    assert not offered("vhlo check --isolated --target f")
    (folder / "other.toml").write_text("[targets]\nfar = ['1.0.0']")
    assert set(offered("vhlo check --config other.toml --target f")) == {"far"}
    (folder / "vhlo-tools.toml").write_text("taget = 1")
    assert not offered("vhlo check --target f")
    assert "current" in offered("vhlo check --target c")


def test_features_entries_and_versions(offered: Ask) -> None:
    ids = {each.id for each in known_features()}
    for option in ("--deny", "--warn", "--allow"):
        assert offered(f"vhlo check {option} ").keys() >= ids | {"op", "alias", "custom_call"}
    explained = offered("vhlo check --explain ")
    assert explained.keys() >= ids
    assert "op" not in explained
    assert explained["tan"] == ("plain", "1.4.0: the op tan")
    relaxed = offered("vhlo serialize --allow-relaxed ")
    assert {"all", "dot_algorithm"} <= relaxed.keys()
    assert "tan" not in relaxed
    assert offered("vhlo spec show tan_v").keys() >= {"tan_v1", "tan_v2"}
    assert list(offered("vhlo spec diff 1.0.0 1.4")) == ["1.4.0"]


def test_choices_commands_and_options(offered: Ask) -> None:
    assert {"sarif", "junit"} <= offered("vhlo check --output-format ").keys()
    assert {"text", "json", "parquet"} == offered("vhlo store status --format ").keys()
    assert {"reference", "xla", "iree", "auto"} == offered("vhlo run --engine ").keys()
    assert {"jaxlib.mlir", "torch_mlir", "mlir"} == offered("vhlo check --provider ").keys()
    assert {"serialize", "spec", "store", "shims"} == offered("vhlo s").keys()
    assert {"status"} == offered("vhlo store s").keys()
    assert {"--target", "--trusted"} == offered("vhlo check --t").keys()
    assert {"bash", "zsh", "fish"} == offered("vhlo completion ").keys()


def test_paths_are_the_shells(offered: Ask) -> None:
    for line in ("vhlo check exp", "vhlo inspect exp", "vhlo serialize x -o exp", "vhlo check --baseline exp"):
        assert offered(line) == {"exp": ("file", "")}
    assert offered("vhlo check --config=exp") == {"exp": ("file", "--config=")}
    assert offered("vhlo migrate x --output-dir exp") == {"exp": ("dir", "")}


@pytest.mark.parametrize(
    ("line", "words", "word", "own"),
    [
        ("vhlo check ", ["vhlo", "check"], "", 0),
        ("vhlo check", ["vhlo"], "check", 0),
        ("vhlo --target=jaxlib==0.4", ["vhlo"], "--target=jaxlib==0.4", 17),
        ("vhlo --target jaxlib==", ["vhlo", "--target"], "jaxlib==", 8),
        ("vhlo --target 'jaxlib==0.4", ["vhlo", "--target"], "jaxlib==0.4", 0),
        ('vhlo --target="jaxlib==0.4', ["vhlo"], "--target=jaxlib==0.4", 9),
        ('vhlo \'a b\' "c \\" d" e\\ f ', ["vhlo", "a b", 'c " d', "e f"], "", 0),
        ("vhlo '' x", ["vhlo", ""], "x", 0),
        ("vhlo a\\", ["vhlo"], "a", 0),
        ("vhlo 'a b", ["vhlo"], "a b", 0),
        ("", [], "", 0),
    ],
)
def test_a_line_is_split_as_shells_do(line: str, words: list[str], word: str, own: int) -> None:
    assert words_before(line, "=:") == (words, word, own)
    assert words_before(line) == (words, word, 0)


@pytest.mark.parametrize("line", ["vhlo ", "vhlo check --target fl", "vhlo spec show a", "vhlo serialize --provider "])
def test_nothing_heavy_is_imported(line: str) -> None:
    """A person waits for it."""
    code = (
        "import sys; from vhlo_tools.cli.main import main; main([]); "
        "print(*(each for each in ('numpy', 'jaxlib', 'rich', 'pathspec') if each in sys.modules), file=sys.stderr)"
    )
    asking = {**os.environ, "_VHLO_COMPLETE": "bash_complete", "VHLO_COMPLETE_LINE": line, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=asking)
    assert result.stdout.strip()
    assert result.stderr.strip() == ""


# Real shells. In these, `vhlo` completes as ours does, and otherwise shows the words that it was given.
@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    program, completing = home / "bin" / "vhlo", home / "completing"
    program.parent.mkdir()
    warm_python().write_program(completing, COMMAND)
    program.write_text(
        f'#!/bin/sh\nif [ -n "$_VHLO_COMPLETE" ]; then exec {shlex.quote(str(completing))}; fi\n'
        'printf GIVEN\nprintf "<%s>" "$@"\necho .\n'
    )
    program.chmod(0o755)
    for shell in SHELLS:
        (home / f"vhlo.{shell}").write_bytes(vhlo("completion", shell, check=True).stdout)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


#: What is typed before Tab, what the shell makes of it, and what is given to vhlo when Enter follows.
TYPED = [
    ("vhlo check --target torch-mlir==2026", "20261001", "check><--target><torch-mlir==20261001"),
    ("vhlo check --target=torch-mlir==2026", "20261001", "check><--target=torch-mlir==20261001"),
    ("vhlo check --target tensorfl", "tensorflow==", "check><--target><tensorflow=="),
    ("vhlo check --target torch-mlir==20261001,WEEK_1", "WEEK_12", "check><--target><torch-mlir==20261001,WEEK_12"),
    ("vhlo check --deny range_l", "range_locations", "check><--deny><range_locations"),
    ("vhlo check exports/a", "program.mlir", "check><exports/a program.mlir"),
    ("vhlo check --config=vhlo-to", "vhlo-tools.toml", "check><--config=vhlo-tools.toml"),
    ("vhlo migra", "migrate", "migrate"),
]


def complete_in(session: ShellSession, typed: str, completed: str, given: str) -> None:
    """Type, press Tab, and see what vhlo is given."""
    session.type(f"{typed}\t", until=completed)
    session.type("\r", until=rf"GIVEN<{given}>\.")


def in_bash(environment: dict[str, str], folder: Path) -> ShellSession:
    rc = Path(environment["HOME"]) / "rc"
    rc.write_text(
        "PS1='READY> '\nbind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\n"
        "bind 'set show-all-if-ambiguous on'\nbind 'set completion-query-items 0'\nbind 'set page-completions off'\n"
        ". ~/vhlo.bash\n"
    )
    return ShellSession(["bash", "--noprofile", "--rcfile", str(rc), "-i"], environment, str(folder))


def in_zsh(environment: dict[str, str], folder: Path) -> ShellSession:
    (Path(environment["HOME"]) / ".zshrc").write_text(
        "PS1='READY> '\nunsetopt beep prompt_sp\nautoload -U compinit\ncompinit -u -D\n. ~/vhlo.zsh\n"
    )
    return ShellSession(["zsh", "-i"], environment, str(folder))


@pytest.mark.whole_data("offers the newest releases")
@pytest.mark.parametrize(("typed", "completed", "given"), TYPED, ids=[typed for typed, _, _ in TYPED])
@pytest.mark.parametrize("shell", [pytest.param("bash", marks=needs("bash")), pytest.param("zsh", marks=needs("zsh"))])
def test_a_terminal(
    shell: str, typed: str, completed: str, given: str, environment: dict[str, str], folder: Path
) -> None:
    with (in_bash if shell == "bash" else in_zsh)(environment, folder) as session:
        session.type("", until="READY> ")
        complete_in(session, typed, completed, given)


@pytest.mark.whole_data("offers the newest releases")
@needs("bash")
def test_bash_lists_what_there_is(environment: dict[str, str], folder: Path) -> None:
    with in_bash(environment, folder) as session:
        session.type("", until="READY> ")
        shown = session.type("vhlo check --target jaxlib==0.4.3\t", until=r"0\.4\.38[\s\S]*READY> ")
        assert "0.4.31" in shown
        # Quoted, it is one word for bash too; and it goes on where it was.
        session.type("\x15vhlo check --target 'torch-mlir==2026\t", until=r"20261001'")
        session.type("\r", until=r"GIVEN<check><--target><torch-mlir==20261001>\.")
        # Bash of those who have changed what separates words.
        session.type("COMP_WORDBREAKS=' '; echo CHANGED\r", until=r"CHANGED\s+READY> ")
        session.type("vhlo check --target torch-mlir==2026\t", until=r"20261001")
        session.type("\r", until=r"GIVEN<check><--target><torch-mlir==20261001>\.")


@pytest.mark.whole_data("offers the newest releases")
@needs("zsh")
def test_zsh_loads_the_script_from_a_folder(environment: dict[str, str], folder: Path) -> None:
    home = Path(environment["HOME"])
    (home / ".zfunc").mkdir()
    (home / "vhlo.zsh").rename(home / ".zfunc" / "_vhlo")
    (home / ".zshrc").write_text("PS1='READY> '\nfpath+=~/.zfunc\nautoload -U compinit\ncompinit -u -D\n")
    with ShellSession(["zsh", "-i"], environment, str(folder)) as session:
        session.type("", until="READY> ")
        complete_in(session, *TYPED[0])
        # No more can be inserted, so what there is is listed.
        listed = r"jaxlib==0\.12\.0 +-- StableHLO 1\.22\.0, 2026-10-16"
        session.type("vhlo check --target jaxlib==0.12.0\t", until=listed)


@pytest.mark.whole_data("offers the newest releases")
@needs("fish")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("vhlo check --target jaxlib==0.12", {"jaxlib==0.12.0", "jaxlib==0.12.0.1"}),
        ("vhlo check --target=jaxlib==0.12", {"--target=jaxlib==0.12.0", "--target=jaxlib==0.12.0.1"}),
        ("vhlo check --target tensorf", {"tensorflow=="}),
        ("vhlo check --target fleet,fl", {"fleet,fleet_of_old"}),
        ("vhlo check --deny range_", {"range_locations"}),
        ("vhlo check expor", {"exports/"}),
        ("vhlo check exports/", {"exports/a program.mlir"}),
        ("vhlo check ", {"exports/", "other.txt", "vhlo-tools.toml"}),
        ("vhlo check --config=vhlo-to", {"--config=vhlo-tools.toml"}),
        ("vhlo migrate x --output-dir expor", {"exports/"}),
        ("vhlo migra", {"migrate"}),
        ("vhlo check --tar", {"--target"}),
    ],
)
def test_fish(typed: str, expected: set[str], environment: dict[str, str], folder: Path) -> None:
    code = f"source ~/vhlo.fish; complete -C {shlex.quote(typed)}"
    command = ["fish", "--no-config", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True)
    assert {line.split("\t")[0] for line in result.stdout.splitlines()} == expected, result


@pytest.mark.parametrize("shell", [pytest.param(each, marks=needs(each)) for each in SHELLS])
def test_scripts_are_valid(shell: str, environment: dict[str, str]) -> None:
    script = Path(environment["HOME"]) / f"vhlo.{shell}"
    result = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_revisions(folder: Path, offered: Ask) -> None:
    assert offered("vhlo check --against ") == {}
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "trunk"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "tag", "v1"], check=True)
    assert set(offered("vhlo check --against ")) == {"trunk", "v1"}
    assert set(offered("vhlo check --against v")) == {"v1"}


# Installation


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
        environment.pop(name, None)
    monkeypatch.setenv("HOME", environment["HOME"])
    return Path(environment["HOME"])


@pytest.mark.whole_data("offers the newest releases")
@pytest.mark.parametrize(
    ("shell", "settings", "start"),
    [
        pytest.param("bash", ".bashrc", ["bash", "-i"], marks=needs("bash")),
        pytest.param("zsh", ".zshrc", ["zsh", "-i"], marks=needs("zsh")),
    ],
)
def test_one_command_installs_it(
    shell: str, settings: str, start: list[str], home: Path, environment: dict[str, str], folder: Path
) -> None:
    quiet = {
        "bash": "bind 'set bell-style none'\nbind 'set enable-bracketed-paste off'",
        "zsh": "unsetopt beep prompt_sp",
    }
    (home / settings).write_text(f"PS1='READY> '\n{quiet[shell]}")  # without a line break at its end
    assert main(["completion", shell, "--install"]) == 0
    once = (home / settings).read_text()
    assert main(["completion", shell, "--install"]) == 0
    assert (home / settings).read_text() == once
    assert once.count("# completion of vhlo\n") == 1
    with ShellSession(start, environment, str(folder)) as session:
        session.type("", until="READY> ")
        complete_in(session, *TYPED[0])


@needs("fish")
def test_one_command_installs_it_for_fish(
    home: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert main(["completion", "--install"]) == 0
    assert f"wrote {home}/.config/fish/completions/vhlo.fish" in capsys.readouterr().out
    command = ["fish", "-c", "complete -C 'vhlo migra'"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "migrate"


def test_the_line_of_another_folder_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (home / ".bashrc").write_text("alias a=b\n")
    assert main(["completion", "bash", "--install"]) == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data here"))
    assert main(["completion", "bash", "--install"]) == 0
    first, line = (home / ".bashrc").read_text().splitlines()
    assert first == "alias a=b"
    assert line == f". '{tmp_path}/data here/vhlo-tools/completion.bash'  # completion of vhlo"


def test_a_shell_that_is_not_known_must_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert main(["completion", "--install"]) == 2
    assert "name the shell: bash, zsh, fish" in capsys.readouterr().err


def test_settings_that_cannot_be_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".bashrc").mkdir()
    assert main(["completion", "bash", "--install"]) == 2
    assert ".bashrc" in capsys.readouterr().err
