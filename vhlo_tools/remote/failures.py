"""Errors of stores as messages of one line: what was found, and what to do.

The libraries of stores raise errors of dozens of classes. Each store gives class, status and code of an error; one
table maps these to a message. Messages contain neither secrets nor signed URLs, only the user's own URL and a code.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import StoreError, VhloToolsError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.remote.places import StoreKind, Url


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


@dataclass(frozen=True, slots=True)
class _Reason:
    """A message for some failures."""

    text: str  # ``{bucket}`` is the bucket, ``{who}`` the command that shows the current user
    codes: frozenset[str]  # codes of the stores, and names of classes of errors
    statuses: frozenset[int] = frozenset()  # relevant if the code belongs to no reason


def _reason(text: str, codes: str = "", *statuses: int) -> _Reason:
    return _Reason(text, frozenset(codes.split()), frozenset(statuses))


#: The commands that show with which credentials one works.
_WHO: Final[dict[StoreKind, str]] = {
    "s3": "aws sts get-caller-identity",
    "gcs": "gcloud auth list",
    "azure": "az account show",
    "memory": "",
}

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

_REASONS: Final = (
    _reason(
        "the credentials have expired: renew them; `{who}` shows what is used",
        "ExpiredToken ExpiredTokenException TokenRefreshRequired RequestExpired UnauthorizedSSOTokenError "
        "TokenRetrievalError "
        "SSOTokenLoadError SSOError RefreshError ReauthFailError LoginRefreshRequired LoginTokenLoadError",
    ),
    _reason(
        "no credentials were found: sign in, or set them in the environment; `{who}` shows what is used",
        "NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound DefaultCredentialsError "
        "CredentialUnavailableError NoAuthenticationInformation NoCredentials",
    ),
    _reason(
        "the store does not accept the credentials: `{who}` shows what is used",
        "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken InvalidClientTokenId UnrecognizedClientException "
        "AuthenticationFailed InvalidAuthenticationInfo ClientAuthenticationError InvalidSecurity",
        401,
    ),
    _reason(
        "the clock of this machine differs too much from that of the store: set it",
        "RequestTimeTooSkewed ClockSkewDetected",
    ),
    _reason(
        "there is no bucket or container {bucket}: check its name and the account",
        "NoSuchBucket ContainerNotFound BucketNotFound",
    ),
    _reason(
        "{bucket} is in another region than the one that was asked: set AWS_REGION to its region",
        "PermanentRedirect TemporaryRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException Redirect "
        # What botocore ends in that follows redirects without a region.
        "RecursionError",
        301,
        307,
    ),
    _reason(
        "no region or endpoint is set: set AWS_REGION, or AWS_ENDPOINT_URL_S3 for a store elsewhere", "NoRegionError"
    ),
    _reason(
        "access is denied: the credentials lack a permission for it, or for listing {bucket}; `{who}` shows what is "
        "used",
        "AccessDenied AllAccessDisabled AccountProblem AuthorizationFailure AuthorizationPermissionMismatch "
        "PermissionError "
        "InsufficientAccountPermissions PublicAccessNotPermitted Forbidden",
        403,
    ),
    _reason(
        "it is archived and cannot be read as it is: restore it first",
        "InvalidObjectState BlobArchived BlobBeingRehydrated",
    ),
    _reason(
        "the store takes no more requests for now, in spite of waiting and repeating: try it again later",
        "SlowDown Throttling ThrottlingException RequestLimitExceeded ServerBusy TooManyRequests "
        "BandwidthLimitExceeded",
        429,
        503,
    ),
    _reason(
        "the store did not answer in time, in spite of repeating: try it again; check the network",
        "ReadTimeoutError ConnectTimeoutError FSTimeoutError TimeoutError RequestTimeout OperationTimedOut "
        "ServerTimeoutError "
        "ServiceResponseTimeoutError ServiceRequestTimeoutError SocketTimeoutError ConnectionTimeoutError",
        408,
        504,
    ),
    _reason(
        "the store cannot be reached: check the network, the name of the bucket, and the endpoint if one is set",
        "EndpointConnectionError ConnectionClosedError ConnectionError ServiceRequestError ServiceResponseError "
        "SSLError "
        "ClientConnectorError ClientConnectorDNSError ClientOSError ServerDisconnectedError TransportError "
        "HTTPClientError "
        "ClientConnectorCertificateError ProxyConnectionError ProxyError IncompleteReadError ClientPayloadError "
        "ResponseStreamingError IncompleteRead",
    ),
    _reason(
        "the store failed, in spite of repeating: try it again later", "InternalError ResponseParserError", 500, 502
    ),
    _reason("the store does not support this request", "NotImplemented", 501),
    _reason(
        "the name is not one that the store takes", "KeyTooLongError InvalidBucketName ParamValidationError InvalidUri"
    ),
)
_OTHER: Final = _reason("the store refused the request")


def as_error(failure: Failure, url: Url) -> Exception:
    if failure.code in _CONDITIONS or failure.status in _REFUSED:
        return ConditionError(f"{url}: the condition does not hold")
    if failure.status == _BEHIND:
        return EmptyRangeError(f"{url}: the range begins behind the end")
    reason = next((each for each in _REASONS if failure.code in each.codes), None)
    if reason is None and (failure.code in _MISSING or failure.status == 404):
        # gcsfs does not say which of them is missing.
        what = "object, or no such bucket" if failure.kind == "gcs" else "object"
        return FileNotFoundError(errno.ENOENT, f"there is no such {what}", str(url))
    reason = reason or next((each for each in _REASONS if failure.status in each.statuses), _OTHER)
    text = reason.text.format(bucket=url.bucket, who=_WHO[failure.kind])
    said = ", ".join(str(each) for each in (failure.code, failure.status) if each)
    return StoreError(f"{url}: {text} ({said})")
