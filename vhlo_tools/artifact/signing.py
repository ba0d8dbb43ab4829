"""Signatures of manifests, and so of the files that they describe, by `model-signing` of OpenSSF.

A signature covers the manifest, which has the size and the digest of the file: so it covers both. Keys and certificates
are files, and nothing is sent anywhere: signers that need a network, or a service, are not offered. The signatures are
those of `model_signing`, whose own command verifies them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact.manifest import Manifest
from vhlo_tools.artifact.manifest_files import check_manifest, manifest_place, signature_place
from vhlo_tools.errors import ManifestError, MissingExtraError, SignatureError, installing
from vhlo_tools.files import place, read_bytes, write_atomically
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer, Place

_Path = str | PathLike[str]

#: The largest signature that is read, in bytes; one of a manifest has some thousand.
_LARGEST: Final = 1 << 20
#: What the copy of a manifest is called while it is signed: it is part of the statement that is signed.
_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class KeySigner:
    """Signs with a private key on one of the elliptic curves P-256, P-384 and P-521.

    Attributes:
        private_key: The path of the key, as PEM.
        password: The password of the key, if it has one.
    """

    private_key: _Path
    password: str | None = None


@dataclass(frozen=True, slots=True)
class CertificateSigner:
    """Signs with a private key, and names the certificate of its public key in the signature.

    Attributes:
        private_key: The path of the key, as PEM, without a password.
        certificate: The path of the certificate, as PEM.
        chain: The paths of the certificates between it and a root.
    """

    private_key: _Path
    certificate: _Path
    chain: Sequence[_Path] = ()


@dataclass(frozen=True, slots=True)
class Verifier:
    """What a signature is verified with: a public key, or the certificates that are trusted.

    Attributes:
        public_key: The path of the public key, as PEM.
        chain: The paths of the roots, and of certificates below them, as PEM. Those of the machine, which vouch for the
            names of web servers, are never used.
    """

    public_key: _Path | None = None
    chain: Sequence[_Path] = ()


def sign(path: _Path, signer: KeySigner | CertificateSigner, *, force: bool = False) -> Place:
    """Sign the manifest of a file, after a comparison with the file, and write the signature beside both.

    Args:
        path: The path or the URL of the file.
        signer: The key.
        force: Whether an existing signature may be replaced.

    Returns:
        The path of the signature, ``model.mlirbc.sig``.

    Raises:
        ManifestError: If there is no manifest, or it does not describe the file.
        SignatureError: If the key or the certificate cannot be used.
        MissingExtraError: If `model-signing` is not installed.
        FileExistsError: If there is a signature and ``force`` is not set.
        OSError: If a file cannot be read or written.
    """
    manifest = _manifest_of(path)
    signing = _library("signing")
    with TemporaryDirectory(prefix="vhlo-sign-") as folder:
        held, written = Path(folder) / _MANIFEST, Path(folder) / "signature"
        held.write_bytes(manifest.encode())
        with _explained("it cannot be signed"):
            config = signing.Config()
            if isinstance(signer, KeySigner):
                # The library's annotation says text for the password; what it calls takes bytes.
                password: Any = None if signer.password is None else signer.password.encode()
                config.use_elliptic_key_signer(private_key=_file(signer.private_key), password=password)
            else:
                config.use_certificate_signer(
                    private_key=_file(signer.private_key),
                    signing_certificate=_file(signer.certificate),
                    # The library cannot read an empty chain; the certificate in its own chain changes nothing.
                    certificate_chain=[_file(each) for each in signer.chain or [signer.certificate]],
                )
            config.sign(held, written)
        there = signature_place(path)
        write_atomically(there, [written.read_bytes()], force=force)
    return there


def verify_signature(path: _Path, verifier: Verifier, *, signature: _Path | None = None) -> Manifest:
    """Return the manifest of a file if both are what was signed, and raise an error otherwise.

    The manifest is read once: what is verified is what is returned.

    Args:
        path: The path or the URL of the file.
        verifier: The public key, or the trusted certificates.
        signature: The path or the URL of the signature, by default beside the file.

    Raises:
        SignatureError: If the signature is not one of this manifest by the key or the certificates.
        ManifestError: If the file is not what the manifest says.
        MissingExtraError: If `model-signing` is not installed.
        OSError: If a file cannot be read.
    """
    if (verifier.public_key is None) == (not verifier.chain):
        raise ValueError("expected either a public key or certificates to verify with")
    manifest = _manifest_of(path)
    where = signature_place(path) if signature is None else place(signature)
    found = read_bytes(where)
    if len(found) > _LARGEST:
        raise SignatureError(f"{where} has {len(found)} bytes: a signature has at most {_LARGEST}")
    verifying = _library("verifying")
    with TemporaryDirectory(prefix="vhlo-verify-") as folder:
        held, copied = Path(folder) / _MANIFEST, Path(folder) / "signature"
        held.write_bytes(manifest.encode())
        copied.write_bytes(bytes(found))
        with _explained(f"{where} is no valid signature of {path} and its manifest"):
            config = verifying.Config()
            if verifier.public_key is not None:
                config.use_elliptic_key_verifier(public_key=_file(verifier.public_key))
            else:
                config.use_certificate_verifier(certificate_chain=[_file(each) for each in verifier.chain])
            config.verify(held, copied)
    return manifest


def _manifest_of(path: _Path) -> Manifest:
    """Return the manifest beside a file, which must describe the file."""
    data: Buffer = read_bytes(place(path))
    try:
        manifest = Manifest.load(manifest_place(path))
    except FileNotFoundError:
        raise ManifestError(
            f"{path} has no manifest, which is what is signed: `vhlo manifest write {path}` makes it"
        ) from None
    check_manifest(data, path, manifest, contents=True).require()
    return manifest


def _library(name: str) -> Any:
    try:
        return import_module(f"model_signing.{name}")
    except ImportError as error:
        raise MissingExtraError(
            f"signatures need the package model-signing: {installing('signing')} ({error})"
        ) from error


def _file(path: _Path) -> Path:
    """Open the file, so that an error names it."""
    found = Path(path)
    with found.open("rb"):
        return found


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn any error of the libraries, except of the operating system, into a ``SignatureError`` with the reason."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        # There is no common class: cryptography, OpenSSL, pydantic and json have errors of their own, and a damaged
        # signature also ends in KeyError, IndexError and TypeError.
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SignatureError(f"{what}: {printable(reason)}") from error
