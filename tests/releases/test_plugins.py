"""Plugins of PJRT: what those of TPUs and GPUs say, read and compile, on a machine that has neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.newer_ops import function, newer
from support.release_environments import python_of

import vhlo_tools as vt
from vhlo_tools.artifact import devices_of, without_entry
from vhlo_tools.cli.main import main
from vhlo_tools.compat import plugin_version
from vhlo_tools.releases import PackageRelease, ReleaseProcess
from vhlo_tools.spec import topology_of

#: The newest, and one of two years before; of each kind of device.
TPU, OLD_TPU = "libtpu==0.0.52", "libtpu==0.0.2"
GPU, OLD_GPU = "jax-cuda13-pjrt==0.12.0.1", "jax-cuda12-pjrt==0.4.35"
#: It describes no GPU that is not there.
BLIND = "jax-cuda12-pjrt==0.4.30"
#: The releases before, of and after each new version.
VERSIONS = {"libtpu==0.0.50": "1.21.0", "libtpu==0.0.51": "1.23.0", "libtpu==0.0.52": "1.24.0"}
SAXPY = EXAMPLES / "saxpy.mlir"


def library(release: str) -> Path:
    file = PackageRelease.parse(release).kind.library
    (found,) = Path(python_of(release)).parents[1].glob(f"lib/python*/site-packages/{file}")
    return found


@pytest.mark.releases
@pytest.mark.parametrize("release", VERSIONS)
def test_new_ops_are_read_since_their_version(release: str) -> None:
    version = vt.Version(VERSIONS[release])
    assert vt.resolve_target(release).version == version
    with ReleaseProcess(release) as process:
        assert process.describe()["stablehlo"] == str(version)
        for op, since in (("exp2", "1.23.0"), ("log2", "1.23.0"), ("fma", "1.24.0")):
            artifact = newer(function(op, "tensor<4xf32>"))
            answer = process.read(bytes(artifact))
            assert answer.succeeded == (version >= vt.Version(since)), answer
            if not answer.succeeded:
                assert f"unregistered operation 'vhlo.{op}_v1'" in answer.words
            # Older readers get what the op was before.
            assert process.read(bytes(vt.retarget(artifact, version, expand=True))).succeeded
            compiled = process.compile(bytes(vt.retarget(artifact, "1.9.0", expand=True)))
            assert compiled.succeeded, compiled


@pytest.mark.releases
@pytest.mark.parametrize("release", [TPU, OLD_TPU, GPU, OLD_GPU])
def test_what_is_read_is_predicted(release: str) -> None:
    version = vt.resolve_target(release).version
    with ReleaseProcess(release) as process:
        for path in sorted(FEATURES.glob("*.mlir")):
            try:
                artifact = vt.serialize(path)
            except vt.InvalidProgramError:
                continue  # newer than the library
            artifact = vt.retarget(artifact, artifact.requirements().downgradable_to)
            refused = [each for each in artifact.requirements().reader_findings(version) if each.level == "error"]
            assert process.read(bytes(artifact)).succeeded == (not refused), path.name


@pytest.mark.releases
@pytest.mark.parametrize("release", [f"{TPU}@v5e", f"{TPU}@tpu7x:2x2x1", f"{GPU}@h100", f"{GPU}@a100", f"{GPU}@b200"])
def test_a_device_compiles(release: str) -> None:
    assert vt.confirm(SAXPY, release)
    with ReleaseProcess(release) as process:
        artifact = vt.serialize(
            "func.func @main(%a: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024xf32> "
            "{ %0 = stablehlo.add %a, %a : tensor<1024xf32> return %0 : tensor<1024xf32> }"
        )
        answer = process.compile(bytes(artifact), optimized=True)
        assert answer.value["memory"]["aliased"] == answer.value["memory"]["arguments"] == 4096
        assert b"main" in answer.parts[0]


@pytest.mark.releases
def test_what_only_a_compiler_refuses_was_read() -> None:
    type_ = "tensor<4xf32>"
    called = f"%0 = stablehlo.custom_call @mine(%a) : ({type_}) -> {type_}"
    program = f"func.func @main(%a: {type_}) -> {type_} {{ {called}\n return %0 : {type_} }}"
    assert vt.confirm(program, TPU)
    refused = vt.confirm(program, f"{TPU}@v5e")
    assert not refused
    assert "Custom emitter for mine not found" in refused.words


@pytest.mark.releases
def test_several_devices() -> None:
    program = """module attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 8 : i32} {
      func.func @main(%a: tensor<8x4xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> tensor<8x4xf32> {
        %0 = stablehlo.add %a, %a : tensor<8x4xf32>
        return %0 : tensor<8x4xf32> } }"""
    artifact = vt.serialize(program)
    assert devices_of(artifact.file) == (1, 8)
    for release in (f"{TPU}@v5e", f"{GPU}@h100"):
        with ReleaseProcess(release) as process:
            answer = process.compile(bytes(artifact))
            # An eighth of 128 bytes; on a TPU, a tile.
            assert answer.value["memory"]["arguments"] == (512 if "tpu" in release else 16), answer
    refused = vt.confirm(artifact, f"{TPU}@v5e:2x2")
    assert "v5e:2x2 has 4 devices" in refused.words


@pytest.mark.releases
def test_a_plugin_that_needs_its_device(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(vt.ReleaseEnvironmentError, match="reads nothing on this machine: .*No visible GPU devices"):
        vt.confirm(vt.serialize(SAXPY), BLIND)
    assert main(["check", str(SAXPY), "--target", "1.0.0", "--confirm-with", BLIND]) == 2
    assert "No visible GPU devices" in " ".join(capsys.readouterr().out.split())


@pytest.mark.releases
def test_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = library(TPU)
    target = vt.resolve_target(f"plugin:{place}")
    assert (target.version, target.exact) == (vt.Version("1.24.0"), False)
    assert vt.resolve_target(f"plugin:{place},jaxlib==0.4.31").version == vt.Version("1.4.2")
    assert main(["serialize", str(SAXPY), "--target", f"plugin:{library(OLD_TPU)}", "-o", str(tmp_path / "a")]) == 0
    assert vt.open_artifact(tmp_path / "a").version == vt.resolve_target(OLD_TPU).version
    capsys.readouterr()


def test_what_is_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.so").write_bytes(b"\x7fELF")
    libc = next(each for each in map(Path, ("/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libc.so.6")) if each.exists())
    for named, said in (
        (tmp_path / "none.so", "no such file"),
        (tmp_path / "no.so", "cannot be asked: OSError: .*"),
        (libc, "cannot be asked: AttributeError: .*GetPjrtApi"),
        ("nobody", "no plugin 'nobody' is installed"),
    ):
        with pytest.raises(vt.UnknownTargetError, match=said):
            vt.resolve_target(f"plugin:{named}")
    with pytest.raises(vt.EngineError, match=r"does not answer within 0\.001 s"):
        vt.run(
            "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }",
            [1],
            engine=f"pjrt:{libc}",
            timeout=0.001,
        )
    assert main(["check", str(SAXPY), "--target", "plugin:nobody"]) == 2
    # A plugin is code: what is checked out may not name one.
    monkeypatch.chdir(tmp_path)
    for line in (
        'target = "plugin:./no.so"',
        'readable-by = "1.0.0,plugin:./no.so"',
        '[targets]\nx = ["plugin:no.so"]',
    ):
        Path("vhlo-tools.toml").write_text(line)
        assert main(["check"]) == 2
        assert "names a plugin, which is code that no file may run" in " ".join(capsys.readouterr().err.split())


def test_an_installed_plugin_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jax_plugins" / "mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('nothing of it is imported')")
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (tmp_path / "mine-1.0.dist-info" / "entry_points.txt").write_text("[jax_plugins]\nmine = jax_plugins.mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(vt.UnknownTargetError, match="has no library that is a plugin: name the library"):
        plugin_version("mine")
    for name in ("a.so", "b.so"):
        (package / name).write_bytes(b"\x7fELF GetPjrtApi")
    with pytest.raises(vt.UnknownTargetError, match=r"has a\.so, b\.so: name the library"):
        plugin_version("mine")
    (package / "b.so").unlink()
    with pytest.raises(vt.UnknownTargetError, match=r"a\.so: it cannot be asked"):
        plugin_version("mine")


def test_devices() -> None:
    assert topology_of("tpu", "v5e").name == "v5e:2x2"
    assert [topology_of("tpu", "v5e", each).name for each in (4, 5, 16, 17)] == [
        *("v5e:2x2", "v5e:2x4", "v5e:4x4", "v5e:4x8"),
    ]
    assert [topology_of("tpu", name, 16).name for name in ("v4", "v5p", "tpu7x")] == [
        *("v4:2x2x2", "v5p:2x2x4", "tpu7x:2x2x2"),
    ]
    assert topology_of("gpu", "h100", 8).name == "1x1x8"
    assert "core_count: 132 " in topology_of("gpu", "h100").options["target_config"]
    for kind, device, said in (
        ("tpu", "h100", "no TPU: expected v2,"),
        ("gpu", "v5e", "no GPU: expected v100,"),
        ("tpu", "v5e:2x2x1", "expected v5e, or one such as v5e:1x1"),
        ("tpu", "v4:2x2", "or one such as v4:1x1x1"),
        ("tpu", "v4:2x2x0", "no topology"),
        ("gpu", "h100:eight", "no topology"),
    ):
        with pytest.raises(vt.UnknownTargetError, match=said):
            topology_of(kind, device)  # type: ignore[arg-type]
    assert topology_of("tpu", "v5e", 8192).name == "v5e:64x128"
    with pytest.raises(vt.UnknownTargetError, match="8193 devices are too many"):
        topology_of("gpu", "h100", 8193)
    release = PackageRelease.parse("libtpu==0.0.52@v6e:2x4")
    assert (release.device, str(release), release.folder_name) == ("v6e:2x4", "libtpu==0.0.52@v6e:2x4", "libtpu-0.0.52")
    with pytest.raises(vt.ReleaseEnvironmentError, match="compiles for no device"):
        PackageRelease.parse("jaxlib==0.12.0.1@v5e")


def test_a_program_without_an_entry_is_the_same_otherwise() -> None:
    artifact = vt.serialize(EXAMPLES / "transformer_step.mlir")
    other = vt.open_artifact(without_entry(bytes(artifact)))
    assert '"main"' not in other.text()
    assert other.text().replace('"main_0"', '"main"') == artifact.text()
