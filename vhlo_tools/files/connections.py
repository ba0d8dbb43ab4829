"""Connections to object stores: their protocol, their failures as messages of one line, and counts of traffic."""

from __future__ import annotations

import atexit
import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import wraps
from importlib import import_module
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from vhlo_tools.errors import MissingExtraError, StoreError, installing
from vhlo_tools.records import dataclass
from vhlo_tools.system import after_fork
from vhlo_tools.version import VhloToolsError

if TYPE_CHECKING:
    from vhlo_tools.files.urls import StoreKind, Url

# Counts of requests and bytes between this process and stores


@dataclass(slots=True)
class Traffic:
    """Requests and bytes of objects; requests that a library repeated count once."""

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


_COUNT_LOCK = Lock()
_COUNTING: list[Traffic] = []


@contextmanager
def counted() -> Iterator[Traffic]:
    """Yield a counter of the requests of all threads of this process, until the block is left.

    >>> from vhlo_tools.files import counted
    >>> with counted() as traffic:
    ...     pass
    >>> traffic
    Traffic(requests=0, bytes_read=0, bytes_written=0)
    """
    traffic = Traffic()
    with _COUNT_LOCK:
        _COUNTING.append(traffic)
    try:
        yield traffic
    finally:
        with _COUNT_LOCK:
            # By identity: two counters may be equal.
            _COUNTING[:] = [each for each in _COUNTING if each is not traffic]


def count(*, read: int = 0, written: int = 0) -> None:
    with _COUNT_LOCK:
        for each in _COUNTING:
            each.requests += 1
            each.bytes_read += read
            each.bytes_written += written


# Bodies of requests, as aiohttp takes large ones


class Body(BytesIO):
    """Bytes as a file, which aiohttp sends in pieces and would close; a repeated request sends it again."""

    def close(self) -> None:
        """Keep it open."""


# Protocol of stores, and descriptions of objects

#: No store has longer objects.
_LONGEST: Final = 1 << 48
_NO_NAME: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Stamp:
    """One version of an object."""

    size: int
    token: str  # for conditional requests: an ETag, or a generation
    version_id: str | None = None  # name of this version after it is replaced, if the store keeps versions
    modified: float | None = None  # in seconds since 1970, if the store says so
    #: Properties that a write keeps, as the library of the store takes them: media type, metadata.
    kept: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.size <= _LONGEST or not self.token:
            raise ValueError(self)


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing, whose stamp lacks the kept properties."""

    url: Url
    stamp: Stamp

    def __post_init__(self) -> None:
        # No path has such a name either.
        if _NO_NAME.search(self.url.key):
            raise ValueError(self)


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition that must hold at the moment in which an object appears."""

    token: str | None = None  # of the version that is replaced; None if there must be no object
    always: bool = False  # whether nothing need hold


#: The seconds that closing connections may take.
CLOSING: Final = 2

#: There must be no object of that key.
NEW = Condition()
#: An object is replaced, if there is one.
ANY = Condition(always=True)


class Upload(Protocol):
    """An object that is being written in parts, and appears with :meth:`finish`."""

    def add(self, part: bytes) -> None:
        """Write the next part; parts may be on their way at the same time."""

    def finish(self) -> Stamp:
        """Let the object appear, if the condition holds."""

    def abort(self) -> None:
        """Remove the written parts; the store keeps nothing."""


class Store(Protocol):
    """Objects of one account, or of one process for ``memory``; threads may share a store.

    Methods raise :class:`FileNotFoundError` for a missing object, :class:`~vhlo_tools.files.connections.ConditionError`
    if a condition does not hold, and :class:`~vhlo_tools.errors.StoreError` for everything else.
    """

    def stamp(self, url: Url) -> Stamp:
        """Return the present version of an object."""

    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        """Return up to ``size`` bytes at an offset, of the version with ``token`` if it is given."""

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        """Yield the objects whose keys begin with the key of ``prefix``, page by page in the order of the store."""

    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        """Write an object in one request; it has ``metadata`` and the kept properties of ``old``."""

    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Upload:
        """Begin to write an object in parts."""

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        """Delete an object, if it is there."""

    def close(self) -> None:
        """Close the connections; the store is not used afterwards."""

    @property
    def is_conditional(self) -> bool | None:
        """Whether the store is known to honour the conditions of writes; ``None`` if it has to be tried."""


# Errors of stores as messages of one line: what was found, and what to do
#
# The libraries of stores raise errors of dozens of classes. Each store gives class, status and code of an error; one
# table maps these to a message. Messages contain neither secrets nor signed URLs, only the user's own URL and a code.


class ConditionError(VhloToolsError):
    """The condition of a request does not hold; only its caller knows what that means."""


class EmptyRangeError(VhloToolsError):
    """A range of bytes begins behind the end of an object, as every range of an empty one does."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The relevant part of an error of a store's library."""

    kind: StoreKind
    status: int | None  # of the HTTP response, if there was one
    code: str  # the store's own code, or the name of the class of the error


#: The commands that show with which credentials one works.
_WHO: Final[dict[StoreKind, str]] = {
    "s3": "aws sts get-caller-identity",
    "gcs": "gcloud auth list",
    "azure": "az account show",
    "memory": "",
}

_RANGE: Final = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})")


def whole_size(said: str | None, start: int, data: bytes) -> int:
    """Return the size of an object of which a range came; ``said`` is what the answer says of it."""
    if not start and (said is None or not data):
        return len(data)
    found = _RANGE.fullmatch(said or "")
    if found is None or int(found[1]) != start:
        raise ValueError(said)
    return int(found[2])


_Method = TypeVar("_Method", bound=Callable[..., Any])


def understood(method: _Method) -> _Method:
    """Make a typed error of what comes of answers in which something is missing, or is none of its kind."""

    @wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except VhloToolsError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            url = arguments[0] if arguments and not isinstance(arguments[0], bytes) else self._url
            raise StoreError(
                f"{url}: the store sent an answer that no such store sends ({type(error).__name__}): check the endpoint"
            ) from error

    return call  # type: ignore[return-value]


_MISSING: Final = frozenset({"NoSuchKey", "NoSuchVersion", "BlobNotFound", "FileNotFoundError", "ResourceNotFound"})
#: The codes and statuses of conditions that do not hold.
_CONDITIONS: Final = frozenset(
    {
        "PreconditionFailed",
        "ConditionalRequestConflict",
        "ConditionNotMet",
        "BlobAlreadyExists",
        "FileExistsError",
        "TargetConditionNotMet",
    }
)

_REFUSED: Final = frozenset({304, 412})
_BEHIND: Final = 416

#: What is said of failures, with ``{bucket}`` and ``{who}``, the command that shows the current user; the codes of
#: stores and names of classes of errors for which it is said; and the statuses, relevant if the code is in no line.
_REASONS: Final[tuple[tuple[str, str, tuple[int, ...]], ...]] = (
    (
        "the credentials have expired: renew them; `{who}` shows what is used",
        "ExpiredToken ExpiredTokenException TokenRefreshRequired RequestExpired UnauthorizedSSOTokenError SSOError "
        "TokenRetrievalError SSOTokenLoadError RefreshError ReauthFailError LoginRefreshRequired LoginTokenLoadError",
        (),
    ),
    (
        "no credentials were found: sign in, or set them in the environment; `{who}` shows what is used",
        "NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound DefaultCredentialsError "
        "CredentialUnavailableError NoAuthenticationInformation NoCredentials",
        (),
    ),
    (
        "the store does not accept the credentials: `{who}` shows what is used",
        "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken InvalidClientTokenId UnrecognizedClientException "
        "AuthenticationFailed InvalidAuthenticationInfo ClientAuthenticationError InvalidSecurity",
        (401,),
    ),
    (
        "the clock of this machine differs too much from that of the store: set it",
        "RequestTimeTooSkewed ClockSkewDetected",
        (),
    ),
    (
        "there is no bucket or container {bucket}: check its name and the account",
        "NoSuchBucket ContainerNotFound BucketNotFound",
        (),
    ),
    (
        "{bucket} is in another region than the one that was asked: set AWS_REGION to its region",
        # The last is what botocore ends in that follows redirects without a region.
        "PermanentRedirect TemporaryRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException Redirect "
        "RecursionError",
        (301, 307),
    ),
    (
        "no region or endpoint is set: set AWS_REGION, or AWS_ENDPOINT_URL_S3 for a store elsewhere",
        "NoRegionError",
        (),
    ),
    (
        "access is denied: the credentials lack a permission for it, or for listing {bucket}; `{who}` shows what is "
        "used",
        "AccessDenied AllAccessDisabled AccountProblem AuthorizationFailure AuthorizationPermissionMismatch Forbidden "
        "PermissionError InsufficientAccountPermissions PublicAccessNotPermitted",
        (403,),
    ),
    (
        "it is archived and cannot be read as it is: restore it first",
        "InvalidObjectState BlobArchived BlobBeingRehydrated",
        (),
    ),
    (
        "the store takes no more requests for now, in spite of waiting and repeating: try it again later",
        "SlowDown Throttling ThrottlingException RequestLimitExceeded ServerBusy TooManyRequests "
        "BandwidthLimitExceeded",
        (429, 503),
    ),
    (
        "the store did not answer in time, in spite of repeating: try it again; check the network",
        "ReadTimeoutError ConnectTimeoutError FSTimeoutError TimeoutError RequestTimeout OperationTimedOut "
        "ServerTimeoutError ServiceResponseTimeoutError ServiceRequestTimeoutError SocketTimeoutError "
        "ConnectionTimeoutError",
        (408, 504),
    ),
    (
        "the store cannot be reached: check the network, the name of the bucket, and the endpoint if one is set",
        "EndpointConnectionError ConnectionClosedError ConnectionError ServiceRequestError ServiceResponseError "
        "SSLError ClientConnectorError ClientConnectorDNSError ClientOSError ServerDisconnectedError TransportError "
        "HTTPClientError ClientConnectorCertificateError ProxyConnectionError ProxyError IncompleteReadError "
        "ClientPayloadError ResponseStreamingError IncompleteRead",
        (),
    ),
    (
        "the store sent more than was asked of it, as it may ignore ranges or decompress objects: check the endpoint",
        "OversizeError",
        (),
    ),
    ("the store leads from one address to the next: check the endpoint", "TooManyRedirects TooManyRedirectsError", ()),
    ("the store failed, in spite of repeating: try it again later", "InternalError ResponseParserError", (500, 502)),
    ("the store does not support this request", "NotImplemented", (501,)),
    (
        "the name is not one that the store takes",
        "KeyTooLongError InvalidBucketName ParamValidationError InvalidUri",
        (),
    ),
)


def as_error(failure: Failure, url: Url) -> Exception:
    if failure.code in _CONDITIONS or failure.status in _REFUSED:
        return ConditionError(f"{url}: the condition does not hold")
    if failure.status == _BEHIND:
        return EmptyRangeError(f"{url}: the range begins behind the end")
    text = next((text for text, codes, _ in _REASONS if failure.code in codes.split()), None)
    if text is None and (failure.code in _MISSING or failure.status == 404):
        # gcsfs does not say which of them is missing.
        what = "object, or no such bucket" if failure.kind == "gcs" else "object"
        return FileNotFoundError(errno.ENOENT, f"there is no such {what}", str(url))
    if text is None:
        refused = "the store refused the request"
        text = next((text for text, _, statuses in _REASONS if failure.status in statuses), refused)
    text = text.format(bucket=url.bucket, who=_WHO[failure.kind])
    said = ", ".join(str(each) for each in (failure.code, failure.status) if each)
    return StoreError(f"{url}: {text} ({said})")


# Connections to stores, one for each account and process, made on first use

#: The module of each kind, its class, and the package that it needs.
_STORES: Final[dict[StoreKind, tuple[str, str, str]]] = {
    "s3": ("s3_store", "S3Store", "s3fs"),
    "gcs": ("gcs_store", "GcsStore", "gcsfs"),
    "azure": ("azure_store", "AzureStore", "adlfs"),
    "memory": ("memory_store", "MemoryStore", "fsspec"),
}

_LOCK = Lock()
# A forked process inherits connections that it must not use: they are kept by process.
_OPEN: dict[tuple[int, StoreKind, str], Store] = {}


def store_of(url: Url) -> Store:
    """Credentials and endpoints are those of the environment and of fsspec's configuration at the first use."""
    key = (os.getpid(), url.kind, url.account)
    found = _OPEN.get(key)
    if found is None:
        with _LOCK:
            found = _OPEN.get(key)
            if found is None:
                found = _OPEN[key] = _connect(url)
    return found


def forget_connections() -> None:
    """Connect anew at the next use, with the settings and the credentials of then."""
    with _LOCK:
        mine = [key for key in _OPEN if key[0] == os.getpid()]
        closing = [_OPEN.pop(key) for key in mine]
    for store in closing:
        # Of a connection that does not close in time, the process closes what is left.
        with suppress(Exception):
            store.close()


def _connect(url: Url) -> Store:
    module, name, package = _STORES[url.kind]
    try:
        made: Store = getattr(import_module(f"vhlo_tools.files.{module}"), name)(url)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{url}: {package} is needed for {url.scheme}:// and cannot be imported ({error}): {installing('remote')}"
        ) from error
    return made


def _renew_locks() -> None:
    global _COUNT_LOCK, _LOCK
    # Another thread of the parent may have held them. Connections of the parent stay as they are: closing them here
    # would wait for a thread that only the parent has.
    _COUNT_LOCK, _LOCK = Lock(), Lock()


after_fork(_renew_locks)
atexit.register(forget_connections)
