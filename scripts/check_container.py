"""Build the image of the Dockerfile, and let it check a good program, a blocked one and a damaged one.

It is built by docker or podman, where one answers. Otherwise by buildah, without a daemon; and where the base image
cannot be had from its registry, on a Debian made of packages, with its Python, by mmdebstrap, which needs root. What
is missing of these two is installed on a Debian by root. Where nothing can build it, it says so, and exits with 0.

The instructions are the same whatever builds them; what differs is the base, and that buildah's chroots are not as
closed as containers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

TAG: Final = "localhost/vhlo-tools:check"
BASE: Final = "localhost/vhlo-tools-base:check"
#: What a Debian needs beside its least: Python, with what makes environments, and the authorities of the index.
PACKAGES: Final = "python3,python3-venv,ca-certificates"
#: Settings of pip, and authorities, that hold on this machine and so must hold while the image is built.
SETTINGS: Final = ("/etc/pip.conf", "/etc/ssl/certs")


class ContainerError(Exception):
    """The image cannot be built, or does not do what it must."""


def run(*command: str, cwd: Path = ROOT, code: int = 0) -> str:
    """Run a command and return what it prints; raise ContainerError unless it exits with ``code``."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode != code:
        raise ContainerError(f"{' '.join(command)} ended with {done.returncode}, expected {code}:\n{said[-3000:]}")
    return said


def answers(*command: str) -> bool:
    """Return whether a program is there, and a command of it succeeds."""
    return shutil.which(command[0]) is not None and not subprocess.run(command, capture_output=True).returncode


def install(*programs: str) -> bool:
    """Install what is missing of some programs of Debian, if this is root; return whether all are there."""
    missing = [each for each in programs if shutil.which(each) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True)
        subprocess.run(["apt-get", "-qq", "install", "--no-install-recommends", *missing], capture_output=True)
    return all(shutil.which(each) for each in programs)


def buildah(work: Path) -> list[str]:
    """Return the command of buildah, whose images are all in the folder ``work``, and go with it."""
    os.environ["BUILDAH_ISOLATION"] = "chroot"
    return ["buildah", "--storage-driver", "vfs", "--root", f"{work / 'images'}", "--runroot", f"{work / 'state'}"]


def make_base(work: Path) -> None:
    """Make the base image of packages."""
    packed = work / "base.tar"
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(packed))
    by = buildah(work)
    made = run(*by, "from", "scratch").split()[-1]
    run(*by, "add", made, str(packed), "/")
    packed.unlink()
    run(*by, "run", made, "--", "ln", "-s", "/usr/bin/python3", "/usr/local/bin/python")
    run(*by, "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", made)
    run(*by, "commit", "--rm", "--quiet", made, BASE)


def build(work: Path) -> list[str] | None:
    """Build the image, and return the command that runs it on ``work/programs``; ``None`` if nothing can."""
    mounted = ["--volume", f"{work / 'programs'}:/work:ro"]
    for engine in ("docker", "podman"):
        if answers(engine, "info"):
            print(f"building the image by {engine}", flush=True)
            run(engine, "build", "--tag", TAG, ".")
            return [engine, "run", "--rm", *mounted, TAG]
    if not install("buildah"):
        return None
    by = buildah(work)
    settings = [part for path in SETTINGS if Path(path).exists() for part in ("--volume", f"{path}:{path}:ro")]
    options = ["--network", "host", *settings, "--tag", TAG]
    print("building the image by buildah", flush=True)
    try:
        run(*by, "bud", *options, ".")
    except ContainerError as error:
        if os.geteuid() or not install("mmdebstrap"):
            print(f"the base image cannot be had, nor made:\n{error}")
            return None
        print("the base image cannot be had: building on a Debian of packages", flush=True)
        make_base(work)
        run(*by, "bud", "--build-arg", f"BASE={BASE}", *options, ".")
    made = run(*by, "from", TAG).split()[-1]
    return [*by, "run", *mounted, made, "--", "vhlo"]


def check_image(vhlo: Sequence[str], programs: Path) -> None:
    """Run the gate of an image on programs, and raise ContainerError unless it answers.

    Args:
        vhlo: The command that runs ``vhlo`` in the image.
        programs: The folder that is mounted there.
    """
    shutil.copy(ROOT / "examples" / "saxpy.mlir", programs)
    said = run(*vhlo, "check", "saxpy.mlir", "--target", "1.0.0")
    if "no errors" not in said:
        raise ContainerError(f"the gate says nothing of a good program: {said}")
    shutil.copy(ROOT / "tests" / "programs" / "features" / "tan.mlir", programs)
    said = run(*vhlo, "check", ".", "--target", "1.0.0", code=1)
    if "tan, since 1.4.0" not in said:
        raise ContainerError(f"the gate does not name what is newer than the target: {said}")
    (programs / "cut.mlirbc").write_bytes((ROOT / "examples" / "keras_mlp.mlirbc").read_bytes()[:200])
    run(*vhlo, "check", "cut.mlirbc", "--target", "1.0.0", code=2)
    for place in ("/work/x.mlirbc", "/opt/vhlo-tools/x.mlirbc"):
        said = run(*vhlo, "serialize", "saxpy.mlir", "-o", place, code=2)
        if "Read-only file system" not in said and "Permission denied" not in said:
            raise ContainerError(f"{place} can be written: {said}")


def main() -> int:
    """Check the image of this checkout."""
    with tempfile.TemporaryDirectory(prefix="vhlo-tools-container-") as name:
        work = Path(name)
        programs = work / "programs"
        programs.mkdir()
        # Whoever runs in the container is nobody here.
        work.chmod(0o755)
        try:
            vhlo = build(work)
            if vhlo is None:
                print("neither docker, podman nor buildah can build an image here: the Dockerfile was only linted")
                return 0
            check_image(vhlo, programs)
        except ContainerError as error:
            print(f"check_container: {error}", file=sys.stderr)
            return 1
    print("the image checks programs: 0 for a good one, 1 for a blocked one, 2 for a damaged one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
