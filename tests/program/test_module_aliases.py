"""Aliases of modules are those of the artifacts that they become, read and written."""

from __future__ import annotations

import pytest
from check_aliases import program_text
from hypothesis import given, settings
from support.alias_programs import configs, declaration_text

import vhlo_tools as vt
from vhlo_tools.aliasing import AliasConfig, Form, Signature, Tuple, encode_aliases, fits
from vhlo_tools.bindings import get_provider
from vhlo_tools.program.module_aliases import read_module_aliases, write_module_aliases

FORMS: tuple[Form, ...] = ("argument", "module")


@pytest.mark.long
@settings(max_examples=60)
@given(configs())
def test_what_is_written_is_read_and_is_that_of_artifacts(config: AliasConfig) -> None:
    provider = get_provider()
    bare = declaration_text(config.signature, encode_aliases(AliasConfig(config.signature)))
    artifact = vt.serialize(bare)
    for form in FORMS:
        if not fits(config, form):
            continue
        module = vt.deserialize(artifact)
        write_module_aliases(module.operation, config, form, provider=provider)
        assert provider.text(module) == provider.text(vt.deserialize(artifact.with_aliases(config, form)))
        assert read_module_aliases(module.operation).config() == config
        write_module_aliases(module.operation, AliasConfig(config.signature), provider=provider)
        assert provider.text(module) == provider.text(vt.deserialize(artifact))


@pytest.mark.long
def test_right_and_wrong_ones_are_read_as_from_artifacts() -> None:
    from random import Random

    provider, found = get_provider(), 0
    for seed in range(100):
        text = program_text(Random(seed))
        declared = vt.serialize(text, alias_lint=False).declared_aliases().declared
        # What VHLO has no form for comes back as a tensor, so that texts of it differ.
        read = read_module_aliases(provider.parse(provider.new_context(), text).operation)
        assert (read.signature, read.arguments, read.module) == (
            *(declared.signature, declared.arguments, declared.module),
        )
        assert [(each.kind, each.argument) for each in read.problems] == [
            (each.kind, each.argument) for each in declared.problems
        ]
        found += bool(declared.problems)
    assert found


def test_other_programs_are_refused() -> None:
    provider = get_provider()
    module = provider.parse(provider.new_context(), "func.func private @main(tensor<4xf32>)")
    with pytest.raises(vt.AliasError, match="for the signature"):
        write_module_aliases(module.operation, AliasConfig(Signature((), Tuple(()))), provider=provider)
    empty = provider.parse(provider.new_context(), "module {}")
    write_module_aliases(empty.operation, read_module_aliases(empty.operation).config(), provider=provider)
    bounded = "func.func private @main(tensor<?x2xf32, #stablehlo.bounds<4, ?>>, !stablehlo.token) -> tuple<tensor<i1>>"
    read = read_module_aliases(provider.parse(provider.new_context(), bounded).operation)
    assert read.signature == vt.serialize(bounded).declared_aliases().declared.signature
