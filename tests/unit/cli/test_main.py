"""The command line as a whole: help, completion, and how it fails."""

import importlib
import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

import trimtab
from trimtab import cli
from trimtab.cli.examples import EXAMPLES
from trimtab.cli.vpa_flags import as_pflag
from trimtab.operator.settings.settings import GROUPS, declared


def test_every_command_is_described_by_its_own_first_sentence():
    group = cli.cli
    for name, lazy in cli.COMMANDS.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.help is not None
        assert command.help.partition("\n")[0] == lazy.summary


def test_help_names_the_commands_and_exit_codes(capsys):
    assert cli.answer(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in cli.COMMANDS)
    assert "Exit codes" in out


def test_the_help_of_run_is_in_groups_and_begins_with_what_a_newcomer_needs(capsys):
    assert cli.answer(["run", "--help-all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [*GROUPS, "Options"]
    assert lines[lines.index("Process:") + 1].startswith("  --components ")


def test_the_short_help_of_run_shows_the_settings_that_newcomers_need(capsys):
    """It had 91 flags on 366 lines."""
    assert cli.answer(["run", "--help"]) == 0
    text = capsys.readouterr().out
    flags = {line.split()[0] for line in text.splitlines() if line.startswith("  --")}
    shown = {each.flag for each in declared() if each.is_essential}
    # click keeps the help option of a command as its first caller named it: `-h, --help`, or `--help` without a parent.
    assert flags - {"--help"} == {"--help-all", *shown}
    assert len(text.splitlines()) < 100


ROOT = Path(__file__).parents[3]
COMMAND_LINES = [
    pytest.param(name, example.line, id=example.line)
    for name, examples in EXAMPLES.items()
    for example in examples
]


VARIABLE = re.compile("[A-Z_]+=")


def words_of(line):
    """Return the words of `trimtab` in a line that may have pipes, redirections and variables before the command."""
    tokens = shlex.shlex(line, posix=True, punctuation_chars="<>|()")
    tokens.whitespace_split = True
    parts = itertools.groupby(tokens, key=lambda token: set(token) <= set("<>|()"))
    commands = [[*itertools.dropwhile(VARIABLE.match, part)] for is_sign, part in parts if not is_sign]
    (words,) = [found for found in commands if found[:1] == ["trimtab"]]
    return words


def test_every_command_has_examples_in_its_help(capsys):
    below = {"adapter test", "plugin list", "plugin check", "plugin new"}
    assert EXAMPLES.keys() == cli.COMMANDS.keys() | below
    for name, examples in EXAMPLES.items():
        assert cli.answer([*name.split(), "--help"]) == 0
        text = capsys.readouterr().out
        assert all(f"    {example.line}\n" in text for example in examples)


@pytest.mark.parametrize(("name", "line"), COMMAND_LINES)
def test_every_example_is_a_command_line_that_the_command_takes(name, line):
    """The options are parsed, and the files that they name need not exist."""
    words = words_of(line)
    assert words[: 1 + len(name.split())] == ["trimtab", *name.split()] or name == "adapter"
    command: click.Command = cli.cli
    ctx = click.Context(command)
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(ctx, word)
        assert found is not None
        command, ctx = found, click.Context(found, parent=ctx)
    if name == "plugin" or (line.startswith("trimtab adapter test") and name == "adapter"):
        return  # an example of its subcommand, which is checked there
    arguments = words[1 + len(name.split()) :]
    if hasattr(command, "_switch"):
        arguments = [command._switch(as_pflag(argument)) for argument in arguments]
    _, rest, _ = command.make_parser(ctx).parse_args(arguments)
    assert rest == []


@pytest.mark.parametrize("command", ["up", "lab"])
def test_a_kubeconfig_is_written_only_where_the_option_says_so(command, tmp_path, monkeypatch, capsys):
    """--kubeconfig reads everywhere else, and overwrote the user's own file here."""
    monkeypatch.chdir(tmp_path)
    assert cli.answer([command, "--kubeconfig", "mine"]) == 2
    assert "--write-kubeconfig" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_installed_programs_are_those_that_kubectl_looks_for():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts.keys() == {"trimtab", "kubectl-trimtab", "kubectl_complete-trimtab"}
    for place in scripts.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_the_version_command_prints_the_version(capsys):
    assert cli.answer(["version"]) == 0
    assert capsys.readouterr().out == f"trimtab {trimtab.__version__}\n"
    assert cli.answer(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == trimtab.__version__


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["va"], f"validate\t{cli.COMMANDS['validate'].summary}\n:4\n"),
        (["explain", "v"], "vpa/\n:4\n"),
        (["top", "-o", "w"], "wide\n:4\n"),
    ],
)
def test_kubectl_completes_its_plugin(words, told, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-trimtab", *words])
    cli.kubectl_complete()
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("command", ["replay", "validate", "convert", "simulate"])
def test_kubectl_proposes_files_where_a_file_is_meant(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-trimtab", command, ""])
    cli.kubectl_complete()
    assert capsys.readouterr().out.endswith(":0\n")


def test_help_imports_no_command():
    script = "import sys; from trimtab.cli import answer; answer(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = done.stderr
    assert not [name for name in ("msgspec", "yaml", "rich.", "numpy", "httptools") if f"'{name}" in imported]


def test_the_version_is_the_packages(capsys):
    assert cli.answer(["--version"]) == 0
    assert capsys.readouterr().out == f"trimtab, version {trimtab.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_our_variable(shell, capsys):
    assert cli.answer(["completion", shell]) == 0
    assert "_TRIMTAB_COMPLETE" in capsys.readouterr().out


def test_completion_proposes_commands():
    script = "from trimtab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"_TRIMTAB_COMPLETE": "bash_complete", "COMP_WORDS": "trimtab va", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "plain,validate\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (
            ["explian", "hpa/web"],
            "there is no command 'explian'; did you mean explain? (see `trimtab --help`)",
        ),
        (["validate"], "Missing argument"),
        (["validate", "--nope", "x"], "No such option"),
        (["convert", "x.yaml"], "Missing option '--to'"),
        (["convert", "x.yaml", "--to", "v9"], "'v9' is not one of"),
        (["validate", "x", "--feature-gates", "Nope=true"], "unknown feature gate 'Nope'"),
        (
            ["validate", "x", "--feature-gates", "SPASelectionStrategy=true"],
            "did you mean HPASelectionStrategy?",
        ),
        (
            ["convert", "missing.yaml", "--to", "v1"],
            "missing.yaml: cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_usage_is_one_line_on_stderr_and_exit_code_2(arguments, words, capsys):
    assert cli.answer(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("trimtab: ")
    assert err.count("\n") == 1
    assert words in err


def break_validate(monkeypatch, error):
    def raise_it(*_):
        raise error

    monkeypatch.setattr("trimtab.cli.commands.validate.read_bundle", raise_it)


def test_a_defect_is_one_line_and_exit_code_70(monkeypatch, capsys):
    break_validate(monkeypatch, RuntimeError("oh\nno"))
    assert cli.answer(["validate", "x"]) == 70
    err = capsys.readouterr().err
    assert err.startswith("trimtab: defect: RuntimeError: oh no")
    assert err.count("\n") == 1


def test_debug_shows_the_traceback_of_a_defect(monkeypatch, capsys):
    break_validate(monkeypatch, RuntimeError("oh no"))
    assert cli.answer(["--debug", "validate", "x"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_is_exit_code_130(monkeypatch, capsys):
    break_validate(monkeypatch, KeyboardInterrupt())
    assert cli.answer(["validate", "x"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_failure():
    command = f"{sys.executable} -c 'from trimtab.cli import main; main()' install --only=crds | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "---\n", "")


def test_switches_are_also_taken_as_kubernetes_programs_take_them(capsys):
    """Manifests written for upstream say `--leader-elect=false`; it used to be refused."""
    for value in ("true", "FALSE"):
        assert cli.answer(["run", f"--leader-elect={value}", "--kubeconfig=/nowhere"]) == 2
        assert "cannot read the kubeconfig" in capsys.readouterr().err
    assert cli.answer(["run", "--leader-elect=maybe"]) == 2
    assert "does not take a value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["explain", "hpa/web", "--operator", "http://127.0.0.1:9"],
            "does not answer: Connection refused (start it, correct --operator",
            id="an operator that is not there",
        ),
        pytest.param(
            ["explain", "deployment/web"],
            "say hpa/NAME, vpa/NAME or pod/NAME",
            id="a kind that nobody explains",
        ),
        pytest.param(["replay", __file__], "line 1 is not a record", id="a file that holds no records"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why_in_one_line(arguments, said, capsys):
    assert cli.answer(arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "urlopen" not in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["plugin"]], ids=["trimtab", "a group"])
def test_a_group_alone_shows_its_help_on_lines_of_its_own(arguments, capsys):
    """The whole help was one line of 2,000 characters."""
    assert cli.answer(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Usage: trimtab ")
    assert max(map(len, lines)) <= 100
