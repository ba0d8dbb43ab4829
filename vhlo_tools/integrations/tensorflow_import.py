"""Import TensorFlow, without the output that it writes while it loads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

from vhlo_tools.integrations.extras import require_extra


def import_tensorflow(purpose: str) -> Any:
    """The output of loading is shown only if loading fails."""
    require_extra("tensorflow", purpose, "tensorflow")
    if "tensorflow" not in sys.modules:
        # Keep the warnings and errors that it logs later.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        with _quiet_unless_it_fails():
            import tensorflow  # noqa: F401
    return sys.modules["tensorflow"]


@contextmanager
def _quiet_unless_it_fails() -> Iterator[None]:
    """Hold back output to file descriptor 2, which includes output of C++; write it if the block raises."""
    try:
        stderr = os.dup(2)
    except OSError:
        yield
        return
    with TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
