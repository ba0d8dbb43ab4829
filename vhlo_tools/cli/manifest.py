"""``vhlo manifest``: writes, shows and checks the manifests of artifacts, and signs them."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from vhlo_tools.artifact import (
    CertificateSigner,
    KeySigner,
    Making,
    Manifest,
    Verifier,
    check_manifest,
    find_manifest,
    manifest_place,
    sign,
    signature_place,
    verify_signature,
)
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.errors import ManifestError, SignatureError
from vhlo_tools.printable import printable


@click.group(cls=Group)
def manifest() -> None:
    """Write, show, check and sign the manifests of artifacts.

    The manifest of MODEL is beside it, MODEL.manifest.json, and its signature MODEL.sig.
    """


@manifest.command()
@options.input_argument("MODEL")
@options.force_option
def write(source: str, force: bool) -> None:
    """Write the manifest of MODEL as it is now. Do so once you know that it is right."""
    _refuse_stdin(source)
    data, name = options.read_input(source, manifest=False)
    found = Manifest.of(data, made=Making("manifest write"))
    beside = manifest_place(source)
    options.check_manifest_output(source, True, force=force)
    options.check_output(str(beside), force=force, binary=False)
    found.save(beside, force=force)
    echo(f"vhlo: {beside} describes {name}: {found.size} bytes, sha256 {found.sha256}", err=True)


@manifest.command()
@options.input_argument("MODEL")
def show(source: str) -> None:
    """Print the manifest of MODEL as JSON, without a comparison."""
    _refuse_stdin(source)
    options.echo_json(json.loads(Manifest.load(find_manifest(source) or manifest_place(source)).encode()))


@manifest.command("check")
@options.input_argument("MODEL")
@click.option("--public-key", metavar="FILE", help="Check the signature with this public key, as PEM.")
@click.option(
    "--certificate-chain",
    metavar="FILE",
    multiple=True,
    help="Check the signature with these certificates, as PEM: roots, and those below them. May be repeated.",
)
@click.option("--signature", "signature_file", metavar="FILE", help="The signature, by default MODEL.sig.")
@options.format_option
def check_(
    source: str,
    public_key: str | None,
    certificate_chain: tuple[str, ...],
    signature_file: str | None,
    output_format: str,
) -> int:
    """Compare MODEL with its manifest, and both with a signature.

    The signature counts if a key or certificates are given.

    Exit code 0: they match; 1: they differ, or the signature is not valid; 2: one cannot be read.
    """
    if public_key is not None and certificate_chain:
        raise click.UsageError("--public-key and --certificate-chain exclude each other: give only one")
    signed = public_key is not None or bool(certificate_chain)
    if signature_file is not None and not signed:
        raise click.UsageError("--signature needs --public-key or --certificate-chain to check it with")
    _refuse_stdin(source)
    data, name = options.read_input(source, manifest=False)
    checked = check_manifest(data, source, True, contents=True)
    problem = None
    if signed and checked.state == "matches":
        try:
            verify_signature(source, Verifier(public_key, certificate_chain), signature=signature_file)
        except SignatureError as error:
            problem = str(error)
    if output_format == "json":
        differences = [asdict(each) for each in checked.differences]
        said = {"manifest": checked.state, "differences": differences, "signed": not problem if signed else None}
        options.echo_json(said | ({"message": problem} if problem else {}))
    elif checked.state == "matches" and problem is None:
        echo(f"{printable(name)} is what its manifest says{', and both are signed' if signed else ''}")
    else:
        try:
            checked.require()
        except ManifestError as error:
            problem = str(error)
        echo(f"vhlo: {problem}", err=True)
    return int(checked.state != "matches" or problem is not None)


@manifest.command("sign")
@options.input_argument("MODEL")
@click.option(
    "--private-key", metavar="FILE", required=True, help="The key to sign with, as PEM: of P-256, P-384, P-521."
)
@click.option("--certificate", metavar="FILE", help="The certificate of the key, as PEM.")
@click.option(
    "--certificate-chain",
    metavar="FILE",
    multiple=True,
    help="The certificates between that and a root, as PEM. May be repeated.",
)
@options.force_option
def sign_(
    source: str, private_key: str, certificate: str | None, certificate_chain: tuple[str, ...], force: bool
) -> None:
    """Sign the manifest of MODEL, and so both; needs the extra "signing".

    MODEL is compared with its manifest first. Nothing is sent anywhere: keys and certificates are files.
    """
    if certificate is None and certificate_chain:
        raise click.UsageError("--certificate-chain needs --certificate, the certificate of the key")
    _refuse_stdin(source)
    options.check_output(str(signature_place(source)), force=force, binary=False)
    signer = (
        KeySigner(private_key)
        if certificate is None
        else CertificateSigner(private_key, certificate, certificate_chain)
    )
    echo(f"vhlo: {sign(source, signer, force=force)} is the signature of {source} and its manifest", err=True)


def _refuse_stdin(source: str) -> None:
    if source == options.STANDARD:
        raise click.UsageError("a manifest is a file beside another: give the name of that file")
