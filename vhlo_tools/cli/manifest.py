"""``vhlo manifest``: writes, shows and checks the manifests of artifacts and of stores, and signs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Final

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
from vhlo_tools.cli.reports import json_lines
from vhlo_tools.errors import ManifestError, SignatureError
from vhlo_tools.files import Others
from vhlo_tools.printable import json_text, printable
from vhlo_tools.stores import ManifestResult, is_store, manifests_at


@click.group(cls=Group)
def manifest() -> None:
    """Write, show, check and sign the manifests of artifacts.

    The manifest of MODEL is beside it, MODEL.manifest.json, and its signature MODEL.sig.
    """


#: What a summary says of files, and the exit code; of several, the highest counts.
_OUTCOMES: Final = {
    "written": ("written", 0),
    "matches": ("matching", 0),
    "differs": ("different", 1),
    "unsigned": ("without a valid signature", 1),
    "missing": ("missing", 2),
    "damaged": ("damaged", 2),
    "unreadable": ("of unreadable files", 2),
}


@manifest.command()
@options.paths_argument()
@options.exclude_option()
@options.force_option
def write(paths: tuple[str, ...], exclude: tuple[str, ...], force: bool) -> int:
    """Write the manifest of each PATH as it is now.

    Do so once you know that it is right.

    A PATH is a file, or a folder or glob: then every artifact and jax.export file in it gets a manifest unless it has
    one. One that describes other bytes is replaced with --force; one that matches always stays.

    Exit code 0: all have one that matches; 1: one describes another file; 2: one cannot be read or written.
    """
    if (source := _only(paths)) is None:
        return _many(paths, partial(manifests_at, write=True, force=force, exclude=exclude))
    data, name = options.read_input(source, manifest=False)
    found = Manifest.of(data, made=Making("manifest write"))
    beside = manifest_place(source)
    options.check_manifest_output(source, True, force=force)
    options.check_output(str(beside), force=force, binary=False)
    found.save(beside, force=force)
    echo(f"vhlo: {beside} describes {name}: {found.size} bytes, sha256 {found.sha256}", err=True)
    return 0


@manifest.command()
@options.input_argument("MODEL")
def show(source: str) -> None:
    """Print the manifest of MODEL as JSON, without a comparison."""
    _refuse_stdin(source)
    click.echo(json_text(json.loads(Manifest.load(find_manifest(source) or manifest_place(source)).encode()), indent=2))


@manifest.command("check")
@options.paths_argument()
@options.exclude_option()
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
    paths: tuple[str, ...],
    exclude: tuple[str, ...],
    public_key: str | None,
    certificate_chain: tuple[str, ...],
    signature_file: str | None,
    output_format: str,
) -> int:
    """Compare each PATH with its manifest, and both with a signature.

    The signature counts if a key or certificates are given.

    A PATH is a file, or a folder or glob: then every artifact and jax.export file in it is compared, and needs a
    manifest.

    Exit code 0: they match; 1: they differ, or the signature is not valid; 2: one cannot be read.
    """
    if public_key is not None and certificate_chain:
        raise click.UsageError("--public-key and --certificate-chain exclude each other: give only one")
    signed = public_key is not None or bool(certificate_chain)
    if signature_file is not None and not signed:
        raise click.UsageError("--signature needs --public-key or --certificate-chain to check it with")
    if (source := _only(paths)) is None:
        if signature_file is not None:
            raise click.UsageError("--signature is that of one file: leave it out, or name one PATH")
        verifier = Verifier(public_key, certificate_chain) if signed else None

        def compared(path: str, others: Others) -> Iterator[ManifestResult]:
            for each in manifests_at(path, exclude=exclude, others=others):
                yield each if verifier is None else _signed(each, verifier)

        return _many(paths, compared, as_json=output_format == "json")
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


def _only(paths: tuple[str, ...]) -> str | None:
    """Return the one file that paths name; ``None`` if they may be several."""
    for each in paths:
        _refuse_stdin(each)
    return paths[0] if len(paths) == 1 and not is_store(paths[0]) else None


def _many(
    paths: tuple[str, ...],
    found: Callable[..., Iterator[ManifestResult]],
    *,
    as_json: bool = False,
) -> int:
    """Show what ``found`` says of each path: a line for each problem, and a summary."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[ManifestResult]:
        for path in paths:
            for each in found(path, others=lambda _: counts.update(["other"])):
                counts[each.status] += 1
                yield each

    # As JSON all or nothing: a path that matches no file is an error.
    for line in _json([*counted()], counts) if as_json else _text(counted(), counts):
        echo(line)
    return max((_OUTCOMES[status][1] for status in counts if status in _OUTCOMES), default=0)


def _text(results: Iterator[ManifestResult], counts: Counter[str]) -> Iterator[str]:
    for each in results:
        if each.message is not None:
            said = " ".join(each.message.split())
            yield printable(said if said.startswith(each.path) else f"{each.path}: {said}")
    outcomes = [f"{counts[status]} {text}" for status, (text, _) in _OUTCOMES.items() if counts[status]]
    others = counts["other"]
    end = f"; {others} other file{' is' if others == 1 else 's are'} no artifact{'' if others == 1 else 's'}"
    yield f"manifests: {', '.join(outcomes) or 'none'}{end if others else ''}"


def _json(results: Sequence[ManifestResult], counts: Counter[str]) -> Iterator[str]:
    def as_json(each: ManifestResult) -> str:
        ok = not _OUTCOMES[each.status][1]
        differences = list(map(asdict, each.differences))
        record = {"path": each.path, "ok": ok, "status": each.status, "reason": each.message}
        return json_text(record | {"differences": differences})

    return json_lines(map(as_json, results), lambda: {"summary": {"other": 0, **counts}})


def _signed(result: ManifestResult, verifier: Verifier) -> ManifestResult:
    if result.status == "matches":
        try:
            verify_signature(result.path, verifier)
        except SignatureError as error:
            return replace(result, status="unsigned", message=str(error))
        except FileNotFoundError as error:
            wanted = str(signature_place(result.path))
            if str(error.filename) != wanted:  # a key
                raise
            return replace(result, status="unsigned", message=f"it has no signature: expected {wanted}")
    return result


def _refuse_stdin(source: str) -> None:
    if source == options.STANDARD:
        raise click.UsageError("a manifest is a file beside another: give the name of that file")
