"""Every flag of upstream's VPA programs is taken with upstream's meaning, or refused with what replaces it.

The list is data (`tests/data/upstream-vpa-flags.json`); `tests/real/test_upstream_flags.py` compares it with the programs.
"""

import re
from datetime import timedelta
from typing import Any

import click
import pytest

from tools.upstream_flags import RENAMED, settings_by_flag, upstream_flags
from trimtab.cli import answer
from trimtab.cli.commands.run import run
from trimtab.cli.vpa_flags import with_upstream_flags
from trimtab.cli.vpa_programs import (
    admission_controller,
    program_settings,
    recommender,
    updater,
)
from trimtab.model.times import parse_duration
from trimtab.operator.settings.settings import Settings, declared
from trimtab.operator.settings.upstream_flags import TOLERATED, TRANSLATED

COMMANDS = {
    "vpa-recommender": recommender,
    "vpa-updater": updater,
    "vpa-admission-controller": admission_controller,
}
FLAGS = [(program, name, flag) for program, flags in upstream_flags().items() for name, flag in flags.items()]
SAMPLES = {"bool": "true", "duration": "3m0s", "float": "0.5", "int": "3", "quantity": "2", "Level": "5"}
TEXTS = {
    "storage": "prometheus",
    "prometheus-query-timeout": "3m",
    "address": ":9000",
    "leader-elect-resource-lock": "leases",
    "webhook-port": "9443",
}
ELSEWHERE = {"port": "webhook_port", "webhook-address": "webhook_url", "webhook-port": "webhook_url"}


def parsed(command: click.Command, *arguments: str) -> dict[str, Any]:
    return command.make_context(command.name, list(arguments)).params


def settings_of(program: str, *arguments: str) -> Settings:
    return program_settings(program, parsed(COMMANDS[program], *arguments))


def sample(name: str, flag: dict[str, str]) -> str:
    return TEXTS.get(name) or SAMPLES.get(flag["type"]) or "sample"


@pytest.mark.parametrize(("program", "name", "flag"), FLAGS, ids=[f"{one[0]} --{one[1]}" for one in FLAGS])
def test_each_flag_sets_what_it_names_or_is_refused_with_a_sentence(program, name, flag):
    """52 of them were no option, and existing manifests did not start."""
    argument = f"--{name}={sample(name, flag)}"
    by_url = (
        ["--register-by-url=true"]
        if name.startswith("webhook-") and program == "vpa-admission-controller"
        else []
    )
    if f"--{name}" in TOLERATED and name != "register-by-url":
        entry = TOLERATED[f"--{name}"]
        assert entry.says.endswith(".")
        if entry.accepts is not None and sample(name, flag) not in entry.accepts:
            with pytest.raises(ValueError, match=re.escape(entry.says)):
                settings_of(program, argument)
            argument = f"--{name}={entry.accepts[0]}"
        assert settings_of(program, argument) == settings_of(program)
        return
    before, after = settings_of(program, *by_url), settings_of(program, *by_url, argument)
    changed = {each.name for each in declared() if before.value(each.name) != after.value(each.name)}
    if f"--{name}" in TRANSLATED:
        wanted = {"address": {"port"}, "vpa-object-namespace": {"watch_namespaces"}}.get(name, set())
    elif program == "vpa-admission-controller" and name in ELSEWHERE:
        wanted = {ELSEWHERE[name]}
    elif name == "register-by-url":
        wanted = {"webhook_url"}
    else:
        wanted = {settings_by_flag()[name].name}
    if not changed:
        assert flag["default"] == sample(name, flag) or name == "use-admission-controller-status", (
            "without effect"
        )
    else:
        assert changed == wanted


@pytest.mark.parametrize(("program", "name", "flag"), FLAGS, ids=[f"{one[0]} --{one[1]}" for one in FLAGS])
def test_run_takes_each_flag_too(program, name, flag):
    argument = f"--{name}={sample(name, flag)}"
    entry = TOLERATED.get(f"--{name}")
    if entry is not None and entry.accepts is not None and sample(name, flag) not in entry.accepts:
        with pytest.raises(ValueError, match=re.escape(entry.says)):
            with_upstream_flags(parsed(run, argument))
        return
    settings = Settings.of(**with_upstream_flags(parsed(run, argument)))
    if (program, name) not in RENAMED and name in settings_by_flag():
        field = settings_by_flag()[name].name
        assert settings.value(field) == settings_of(program, argument).value(field)


@pytest.mark.parametrize(("program", "name", "flag"), FLAGS, ids=[f"{one[0]} --{one[1]}" for one in FLAGS])
def test_the_programs_have_upstreams_defaults(program, name, flag):
    if program == "vpa-admission-controller" and name in ELSEWHERE:
        return  # see the test of registration by URL
    declared_setting = settings_by_flag().get(name)
    if declared_setting is None:
        assert f"--{name}" in {**TOLERATED, **TRANSLATED}
        return
    ours = settings_of(program).value(declared_setting.name)
    assert ours == _like(ours, flag["default"])


def _like(ours: Any, text: str) -> Any:
    if isinstance(ours, bool):
        return text == "true"
    if isinstance(ours, timedelta):
        return parse_duration(text)
    if isinstance(ours, tuple):
        return tuple(part for part in text.split(",") if part)
    return type(ours)(text)


def test_the_admission_controller_is_registered_by_url_as_upstreams_is():
    flags = ["--register-by-url", "--webhook-address=https://10.0.0.9", "--webhook-port=9443", "--port=8443"]
    settings = settings_of("vpa-admission-controller", *flags)
    assert settings.admission.webhook_url == "https://10.0.0.9:9443"
    assert (settings.admission.webhook_address, settings.admission.webhook_port) == ("::", 8443)
    quiet = settings_of(
        "vpa-admission-controller", "--webhook-address=https://10.0.0.9", "--webhook-port=9443"
    )
    assert quiet.admission.webhook_url == ""
    assert quiet.port == 8944


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--kube_api_qps=7"], id="underscores"),
        pytest.param(["--kube-api-qps", "7"], id="a blank"),
        pytest.param(["--kube-api-qps=7.0"], id="a fraction"),
    ],
)
def test_flags_are_written_as_upstream_takes_them(arguments):
    assert settings_of("vpa-recommender", *arguments).client.kube_api_qps == 7


@pytest.mark.parametrize("arguments", [["-v=5"], ["-v", "5"], ["-v5"], ["--v=5"]])
def test_the_verbosity_is_written_in_four_ways(arguments):
    assert settings_of("vpa-recommender", *arguments).verbosity == 5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--vpa-object-namespace=a", "--ignored-vpa-object-namespaces=b"], "exclude each other"),
        (["--leader-elect-resource-lock=configmaps"], "use leases"),
        (["--use-external-metrics"], "--storage=prometheus"),
        (["--address=nowhere"], "write HOST:PORT"),
        (["--address=8942"], "write HOST:PORT"),
        (["--address=:http"], "write HOST:PORT"),
        (["--address=:9", "--port=10"], "give one of them"),
        (["--compat=vpa-0.1"], "known are: kubernetes-1.36, kubernetes-1.37, vpa-1.8"),
    ],
)
def test_a_value_that_cannot_be_honoured_is_one_line(arguments, complaint, capsys):
    assert answer(["run", *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_compat_brings_upstreams_defaults_and_what_is_given_wins():
    settings = Settings.of(compat="vpa-1.8")
    assert settings.updater.max_evictions_per_minute == 0
    assert Settings.of(compat="vpa-1.8", max_evictions_per_minute=7).updater.max_evictions_per_minute == 7
    assert Settings.of(compat="kubernetes-1.36").updater.max_evictions_per_minute == 10


@pytest.mark.parametrize("command", [run, updater], ids=["trimtab run", "vpa-updater"])
@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf"])
def test_what_cannot_be_calculated_with_is_refused_by_every_program(command, value):
    """Upstream's programs have no bounds of ours, and the first loop would end at it."""
    with pytest.raises(click.BadParameter, match="is not a number"):
        command.make_context("program", [f"--eviction-tolerance={value}"])


@pytest.mark.parametrize("command", [run, *COMMANDS.values()], ids=["run", *COMMANDS])
@pytest.mark.parametrize(
    ("text", "is_on"),
    [(text, True) for text in ("1", "t", "T", "TRUE", "true", "True")]
    + [(text, False) for text in ("0", "f", "F", "FALSE", "false", "False")],
)
def test_booleans_are_taken_as_go_takes_them(command, text, is_on):
    flags = [option for option in command.params if isinstance(option, click.Option) and option.is_flag]
    switches = [option for option in flags if option.secondary_opts]
    assert len(switches) > 5
    for option in switches:
        context = command.make_context("trimtab", [f"{option.opts[0]}={text}"])
        assert context.params[option.name] is is_on, option.name


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE"])
def test_flags_that_change_nothing_take_the_same_booleans(text):
    given = dict.fromkeys(map(field_of, (*TOLERATED, *TRANSLATED)))
    given |= {field_of("--profiling"): text, field_of("--use-admission-controller-status"): text}
    assert with_upstream_flags(given) == {"admission_check": "none"}


def field_of(flag):
    return "upstream" + flag.replace("-", "_")
