"""What a migration does unless it is asked for something else."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import signature

import vhlo_tools as vt
from vhlo_tools.api.stores import MigrationOptions
from vhlo_tools.stores import MigrationSettings


def test_defaults_are_those_of_the_function() -> None:
    # What `migrate` takes beside these, it hands on only if it is given.
    options = signature(vt.migrate).parameters
    defaults = {each.name: each.default for each in fields(MigrationSettings) if each.name in options}
    assert {name for name, each in defaults.items() if each is not MISSING} == {"seed", "timeout", "verify"}
    assert all(defaults[name] == options[name].default for name in ("seed", "timeout", "verify"))
    # What rewrites a program, or more than the store, has to be asked for.
    asked = {"force", "expand", "allow_relaxed", "allow_signature_change", "allow_other_dialects", "follow_outside"}
    assert not any(each.default for each in fields(MigrationSettings) if each.name in asked)
    # The target names the consumers.
    given = {*options, *MigrationOptions.__annotations__, "consumers"}
    assert {each.name for each in fields(MigrationSettings)} <= given


def test_an_interrupted_migration_goes_on_only_with_the_same_settings() -> None:
    pinned = MigrationSettings(("store",), vt.Version("1.13.0"), output_dir="out").pinned()
    assert pinned.keys() == {each.name.replace("_", "-") for each in fields(MigrationSettings)} - {
        "paths",
        "timeout",
        "trusted",
    } | {"PATH"}
    assert str(pinned["output-dir"]).startswith("/")
    assert MigrationSettings(("store",), vt.Version("1.13.0")).pinned()["output-dir"] is None
