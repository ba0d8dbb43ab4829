"""The passes: what the table lists is what the installed library has, and each runs where it belongs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.opt_programs import opt

from vhlo_tools.bindings import get_provider
from vhlo_tools.bindings.toolbox import MlirSession
from vhlo_tools.upstream.arguments import UsageError
from vhlo_tools.upstream.own_passes import OWN_PASSES
from vhlo_tools.upstream.pipelines import PIPELINES, Passes, known_passes

pytestmark = pytest.mark.every_python

#: Prints what is registered of all strings of the library that could be names; those of one word are among too many
#: others. In a process of its own: XLA registers more when it compiles.
REGISTERED = """
import mmap, re
from pathlib import Path
import jaxlib
from vhlo_tools.bindings import get_provider
from vhlo_tools.bindings.toolbox import MlirSession
from vhlo_tools.upstream.pipelines import Passes
names = set()
for path in Path(jaxlib.__file__).parent.glob("*.so"):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        names.update(re.findall(rb"\\0([a-z][a-z0-9]{1,40}(?:-[a-z0-9]{1,40}){1,12})(?=\\0)", data))
passes = Passes(MlirSession(get_provider("jaxlib")))
print(*(name for name in map(bytes.decode, names) if passes.includes(name)))
"""

#: Computes the same twice, until `cse` has run.
TWICE = """
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.tanh %a : tensor<2xf32>
  %1 = stablehlo.tanh %a : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
"""


@pytest.fixture(scope="module")
def toolbox() -> MlirSession:
    return MlirSession(get_provider("jaxlib"))


def test_the_table_has_every_pass_of_the_library() -> None:
    ran = subprocess.run([sys.executable, "-c", REGISTERED], capture_output=True, text=True, check=True)
    registered = set(ran.stdout.split())
    # 79 in jaxlib 0.8.1, 86 in 0.10.2.
    assert len(registered) > 75
    assert registered - set(known_passes()) == set()


def test_every_pass_is_described_once() -> None:
    names = known_passes()
    assert len(names) == len(set(names))
    assert {*OWN_PASSES, *PIPELINES} <= set(names)


def test_the_list_has_options_with_their_defaults() -> None:
    lines = opt("--list-passes").text.split("\n")
    assert "  --stablehlo-refine-shapes" in {line.split(" - ")[0].rstrip() for line in lines}
    place = next(index for index, line in enumerate(lines) if line.startswith("  --stablehlo-legalize-to-vhlo "))
    assert lines[place + 1].strip() == "options: allow-other-dialects=false"


def test_passes_are_anchored_where_they_run(toolbox: MlirSession) -> None:
    passes = Passes(toolbox)
    flags = [("canonicalize", ""), ("chlo-legalize-to-stablehlo", ""), ("vhlo-to-version", "target=1.0.0")]
    (stage,) = passes.from_flags(flags)
    assert stage.pipeline == (
        "builtin.module(canonicalize,func.func(chlo-legalize-to-stablehlo),vhlo-to-version{target=1.0.0})"
    )


def test_passes_of_ours_stand_between_those_of_the_library(toolbox: MlirSession) -> None:
    stages = Passes(toolbox).from_flags([("cse", ""), ("chlo-pre-serialization-pipeline", ""), ("canonicalize", "")])
    assert [stage.name for stage in stages] == [
        "builtin.module(cse,func.func(chlo-legalize-to-stablehlo),func.func(shape-legalize-to-stablehlo))",
        "reconcile-unrealized-casts",
        "builtin.module(canonicalize)",
    ]


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("builtin.module(nothing)", "does not refer to a registered pass"),
        ("builtin.module(chlo-legalize-to-stablehlo)", "restricted to 'func.func'"),
        ("builtin.module(canonicalize{nothing=1})", "no such option nothing"),
        ("builtin.module(inline{nothing=1})", "no such option nothing"),
        ("builtin.module(inline{op-pipelines=nothing})", "failed to add `inline`"),
        ("builtin.module(reconcile-unrealized-casts{nothing=1})", "no such option nothing; "),
        ("builtin.module(interpreter-instrument-with-probe{useDebugInfo=perhaps})", "'perhaps' is invalid value"),
        ("builtin.module(interpreter-instrument-with-probe cse)", "probe cse' does not refer"),
        ("builtin.module(stablehlo-deserialize{nothing=1})", "it takes no options"),
        ("builtin.module(stablehlo-deserialize,)", "does not refer to a registered pass"),
        ("builtin.module(,inline)", "does not refer to a registered pass"),
        ("canonicalize(", "wrapped with the anchor operation type"),
        ("", "wrapped with the anchor operation type"),
        ("builtin.module(func.func(reconcile-unrealized-casts))", "runs directly within builtin.module(...)"),
    ],
)
def test_pipelines_that_are_none_are_refused(toolbox: MlirSession, pipeline: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        Passes(toolbox).from_text(pipeline)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nothing-of-the-kind"], "Unknown command line argument '--nothing-of-the-kind'."),
        (["--canonicalise"], "Did you mean '--canonicalize'?"),
        (["--emit-bytecode=perhaps"], "'perhaps' is invalid value for boolean argument! Try 0 or 1"),
        (["-o"], "requires a value!"),
        (["--verify-diagnostics=some"], "Cannot find option named 'some'"),
        (["--mlir-elide-elementsattrs-if-larger=x"], "value invalid for uint argument"),
        (["--emit-bytecode", f"--emit-bytecode-version={'9' * 5000}"], "value invalid for uint argument"),
        (["--emit-bytecode-version=6"], "give --emit-bytecode too"),
        (["a.mlir", "b.mlir"], "Too many positional arguments"),
        (["--pass-pipeline=builtin.module(cse)", "--cse"], "can't be used with individual pass options"),
        (["there-is-no-such-file.mlir"], "cannot open input file 'there-is-no-such-file.mlir'"),
        (["."], "cannot open input file '.': Is a directory"),
        (["-o", "."], "cannot open output file '.': Is a directory"),
        (["-o", "there/is/no/such/folder"], "cannot open output file 'there/is/no/such/folder': No such file"),
    ],
)
def test_arguments_that_are_none_are_refused(arguments: list[str], said: str) -> None:
    ran = opt(*arguments)
    assert (ran.code, ran.raw) == (1, b"")
    assert said in ran.error


def test_what_follows_two_dashes_is_a_file() -> None:
    assert "cannot open input file '--cse'" in opt("--", "--cse").error


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "builtin.module(cse)"],
        ["--pass-pipeline", "any(cse)"],
        ["-pass-pipeline= builtin.module( func.func( cse , canonicalize{ top-down=false  max-iterations=3}) ) "],
        ["--pass-pipeline=any(inline,cse)"],
        ["--no-implicit-module", "--stablehlo-canonicalize-dynamism", "--cse"],
        ["--no-implicit-module", "--pass-pipeline=func.func(cse)"],
        ["--canonicalize=top-down=false region-simplify=disabled", "--cse"],
    ],
)
def test_passes_are_given_in_every_form(arguments: list[str]) -> None:
    ran = opt(*arguments, text=TWICE)
    assert (ran.code, ran.error) == (0, "")
    assert ran.text.count("stablehlo.tanh") == 1
    assert ran.text.startswith("func.func" if "--no-implicit-module" in arguments else "module {")


@pytest.mark.parametrize(
    "flag",
    [
        "--inline",
        "--inline=default-pipeline=cse max-iterations=2",
        "--inline=op-pipelines=func.func(cse)",
        "--pass-pipeline=builtin.module(inline{op-pipelines=func.func(cse,canonicalize{top-down=false})})",
        "--pass-pipeline=any(inline)",
    ],
)
def test_inlining_simplifies_as_its_options_say_and_takes_away_what_nothing_calls(flag: str) -> None:
    caller = (
        "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n%0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>\n"
    )
    unused = "%1 = stablehlo.constant dense<1.0> : tensor<2xf32>\n%2 = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
    text = f"{caller}{unused}return %0 : tensor<2xf32>\n}}\n" + TWICE.replace("@f", "private @f")
    ran = opt(flag, text=text)
    assert (ran.code, ran.error) == (0, "")
    assert ran.text.count("stablehlo.tanh") == (1 if "cse" in flag else 2)
    assert ran.text.count("stablehlo.constant") == 0
    assert "@f" not in ran.text


def test_what_runs_on_modules_runs_on_nothing_else() -> None:
    ran = opt("--no-implicit-module", "--inline", text=TWICE)
    assert (ran.code, ran.error) == (1, "vhlo opt: --inline runs on builtin.module, not on func.func\n")
    ran = opt("--pass-pipeline=func.func(cse)", text=TWICE)
    assert ran.code == 1
    assert "can't run 'func.func' pass manager on 'builtin.module' op" in ran.error


def test_bytecode_is_read_whatever_is_said_of_modules() -> None:
    bytecode = opt("--emit-bytecode", text=TWICE).raw
    assert opt("--no-implicit-module", text=bytecode).text == opt(text=TWICE).text


def test_bytecode_of_no_version_is_refused() -> None:
    ran = opt("--emit-bytecode", "--emit-bytecode-version=99", text=TWICE)
    assert (ran.code, ran.raw) == (1, b"")
    assert ran.error.startswith("<stdin>:0:0: error: unsupported version requested 99, must be in range [0, ")
    assert opt("--emit-bytecode", "--emit-bytecode-version=3", text=TWICE).raw[4:5] == bytes([2 * 3 + 1])


def test_modules_are_printed_between_passes_as_they_are_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    flags = ["--cse", "--mlir-print-ir-after-all", "--mlir-print-ir-before-all", "--mlir-print-op-generic"]
    ran = opt(*flags, text=TWICE)
    printed = capfd.readouterr().err
    assert printed.count("// -----// IR Dump ") == 2
    assert ran.text in printed
    ran = opt("--reconcile-unrealized-casts", *flags[1:], text=TWICE)
    assert [
        ran.error.count(f"// -----// IR Dump {when} reconcile-unrealized-casts //----- //\n{ran.text}")
        for when in ("Before", "After")
    ] == [1, 1]
    assert capfd.readouterr().err == ""


def test_help_is_given_by_its_short_name_too() -> None:
    assert opt("-h").text == opt("--help").text
    assert "  --pass-pipeline=<string> (-p) " in opt("-h").text


def test_casts_there_and_back_are_reconciled() -> None:
    text = """
      func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
        %0 = builtin.unrealized_conversion_cast %a : tensor<2xi32> to tensor<2xui32>
        %1 = builtin.unrealized_conversion_cast %0 : tensor<2xui32> to tensor<2xi64>
        %2 = builtin.unrealized_conversion_cast %1 : tensor<2xi64> to tensor<2xi32>
        return %2 : tensor<2xi32>
      }"""
    ran = opt("--reconcile-unrealized-casts", text=text)
    assert "unrealized" not in ran.text
    assert "return %arg0" in ran.text


def test_dialects_that_only_passes_bring_are_there() -> None:
    text = '#csr = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>\n"a.b"() {c = #csr} : () -> ()'
    ran = opt("--allow-unregistered-dialect", text=text)
    assert ran.code == 0, ran.error
    assert (
        "linalg.generic"
        in opt(
            "--stablehlo-legalize-to-linalg",
            text="func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> "
            "{ %0 = stablehlo.tanh %a : tensor<2xf32> return %0 : tensor<2xf32> }",
        ).text
    )
