"""`trimtab explain` prints why an autoscaler did what it did, or would do."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    namespace_option,
    request_timeout_option,
    with_client,
)
from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.missing_crds import INSTALL, because_of_missing_crds
from trimtab.cli.names import ALIASES, complete_object
from trimtab.cli.operator_port import (
    NothingKnownError,
    ask_estimates,
    ask_explanation,
    ask_overview,
    ask_records,
)
from trimtab.cli.operator_settings import Choice, operator_namespace_option, settings_for, vertical_settings
from trimtab.cli.output import output_option, to_json, to_yaml
from trimtab.cli.parameters import ListOption, plugins_option
from trimtab.cli.progress import waiting
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.errors import Forbidden, NotFound
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.decide.horizontal import Explanation, Record, explain
from trimtab.decide.horizontal.config import NAMED
from trimtab.decide.horizontal.explain.from_status import (
    StatusExplanation,
    explain_from_status,
    forbidden_metric,
)
from trimtab.decide.horizontal.records.record import WELL, decide_and_complete, loads
from trimtab.model.json import wire
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.spelling import nearest
from trimtab.model.vpa.defaults import recommender_of
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.compat import KUBERNETES
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import (
    CannotLookError,
    Explained,
    Explainer,
    NotFoundError,
)
from trimtab.operator.vertical.kinds import VPAS
from trimtab.plugins.guard import FailureReason

T = TypeVar("T")

HORIZONTAL = "horizontal"
LISTS_SECONDS = 30.0
"""How long the first lists may take in real time. A namespace of 5,000 pods takes about a second."""


class DecisionToExplain(NamedTuple):
    """A decision to explain."""

    record: Record
    notes: Sequence[str] = ()
    """A note about the settings of the decision."""
    is_dry_run: bool = False
    """Whether the operator of the HPA runs with `--dry-run`."""


@click.command("explain")
@click.argument(
    "what", nargs=-1, required=True, metavar="KIND/NAME | KIND NAME", shell_complete=complete_object
)
@namespace_option
@click.option(
    "--operator",
    envvar="TRIMTAB_OPERATOR",
    default="",
    help="Address of a running operator's port, as http://127.0.0.1:8080, for HPAs; without it the decision is made on the spot.",
)
@operator_namespace_option
@click.option(
    "--feature-gates",
    cls=ListOption,
    default="",
    show_default="the operator's",
    help="Gates to decide with; the operator's last decision is made again with them.",
)
@click.option(
    "--compat",
    cls=ListOption,
    default="",
    show_default="the operator's",
    help="Decide as upstream does: kubernetes-1.37 or kubernetes-1.36; the operator's last decision is made again so.",
)
@plugins_option
@output_option("text", "json", "yaml", "record")
@request_timeout_option
@kubeconfig_option
@context_option
def command(what: tuple[str, ...], namespace: str, operator: str, output: str, **options: Any) -> None:
    """Explain why an autoscaler does what it does: `trimtab explain hpa/NAME`, `vpa/NAME` or `pod/NAME`."""
    kind, name = _object_of(what)
    if operator and options["plugins"] and (kind == "hpa" or output == "record"):
        raise CommandError(
            "--plugins has no effect with --operator: the answers are those that the operator got",
            f"leave out one of them, or call the plug-ins again: trimtab explain {kind}/{name} --operator {operator} "
            f"-o record > FILE; trimtab replay FILE --plugins {','.join(options['plugins'])}",
        )
    if kind != "hpa":
        _explain_vertical(kind, name, namespace, output, operator, options)
        return
    if operator and not options["compat"] and not options["feature_gates"]:
        _show(_from_operator(operator, namespace or "default", name, output, options), output)
        return
    if operator:
        decision = DecisionToExplain(_repeat_decision(operator, namespace, name, options))
    else:
        decision = _decide_here(name, namespace, options)
    if output == "record":
        click.echo(wire.encode(decision.record).decode())
        return
    _show(_explain_decision(decision, is_users=not operator), output)


def _object_of(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the kind and name of `hpa/web`, `hpa web` or `web`, which is an HPA."""
    alias, _, name = words[0].rpartition("/") if len(words) == 1 else (words[0], "", words[-1])
    kind = ALIASES.get(alias or "hpa")
    if len(words) > 2 or kind is None or not name or (len(words) == 2 and "/" in name):
        raise CommandError(f"{' '.join(words)!r} cannot be explained", "say hpa/NAME, vpa/NAME or pod/NAME")
    return kind, name


def _explain_decision(decision: DecisionToExplain, *, is_users: bool) -> dict[str, Any]:
    """Explain a decision that the operator made, or that was made with the user's own rights."""
    observation = decision.record.observation
    forbidden = forbidden_metric(observation) if is_users else ""
    if forbidden:
        explanation: StatusExplanation | Explanation = explain_from_status(observation.hpa, forbidden)
    else:
        explanation = explain(decision.record, dry_run=decision.is_dry_run)
    return {
        "about": observation.hpa.key,
        "text": "\n".join([str(explanation), *decision.notes]),
        "notes": decision.notes,
        "explanation": wire.to_builtins(explanation),
    }


def _estimates(kind: str, name: str, namespace: str, operator: str, timeout: timedelta | None) -> str:
    """Return the records of a VPA whose amounts come from an estimator. Other sizes are not recorded."""
    if kind != "vpa" or not operator:
        raise CommandError(
            "only decisions about HPAs and answers of estimators are kept as records",
            "use -o json; for a VPA with an estimator name the operator with --operator",
        )
    try:
        return ask_estimates(operator, f"{namespace}/{name}", timeout)
    except NothingKnownError as error:
        raise CommandError(
            f"the operator has asked no estimator about VPA {namespace}/{name}",
            "look at spec.recommenders and --plugins",
            FOUND,
        ) from error


def _last_answers(operator: str, vpa: str, timeout: timedelta | None) -> list[str]:
    """Return what an estimator last answered to the operator, a line per container, or nothing for other VPAs."""
    from trimtab.decide.vertical import estimate_records  # noqa: PLC0415 - it needs numpy

    try:
        records = ask_estimates(operator, vpa, timeout).splitlines()
    except NothingKnownError:
        return []
    return [
        f"  last answer: {estimate_records.describe(estimate_records.loads(line.encode()))}"
        for line in records
    ]


def _explain_vertical(
    kind: str, name: str, namespace: str, output: str, operator: str, options: dict[str, Any]
) -> None:
    timeout: timedelta | None = options["request_timeout"]
    if output == "record":
        _show(_estimates(kind, name, namespace or "default", operator, timeout), output)
        return

    choice = _choice(options)

    async def look(client: Client, context_namespace: str) -> tuple[Explained, list[str]]:
        place = namespace or context_namespace
        try:
            return await explain_size(client, kind, place, name, choice)
        except CannotLookError as error:
            if reason := await because_of_missing_crds(client, VPAS, place):
                text = f"there is no VPA in namespace {place}{reason}"
                raise CommandError(text, INSTALL, FOUND) from error
            raise

    try:
        explained, notes = _ask_cluster(options, look)
    except NotFoundError as error:
        raise CommandError(str(error), "look with: kubectl get vpa,pods", FOUND) from error
    except (ValueError, CannotLookError) as error:
        raise CommandError(str(error)) from error
    answers = (
        _last_answers(operator, f"{namespace or 'default'}/{name}", timeout)
        if operator and kind == "vpa"
        else []
    )
    text = "\n".join([*explained.lines, *answers, *notes])
    data = wire.to_builtins(explained.data)
    _show({"about": f"{kind}/{name}", "text": text, "notes": notes, "explanation": data}, output)


async def explain_size(
    client: Client, kind: str, namespace: str, name: str, choice: Choice
) -> tuple[Explained, list[str]]:
    """Explain a VPA or a pod by the operator's settings.

    Return the explanation and a note about the settings.
    """
    recommender = "" if kind == "pod" else await _recommender_of(client, namespace, name)
    found = await vertical_settings(client, choice, recommender)
    explainer = Explainer(client, namespace, found.settings, sees_all_pods=found.updater_sees_all_pods)
    try:
        explained = await (explainer.pod(name) if kind == "pod" else explainer.vpa(name))
    finally:
        await explainer.close()
    return explained, [*_dry_run(found), *_unwatched(found, namespace), found.line]


def _ask_cluster(options: dict[str, Any], look: Callable[[Client, str], Awaitable[T]]) -> T:
    timeout: timedelta | None = options["request_timeout"]
    with waiting("reading the cluster"):
        return with_client(options["kubeconfig"], options["context"], look, timeout=timeout)


def _choice(options: dict[str, Any]) -> Choice:
    return Choice(
        options["operator_namespace"], options["feature_gates"], options["compat"], options["plugins"]
    )


async def _recommender_of(client: Client, namespace: str, name: str) -> str:
    """Return the name of the recommender of a VPA, or an empty text for any that may have its estimator.

    A missing VPA is reported later.
    """
    try:
        vpa = await client.get(VPAS, name, namespace)
    except NotFound:
        return ""
    named = recommender_of(vpa)
    return "" if is_plugin_name(named) else named


def _dry_run(found: FoundSettings) -> list[str]:
    return ["dry run: the operator runs with --dry-run and changes nothing"] if found.settings.dry_run else []


def _repeat_decision(operator: str, namespace: str, name: str, options: dict[str, Any]) -> Record:
    """Repeat the operator's last decision on its observation, by other settings."""
    lines = _from_operator(operator, namespace or "default", name, "record", options).splitlines()
    if not lines:
        raise CommandError(
            f"the operator has not decided about {name!r} yet", "ask again after a sync", FOUND
        )
    last = loads(lines[-1])
    seen = last.observation
    version = next((name for name in KUBERNETES if NAMED[name] == seen.compat), "")
    operators = Settings.of(feature_gates=str(seen.gates), compat=version)
    try:
        rules = decision_config(_choice(options).apply(operators))
    except ValueError as error:
        raise CommandError(str(error)) from error
    compat = rules.compat if options["compat"] else seen.compat
    # The repeated decision was not carried out, so the outcome of the original is left out.
    return decide_and_complete(
        msgspec.structs.replace(seen, gates=rules.gates, compat=compat), last.decision.now, WELL
    )


def _decide_here(name: str, namespace: str, options: dict[str, Any]) -> DecisionToExplain:
    choice = _choice(options)

    async def look(client: Client, context_namespace: str) -> DecisionToExplain:
        found = await explain_replicas(client, namespace or context_namespace, name, choice)
        if found is None:
            place, known = namespace or context_namespace, await _known_hpas(client)
            raise _no_such_hpa(name, place, known, await because_of_missing_crds(client, OWN_HPAS, place))
        return found

    try:
        return _ask_cluster(options, look)
    except ValueError as error:
        raise CommandError(str(error)) from error


async def explain_replicas(
    client: Client, namespace: str, name: str, choice: Choice
) -> DecisionToExplain | None:
    """Decide about an HPA by the operator's settings. Return the decision and a note about the settings."""
    found = await settings_for(client, HORIZONTAL, choice)
    if not await _is_there(client, namespace, name):
        return None
    notes = [*_dry_run(found), *_unwatched(found, namespace), found.line]
    settings = found.settings.replace(watch_namespaces=(namespace,))
    if (glance := await _glance(client, settings, namespace, name)) is not None:
        notes = [*_unloaded(glance.record), *glance.unread, *notes]
        return DecisionToExplain(glance.record, notes, is_dry_run=found.settings.dry_run)
    # The operator leaves such HPAs alone. What it would decide is shown all the same.
    both = settings.replace(own_hpas=True, native_hpas=True)
    if (glance := await _glance(client, both, namespace, name)) is None:
        return None
    return DecisionToExplain(
        glance.record, [_not_acted_on(found), *_unloaded(glance.record), *glance.unread, *notes]
    )


def _unloaded(record: Record) -> list[str]:
    """Return a note about plug-ins whose answers the operator has and this program has not."""
    seen = record.observation
    answers = [seen.filter_answer, *seen.policy_answers]
    names = [
        answer.plugin
        for answer in answers
        if answer is not None and answer.reason == FailureReason.NOT_LOADED and answer.failure
    ]
    if not names:
        return []
    return [
        f"not the operator's decision: it is made without {', '.join(names)}; name it in --plugins, or ask the operator with --operator"
    ]


async def _is_there(client: Client, namespace: str, name: str) -> bool:
    """Return whether an HPA of either kind exists. Raise Forbidden if none is found and one may not be read."""
    refusal: Forbidden | None = None
    for resource in (OWN_HPAS, NATIVE_HPAS):
        try:
            listed = await client.list(resource, ListOptions(namespace, fields=f"metadata.name={name}"))
        except NotFound:
            continue  # our CRD is not installed
        except Forbidden as error:
            refusal = refusal or error
            continue
        if listed.items:
            return True
    if refusal is not None:
        raise refusal
    return False


async def _known_hpas(client: Client) -> list[tuple[str, str]]:
    """Return the namespaces and names of all HPAs that the user may list."""
    known = []
    for resource in (OWN_HPAS, NATIVE_HPAS):
        with suppress(NotFound, Forbidden):
            known += [
                (found.metadata.namespace, found.metadata.name)
                for found in (await client.list(resource)).items
            ]
    return known


class _Glance(NamedTuple):
    """A decision that was made on the spot."""

    record: Record
    unread: list[str]
    """A note for each kind that the decision needs and that could not be listed, which is often for lack of rights."""


async def _glance(client: Client, settings: Settings, namespace: str, name: str) -> _Glance | None:
    runtime = Runtime(client.clock, client, settings, fence=ClosedFence())
    component = HpaController(runtime, config=decision_config(settings))
    try:
        await _start(component)
        record = await component.dry_run(namespace, name)
        unread = [f"not readable: {error}" for error in component.unread().values()]
        return None if record is None else _Glance(record, unread)
    finally:
        await component.close()
        await runtime.close()


async def _start(component: HpaController) -> None:
    """Wait for the first lists, but not for ever: the server may fail after it has answered."""
    try:
        async with asyncio.timeout(LISTS_SECONDS):
            await component.start()
    except TimeoutError:
        problems = "; ".join(f"{name}: {problem}" for name, problem in component.health().items())
        raise CommandError(
            f"the cluster could not be read within {LISTS_SECONDS:.0f} s: {problems}", "try again"
        ) from None


def _not_acted_on(found: FoundSettings) -> str:
    flag = "--no-own-hpas" if not found.settings.horizontal.own_hpas else "no --native-hpas"
    who = "the operator" if found.is_published else "an operator with default settings"
    return f"not acted on: {who} runs with {flag}; this is what it would decide otherwise"


def _unwatched(found: FoundSettings, namespace: str) -> list[str]:
    watched = found.settings.watch_namespaces
    if not watched or namespace in watched:
        return []
    return [f"not acted on: the operator watches {', '.join(watched)} and not {namespace}"]


def _no_such_hpa(
    name: str, namespace: str, known: Iterable[tuple[str, str]] = (), reason: str = ""
) -> CommandError:
    """Return the error about a missing HPA, with what was probably meant of the `known` namespaces and names."""
    known = list(known)
    hint = INSTALL if reason else "look with: kubectl get thpa,hpa -A"
    if elsewhere := [place for place, other in known if other == name and place != namespace]:
        hint = f"there is one in {elsewhere[0]}: add -n {elsewhere[0]}"
    elif near := nearest(name, [other for place, other in known if place == namespace]):
        hint = f"did you mean {near}?"
    return CommandError(f"there is no HPA {name!r} in namespace {namespace}{reason}", hint, FOUND)


def _from_operator(operator: str, namespace: str, name: str, output: str, options: dict[str, Any]) -> Any:
    ask = ask_records if output == "record" else ask_explanation
    try:
        return ask(operator, f"{namespace}/{name}", options["request_timeout"])
    except NothingKnownError as error:
        known = []
        with suppress(CommandError):  # an answer without a proposal is an answer
            rows = ask_overview(operator, options["request_timeout"])
            known = [(row["namespace"], row["name"]) for row in rows]
        raise _no_such_hpa(name, namespace, known) from error


def _show(found: Any, output: str) -> None:
    if output == "record":
        click.echo(found, nl=False)
    elif output == "text":
        click.echo(f"{found['about']}\n{found['text']}")
    else:
        click.echo(to_json(found) if output == "json" else to_yaml(found), nl=False)
