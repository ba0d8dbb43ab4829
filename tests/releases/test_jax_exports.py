"""Files of old releases of jax with their artifacts moved by us, loaded and called by those releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import EXAMPLES, ROOT
from support.release_environments import run_in

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.files import read_signature

pytestmark = pytest.mark.long

SESSION = Path(__file__).with_name("jax_session.py")
# Each wrote other fields than the one before.
RELEASES = ("0.4.30", "0.4.38", "0.5.3", "0.6.2", "0.7.2", "0.9.2", "0.10.2")
NAMES = ("anywhere", "plain", "sharded", "symbolic")


@pytest.mark.releases
@pytest.mark.parametrize("release", RELEASES)
def test_an_old_release_loads_what_was_moved(release: str, tmp_path: Path) -> None:
    written = run_in(f"jax=={release}", SESSION, "write", tmp_path)
    assert written.returncode == 0, written.stderr.decode()
    files = {path.stem: JaxContainer.open(path) for path in sorted(tmp_path.iterdir())}
    assert tuple(files) == NAMES
    signatures = {name: read_signature(container.export) for name, container in files.items()}
    assert signatures["plain"].in_tree == "(({'x': f32[2,3]}, f32[2,3], f32[]), {})"
    assert signatures["plain"].out_tree == "{'rest': [f32[2,3]], 'sum': f32[]}"
    assert [each.main for each in signatures["plain"].arguments] == [0, None, 1]
    assert signatures["symbolic"].in_tree == "((f32[rows,3],), {})"
    assert signatures["anywhere"].main_arguments == ("platform index", "args[0]")
    assert files["sharded"].export.devices == 2
    # Until jax 0.7.2 as XLA has it.
    assert signatures["sharded"].arguments[0].sharding in (
        "{devices=[2,1]<=[2]}",
        "P('rows') over rows=2 in device memory",
    )
    assert signatures["plain"].arguments[0].sharding is None

    moved = []
    for name, container in files.items():
        newest = container.version
        oldest = max(artifact.requirements().downgradable_to for artifact in container.artifacts)
        for version in {oldest, vt.Version("0.14.0"), newest}:
            if version >= oldest:
                path = tmp_path / f"{name}.{version}.jax_export"
                container.retargeted(version).save(path)
                assert {each.version for each in JaxContainer.open(path).artifacts} == {version}
                moved.append(path)
        stripped = tmp_path / f"{name}.stripped.jax_export"
        container.stripped().save(stripped)
        moved.append(stripped)
    called = run_in(f"jax=={release}", SESSION, "call", *moved)
    assert called.returncode == 0, called.stderr.decode()
    lines = called.stdout.decode().splitlines()
    assert [line.split()[-1] for line in lines] == [path.name for path in moved]
    assert {line.split()[-1].partition(".")[0] for line in lines if "derivative" in line} == {"anywhere", "plain"}


@pytest.mark.releases
def test_which_other_releases_call_a_file(tmp_path: Path) -> None:
    """The artifact is not all that a release must know: as docs/frameworks.md says, the file around it stays."""
    written = run_in("jax==0.10.2", SESSION, "write", tmp_path)
    assert written.returncode == 0, written.stderr.decode()
    for name in NAMES:
        path = tmp_path / f"{name}.jax_export"
        JaxContainer.open(path).retargeted(vt.resolve_target("jaxlib==0.9.2").version).save(path, force=True)
    files = [tmp_path / f"{name}.jax_export" for name in NAMES]
    called = run_in("jax==0.9.2", SESSION, "call", *files)
    assert called.returncode == 0, called.stderr.decode()
    older = run_in("jax==0.7.2", SESSION, "call", files[0])
    assert older.returncode == 1
    assert "was exported for 0 devices" in older.stderr.decode()


WITHOUT_JAX = """
import sys
sys.path.insert(0, sys.argv[1])
from vhlo_tools.errors import MissingExtraError
from vhlo_tools.integrations.jax import export, retarget, strip
print(retarget(sys.argv[2], "1.0.0").version, len(strip(sys.argv[2]).artifacts))
try:
    export(abs)
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.releases
def test_files_are_moved_where_there_is_no_jax() -> None:
    session = run_in("jaxlib==0.10.2", WITHOUT_JAX, ROOT, EXAMPLES / "jax_store" / "loss.jax_export")
    assert session.returncode == 0, session.stderr.decode()
    moved, message = session.stdout.decode().splitlines()
    assert moved == "1.0.0 3"
    assert message.startswith("exporting a function of JAX needs jax")
    assert message.endswith("not installed: pip install '.[jax]' in a clone of vhlo_tools")
