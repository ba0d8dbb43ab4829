"""Connections, processes and threads: none inherits another's connections, and each ends without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.store_buckets import Bucket

from vhlo_tools.files import open_object, write_object

READ = """
import sys
from vhlo_tools.files import open_object, place
assert bytes(open_object(place(sys.argv[1]))) == b"bytes"
"""
FORK = """
import multiprocessing, os, sys
from vhlo_tools.files import open_object, place
url = place(sys.argv[1])
assert bytes(open_object(url)) == b"bytes"
child = os.fork()
if not child:
    assert bytes(open_object(url)) == b"bytes"
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(open_object, [url] * 4) == [b"bytes"] * 4
assert bytes(open_object(url)) == b"bytes"
"""
SPAWN = """
import multiprocessing, sys
from vhlo_tools.files import open_object, place
if __name__ == "__main__":
    url = place(sys.argv[1])
    assert bytes(open_object(url)) == b"bytes"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(open_object, [url]) == [b"bytes"]
"""


@pytest.mark.parametrize("program", [READ, FORK, SPAWN], ids=["read", "fork", "spawn"])
@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_processes_end_without_a_word(make_bucket: object, kind: str, program: str, tmp_path: object) -> None:
    bucket: Bucket = make_bucket(kind)  # type: ignore[operator]
    write_object(bucket / "object", [b"bytes"])
    file = os.path.join(str(tmp_path), "program.py")  # noqa: PTH118
    with open(file, "w") as out:  # noqa: PTH123
        out.write(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    # Warnings of what was not closed are shown; s3fs and others have some of their own when they are imported.
    command = [sys.executable, "-W", "always::ResourceWarning", file, str(bucket / "object")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_share_a_store(bucket: Bucket) -> None:
    whole = os.urandom(3 << 20)
    write_object(bucket / "object", [whole])
    data = open_object(bucket / "object")

    def piece(number: int) -> bool:
        at = number * 7919 % (len(whole) - 5000)
        return bytes(data[at : at + 5000]) == whole[at : at + 5000]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(piece, range(200)))
