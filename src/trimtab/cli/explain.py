"""`trimtab explain`: why an autoscaler did what it did, or would do."""

import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import click
import msgspec

from trimtab.cli.connection import context_option, kubeconfig_option, namespace_option, with_client
from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.output import to_json, to_yaml
from trimtab.cluster.client import Client
from trimtab.cluster.fence import ClosedFence
from trimtab.decide.horizontal import Record, explain
from trimtab.decide.horizontal.record import WELL, decided, loads
from trimtab.model import wire
from trimtab.model.gates import FeatureGates
from trimtab.operator.horizontal.component import HorizontalAutoscaler, rules_of
from trimtab.operator.settings import Settings
from trimtab.operator.vertical.assembly import compat_of
from trimtab.operator.vertical.explaining import Explained, Explainer, NotFoundError

GATES = "HPASelectionStrategy=true,HPAScaleToZero=true,VPASelectorRefinement=true"


@click.command("explain")
@click.argument("what")
@namespace_option
@click.option(
    "--operator",
    envvar="TRIMTAB_OPERATOR",
    default="",
    help="Address of a running operator's port, as http://127.0.0.1:8080, for HPAs; without it the decision is made on the spot.",
)
@click.option(
    "--feature-gates",
    default="",
    show_default=GATES,
    help="Gates to decide with; the operator's last decision is made again with them.",
)
@click.option(
    "--compat",
    default="",
    help="Decide as upstream does: kubernetes-1.36; the operator's last decision is made again so.",
)
@click.option(
    "-o", "output", type=click.Choice(["text", "json", "yaml", "record"]), default="text", show_default=True
)
@kubeconfig_option
@context_option
def command(what: str, namespace: str, operator: str, output: str, **options: str) -> None:
    """Tell why an autoscaler does what it does: `trimtab explain hpa/NAME`, `vpa/NAME` or `pod/NAME`."""
    kind, _, name = what.rpartition("/")
    if kind in {"vpa", "verticalpodautoscaler", "pod"} and name:
        _explain_vertical(kind, name, namespace, output, options)
        return
    if kind not in {"hpa", "thpa", "horizontalpodautoscaler", ""} or not name:
        raise CommandError(f"{what!r} cannot be explained", "say hpa/NAME, vpa/NAME or pod/NAME")
    if operator and not options["compat"] and not options["feature_gates"]:
        _show(_from_operator(operator, namespace or "default", name, output), output)
        return
    record = (
        _ruled(operator, namespace, name, options) if operator else _on_the_spot(name, namespace, options)
    )
    if output == "record":
        click.echo(wire.encode(record).decode())
        return
    story = explain(record.decision)
    key = record.observation.hpa.key
    _show({"about": key, "text": str(story), "explanation": wire.to_builtins(story)}, output)


def _explain_vertical(kind: str, name: str, namespace: str, output: str, options: dict[str, str]) -> None:
    if output == "record":
        raise CommandError("only decisions about HPAs are kept as records", "use -o json")

    async def look(client: Client, context_namespace: str) -> Explained:
        explainer = Explainer(
            client.clock,
            client,
            namespace or context_namespace,
            gates=FeatureGates.parse(options["feature_gates"] or GATES),
            settings=Settings(),
            compat=compat_of(options["compat"]),
        )
        try:
            return await (explainer.pod(name) if kind == "pod" else explainer.vpa(name))
        finally:
            await explainer.close()

    try:
        found = with_client(options["kubeconfig"], options["context"], look)
    except NotFoundError as error:
        raise CommandError(str(error), "look with: kubectl get vpa,pods", FOUND) from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    text = "\n".join(found.lines)
    _show({"about": f"{kind}/{name}", "text": text, "explanation": wire.to_builtins(found.data)}, output)


def _ruled(operator: str, namespace: str, name: str, options: dict[str, str]) -> Record:
    """Make the operator's last decision again, on what it saw, by other rules than its own."""
    lines = _from_operator(operator, namespace or "default", name, "record").splitlines()
    if not lines:
        raise CommandError(
            f"the operator has not decided about {name!r} yet", "ask again after a sync", FOUND
        )
    last = loads(lines[-1])
    try:
        rules = rules_of(Settings(feature_gates=options["feature_gates"], compat=options["compat"]))
    except ValueError as error:
        raise CommandError(str(error)) from error
    seen = last.observation
    gates = rules.gates if options["feature_gates"] else seen.gates
    compat = rules.compat if options["compat"] else seen.compat
    # What became of the other decision is not told of this one: it was not carried out.
    return decided(msgspec.structs.replace(seen, gates=gates, compat=compat), last.decision.now, WELL)


def _on_the_spot(name: str, namespace: str, options: dict[str, str]) -> Record:
    async def look(client: Client, context_namespace: str) -> Record | None:
        where = namespace or context_namespace
        gates = options["feature_gates"] or GATES
        settings = Settings(watch_namespaces=(where,), feature_gates=gates, compat=options["compat"])
        found = None
        for native in (False, True):
            chosen = replace(settings, own_hpas=not native, native_hpas=native)
            component = HorizontalAutoscaler(
                client.clock, client, chosen, rules=rules_of(chosen), fence=ClosedFence()
            )
            try:
                await component.start()
                found = found or await component.glance(where, name)
            finally:
                await component.close()
        return found

    try:
        record = with_client(options["kubeconfig"], options["context"], look)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if record is None:
        raise _no_such_hpa(name, namespace or "of the context")
    return record


def _no_such_hpa(name: str, namespace: str) -> CommandError:
    return CommandError(
        f"there is no HPA {name!r} in namespace {namespace}", "look with: kubectl get thpa,hpa -A", FOUND
    )


def _from_operator(operator: str, namespace: str, name: str, output: str) -> Any:
    page = "records" if output == "record" else "explain"
    url = f"{operator.rstrip('/')}/{page}?" + urllib.parse.urlencode({"name": f"{namespace}/{name}"})
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"{operator!r} is not an http address")
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - the scheme is checked above
            body = answer.read()
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            raise _no_such_hpa(name, namespace) from error
        raise CommandError(
            f"{operator}: {error.read().decode(errors='replace').strip()}", "", FOUND
        ) from error
    except OSError as error:
        why = getattr(error, "reason", error)
        raise CommandError(
            f"the operator at {operator} does not answer: {getattr(why, 'strerror', None) or why}",
            "start it, correct --operator, or leave it out to compute the answer from the cluster",
        ) from error
    return body.decode() if output == "record" else msgspec.json.decode(body)


def _show(found: Any, output: str) -> None:
    if output == "record":
        click.echo(found, nl=False)
    elif output == "text":
        click.echo(f"{found['about']}\n{found['text']}")
    else:
        click.echo(to_json(found) if output == "json" else to_yaml(found), nl=False)
