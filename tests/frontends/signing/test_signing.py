"""Signatures of manifests by `model-signing`, with keys and certificates from files."""

from __future__ import annotations

import datetime
import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import manifest_place, signature_place, write_with_manifest
from vhlo_tools.cli.main import main

DAY = datetime.timedelta(1)


@dataclass(frozen=True)
class Keys:
    """Files of one signer: a key, the certificate of a root, and one that the root has signed."""

    private: Path
    public: Path
    certificate: Path
    root: Path


def make_keys(folder: Path, curve: ec.EllipticCurve, *, password: bytes | None = None) -> Keys:
    """Return new files of a signer, made here: no key is kept."""
    folder.mkdir()
    keys = Keys(*(folder / name for name in ("key.pem", "public.pem", "certificate.pem", "root.pem")))
    key, root_key = ec.generate_private_key(curve), ec.generate_private_key(ec.SECP384R1())
    encryption: Any = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    keys.private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    keys.public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, public))
    root_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "root")])
    root = certificate_of(root_key, root_key, root_name, root_name, authority=True)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "signer")])
    keys.root.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    signed = certificate_of(key, root_key, name, root_name, authority=False)
    keys.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return keys


def certificate_of(
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    name: x509.Name,
    issuer: x509.Name,
    *,
    authority: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(
        (
            *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=authority, **usage), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys") / "own", ec.SECP256R1())


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys") / "other", ec.SECP256R1())


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError(f"a connection to {given[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlirbc"
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0")
    write_with_manifest(path, artifact.chunks, vt.Manifest.of(artifact))
    return path


def put_other_program(model: Path) -> None:
    """Replace a program and its manifest by others that match, as an attacker would."""
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.8.0")
    write_with_manifest(model, artifact.chunks, vt.Manifest.of(artifact), force=True)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_a_signature_by_a_key(model: Path, tmp_path: Path, others: Keys, curve: ec.EllipticCurve) -> None:
    keys = make_keys(tmp_path / "keys", curve, password=b"secret")
    assert vt.sign(model, vt.KeySigner(keys.private, "secret")) == signature_place(model)
    assert vt.verify_signature(model, vt.Verifier(keys.public)) == vt.Manifest.load(manifest_place(model))
    with pytest.raises(vt.SignatureError, match="is no valid signature of .*Key mismatch"):
        vt.verify_signature(model, vt.Verifier(others.public))
    with pytest.raises(FileExistsError):
        vt.sign(model, vt.KeySigner(keys.private, "secret"))
    with pytest.raises(vt.SignatureError, match="it cannot be signed"):
        vt.sign(model, vt.KeySigner(keys.private, "wrong"), force=True)


def test_a_signature_by_a_certificate(model: Path, keys: Keys, others: Keys) -> None:
    vt.sign(model, vt.CertificateSigner(keys.private, keys.certificate))
    assert vt.verify_signature(model, vt.Verifier(chain=[keys.root])).version == "1.9.0"
    with pytest.raises(vt.SignatureError, match="certificate"):
        vt.verify_signature(model, vt.Verifier(chain=[others.root]))
    with pytest.raises(vt.SignatureError, match="does not match"):
        vt.sign(model, vt.CertificateSigner(others.private, keys.certificate), force=True)
    with pytest.raises(ValueError, match="either a public key or certificates"):
        vt.verify_signature(model, vt.Verifier())
    with pytest.raises(ValueError, match="either a public key or certificates"):
        vt.verify_signature(model, vt.Verifier(keys.public, [keys.root]))


def test_both_files_are_covered(model: Path, keys: Keys) -> None:
    vt.sign(model, vt.KeySigner(keys.private))
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(vt.ManifestError, match="is not the file that its manifest"):
        vt.verify_signature(model, vt.Verifier(keys.public))
    put_other_program(model)
    assert vt.require(model, "1.9.0", manifest=True)
    with pytest.raises(vt.SignatureError, match="Signature mismatch"):
        vt.verify_signature(model, vt.Verifier(keys.public))
    manifest_place(model).unlink()  # type: ignore[union-attr]
    with pytest.raises(vt.ManifestError, match="has no manifest, which is what is signed"):
        vt.verify_signature(model, vt.Verifier(keys.public))
    with pytest.raises(vt.ManifestError, match="has no manifest, which is what is signed"):
        vt.sign(model, vt.KeySigner(keys.private), force=True)


def test_no_flip_of_a_signature_has_another_manifest_taken(model: Path, keys: Keys) -> None:
    vt.sign(model, vt.KeySigner(keys.private))
    where = Path(str(signature_place(model)))
    whole, manifest = where.read_bytes(), vt.Manifest.load(manifest_place(model))
    places = range(0, len(whole), 7)
    refused = 0
    for index in places:
        where.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        try:
            # White space, and names that nothing looks at, may be anything.
            assert vt.verify_signature(model, vt.Verifier(keys.public)) == manifest
        except vt.SignatureError:
            refused += 1
    assert refused > 0.9 * len(places) > 100


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"verificationMaterial": {}}', b"{" * 10_000, b"0" * (1 << 21)]
)
def test_what_is_no_signature(model: Path, keys: Keys, content: bytes) -> None:
    Path(str(signature_place(model))).write_bytes(content)
    with pytest.raises(vt.SignatureError) as caught:
        vt.verify_signature(model, vt.Verifier(keys.public))
    assert str(caught.value).isprintable()


def test_on_the_command_line(model: Path, keys: Keys, others: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    def manifest(*options: object) -> int:
        capsys.readouterr()
        return main(["manifest", *map(str, options)])

    assert manifest("sign", model, "--private-key", keys.private) == 0
    assert manifest("check", model, "--public-key", keys.public) == 0
    assert "and both are signed" in capsys.readouterr().out
    assert manifest("check", model, "--public-key", others.public, "--format", "json") == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["manifest"], said["signed"]) == ("matches", False)
    assert "Key mismatch" in said["message"]
    assert manifest("sign", model, "--private-key", keys.private) == 2
    certified = ("--private-key", keys.private, "--certificate", keys.certificate, "--certificate-chain", keys.root)
    assert manifest("sign", model, *certified, "--force") == 0
    assert manifest("check", model, "--certificate-chain", keys.root) == 0
    assert manifest("check", model, "--certificate-chain", others.root) == 1
    assert manifest("check", model, "--public-key", "nowhere.pem") == 2
    assert manifest("check", model, "--public-key", keys.public, "--signature", "nowhere.sig") == 2
    put_other_program(model)
    assert manifest("check", model) == 0
    assert manifest("check", model, "--certificate-chain", keys.root) == 1


def test_signatures_of_a_folder(model: Path, keys: Keys, others: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    store = model.parent
    other = store / "other.mlirbc"
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(other, manifest=True)
    vt.sign(model, vt.KeySigner(keys.private))
    command = ["manifest", "check", str(store), "--public-key"]
    assert main([*command, str(keys.public)]) == 1
    said = capsys.readouterr().out
    assert f"{other}: it has no signature: expected {other}.sig" in said
    assert "manifests: 1 matching, 1 without a valid signature" in said
    assert main([*command, str(keys.public.with_name("none.pem"))]) == 2
    assert "none.pem" in capsys.readouterr().err
    vt.sign(other, vt.KeySigner(keys.private))
    assert main([*command, str(keys.public), "--exclude", "*.pem"]) == 0
    assert main([*command, str(others.public)]) == 1
    assert "manifests: 2 without a valid signature" in capsys.readouterr().out
    assert main([*command, str(keys.public), "--signature", str(signature_place(model))]) == 2
    assert "--signature is that of one file" in capsys.readouterr().err


def test_the_command_of_model_signing_verifies_it(model: Path, keys: Keys) -> None:
    vt.sign(model, vt.KeySigner(keys.private))
    command = [sys.executable, "-m", "model_signing", "verify", "key", str(manifest_place(model))]
    command += ["--signature", str(signature_place(model)), "--public_key", str(keys.public)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
