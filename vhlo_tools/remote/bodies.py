"""Bodies of requests, as aiohttp takes large ones."""

from __future__ import annotations

from io import BytesIO


class Body(BytesIO):
    """Bytes as a file, which aiohttp sends in pieces and would close; a repeated request sends it again."""

    def close(self) -> None:
        """Keep it open."""
