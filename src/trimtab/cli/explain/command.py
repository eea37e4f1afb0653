"""`trimtab explain` prints why an autoscaler did what it did, or would do."""

from datetime import timedelta
from typing import Any

import click

from trimtab.cli.connection import (
    context_option,
    kubeconfig_option,
    namespace_option,
    request_timeout_option,
)
from trimtab.cli.errors import CommandError
from trimtab.cli.explain.arguments import object_of
from trimtab.cli.explain.hpas import DecisionToExplain, decide_here
from trimtab.cli.explain.operator_decisions import ask_operator, repeat_decision
from trimtab.cli.explain.sizes import explain_size_here, records_of_estimator
from trimtab.cli.names import complete_object
from trimtab.cli.operator_settings import operator_namespace_option
from trimtab.cli.output import output_option, to_json, to_yaml
from trimtab.cli.parameters import ListOption, plugins_option
from trimtab.decide.horizontal import Explanation, explain
from trimtab.decide.horizontal.from_status import (
    StatusExplanation,
    explain_from_status,
    forbidden_metric,
)
from trimtab.model.json import wire


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
    kind, name = object_of(what)
    if operator and options["plugins"] and (kind == "hpa" or output == "record"):
        raise CommandError(
            "--plugins has no effect with --operator: the answers are those that the operator got",
            f"leave out one of them, or call the plug-ins again: trimtab explain {kind}/{name} --operator {operator} "
            f"-o record > FILE; trimtab replay FILE --plugins {','.join(options['plugins'])}",
        )
    timeout: timedelta | None = options["request_timeout"]
    if kind == "hpa":
        _explain_hpa(name, namespace, operator, output, options)
    elif output == "record":
        _show(records_of_estimator(kind, name, namespace or "default", operator, timeout), output)
    else:
        _show(explain_size_here(kind, name, namespace, operator, options), output)


def _explain_hpa(name: str, namespace: str, operator: str, output: str, options: dict[str, Any]) -> None:
    if operator and not options["compat"] and not options["feature_gates"]:
        _show(ask_operator(operator, namespace or "default", name, output, options), output)
        return
    if operator:
        decision = DecisionToExplain(repeat_decision(operator, namespace, name, options))
    else:
        decision = decide_here(name, namespace, options)
    if output == "record":
        click.echo(wire.encode(decision.record).decode())
        return
    _show(_explain_decision(decision, is_users=not operator), output)


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


def _show(found: Any, output: str) -> None:
    if output == "record":
        click.echo(found, nl=False)
    elif output == "text":
        click.echo(f"{found['about']}\n{found['text']}")
    else:
        click.echo(to_json(found) if output == "json" else to_yaml(found), nl=False)
