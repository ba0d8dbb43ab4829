"""Places: the source or destination of a program, a local path or the URL of an object.

Every path of a user goes through :func:`place` before anything is done with it, because :class:`pathlib.Path` makes
``s3:/bucket`` of ``s3://bucket``.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from os import PathLike
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, Literal, TypeGuard
from urllib.parse import unquote

from vhlo_tools.errors import InvalidUrlError
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass

StoreKind = Literal["s3", "gcs", "azure", "memory"]

#: The schemes of objects, and the kind of the store that has them.
_SCHEMES: Final[dict[str, StoreKind]] = {
    "s3": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "memory": "memory",
}
_SUPPORTED: Final = "s3://, gs://, az:// (abfs://, abfss://), memory:// and file://"
_URL: Final = pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
#: A URL that was made a Path, which has only one slash left.
_COLLAPSED: Final = pattern(rf"({'|'.join(_SCHEMES)}):/[^/]")
#: What may follow in a URL that was copied from a browser or a log, and is as good as a password.
_SECRET: Final = pattern(
    r"[?&](?:sig|(?:x-(?:amz|goog)-)?signature|x-amz-security-token|(?:access_)?token|password|secret)=", re.IGNORECASE
)
_USER: Final = pattern(r"(?<=://)[^/@]*:[^/@]*@")
_AZURE_HOSTS: Final = pattern(r"[A-Za-z0-9]+(\.(dfs|blob)\.[a-z0-9.]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Url:
    """The URL of an object, or of all objects whose keys begin alike.

    A key is what stands in the URL, letter for letter: ``%``, ``?``, ``#`` and spaces have no special meaning, as in
    the command lines of the stores.

    Attributes:
        scheme: The scheme, as it was given.
        bucket: The bucket or container; empty for ``memory``.
        key: The key of the object, which is empty for a whole bucket.
        account: Of Azure, the account with its host, if the URL has it.
    """

    scheme: str
    bucket: str
    key: str
    account: str = ""

    @property
    def kind(self) -> StoreKind:
        """The kind of its store."""
        return _SCHEMES[self.scheme]

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of its name, such as ``.mlirbc``."""
        return PurePosixPath(self.name).suffix

    @property
    def is_prefix(self) -> bool:
        """Whether it names no object, but all whose keys begin with its key: it is a bucket, or ends with a slash."""
        return not self.key or self.key.endswith("/")

    @property
    def parent(self) -> Url:
        """The URL of what would be its folder, with a slash at the end."""
        folder, slash, _ = self.key.rstrip("/").rpartition("/")
        return self.with_key(folder + slash)

    def as_object(self) -> Url:
        """Return it, if it can name an object.

        Raises:
            InvalidUrlError: If it is a bucket, or ends with a slash.
        """
        if self.is_prefix:
            raise InvalidUrlError(f"{self} is a bucket or a folder of one: expected the URL of an object")
        return self

    def with_key(self, key: str) -> Url:
        """Return the URL of another key in the same bucket."""
        return replace(self, key=key)

    def with_suffix(self, suffix: str) -> Url:
        """Return the URL with another suffix of its name."""
        folder, slash, name = self.key.rpartition("/")
        return self.with_key(f"{folder}{slash}{name.removesuffix(self.suffix)}{suffix}")

    def __truediv__(self, name: str) -> Url:
        return self.with_key(f"{self.key}{'' if self.is_prefix else '/'}{name}")

    def __str__(self) -> str:
        account = f"@{self.account}" if self.account else ""
        head = f"{self.scheme}://{self.bucket}{account}"
        return f"{head}/{self.key}" if self.bucket else head + self.key

    def __fspath__(self) -> str:
        return str(self)


#: Where something is or goes.
Place = Path | Url


def is_url(text: object) -> bool:
    """Whether a path begins with a scheme, supported or not."""
    return isinstance(text, str) and _URL.match(text) is not None


def plain_path(path: str) -> str:
    """Convert the URL of a file to its path; other paths and URLs stay."""
    return str(place(path)) if is_url(path) else path


def is_path(given: object) -> TypeGuard[str | PathLike[str]]:
    """Whether an argument is a string, a path, or a ``UPath``, which is no ``os.PathLike``."""
    return isinstance(given, str | PathLike) or _is_universal(given)


def _is_universal(given: object) -> bool:
    return all(hasattr(given, name) for name in ("protocol", "storage_options", "path"))


def place(given: str | PathLike[str] | Url) -> Place:
    """``file:`` URLs are local paths, with or without percent-encoding."""
    if isinstance(given, Url):
        return given
    if isinstance(given, PurePath):
        return _local(given)
    if _is_universal(given):
        return _of_universal(given)
    text = os.fspath(given)
    found = _URL.match(text)
    if found is None:
        return Path(text)
    scheme = found[1].lower()
    if scheme == "file":
        return _local_of_file(text)
    if scheme not in _SCHEMES:
        raise InvalidUrlError(
            f"{_redacted(text)}: {scheme}:// is not supported: expected {_SUPPORTED}"
            + ("; download the file first" if scheme in ("http", "https") else "")
        )
    return _parsed(scheme, text[found.end() :], text)


def local_path(given: str | PathLike[str], what: str) -> Path:
    """``what`` describes the path in the message of the error about a URL: ``a suite``."""
    found = place(given)
    if isinstance(found, Url):
        raise InvalidUrlError(f"{found}: {what} must be local: copy it to this machine, or write it there and copy it")
    return found


def _local(path: PurePath) -> Path:
    text = str(path)
    if _COLLAPSED.match(text) and not os.path.lexists(text):
        raise InvalidUrlError(f"{text} was a URL before it became a Path, which drops a slash: pass the URL as a str")
    return path if isinstance(path, Path) else Path(path)


def _of_universal(given: Any) -> Place:
    if options := sorted(given.storage_options):
        raise InvalidUrlError(
            f"{_redacted(str(given))} has settings of its own ({', '.join(options)}), which are not used: give them "
            "in the "
            f"environment, or in fsspec's configuration"
        )
    return place(str(given))


def _local_of_file(text: str) -> Path:
    _, _, rest = text.partition("://")
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        raise InvalidUrlError(f"{text} is a file of the machine {host}: expected file:///PATH")
    decoded = f"/{unquote(path)}"
    # Some write them as they are.
    return Path(f"/{path}") if os.path.lexists(f"/{path}") else Path(decoded)


def _parsed(scheme: str, rest: str, text: str) -> Url:
    shown = _redacted(text)
    if shown != text:
        raise InvalidUrlError(
            f"{shown} has credentials in it, which are not used: give them in the environment, where nobody sees them"
        )
    if _SCHEMES[scheme] == "memory":
        return Url(scheme, "", rest)
    bucket, _, key = rest.partition("/")
    account = ""
    if _SCHEMES[scheme] == "azure" and "@" in bucket:
        bucket, _, account = bucket.partition("@")
        if not _AZURE_HOSTS.fullmatch(account):
            raise InvalidUrlError(f"{shown}: {account} is not an account: expected ACCOUNT.dfs.core.windows.net")
    if not bucket:
        raise InvalidUrlError(f"{shown} names no bucket: expected {scheme}://BUCKET/KEY")
    if any(sign in bucket for sign in "*?[]@ \\"):
        raise InvalidUrlError(f"{shown}: {bucket} is not the name of a bucket; only keys may be globs")
    return Url(scheme, bucket, key, account)


def _redacted(text: str) -> str:
    """Return a URL for display, without what may be a password or a signature."""
    text = _USER.sub("***@", text)
    begins = text.find("?")
    return f"{text[:begins]}?***" if begins >= 0 and _SECRET.search(text, begins) else text
