"""Decides about an HPA on the spot, by the operator's settings.

The cluster is read with the rights of the user, and nothing is written.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.explain.arguments import ask_cluster, choice_of
from trimtab.cli.explain.notes import (
    dry_run_note,
    not_acted_on_note,
    operator_note,
    unloaded_note,
    unwatched_note,
)
from trimtab.cli.missing_crds import INSTALL, because_of_missing_crds
from trimtab.cli.operator_settings import Choice, settings_for
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.errors import Forbidden, NotFound
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.decide.horizontal import Record
from trimtab.model.spelling import nearest
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings

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


def decide_here(name: str, namespace: str, options: dict[str, Any]) -> DecisionToExplain:
    """Decide about an HPA of the cluster that the options name.

    Raise CommandError if there is no such HPA.
    """
    choice = choice_of(options)

    async def look(client: Client, context_namespace: str) -> DecisionToExplain:
        found = await explain_replicas(client, namespace or context_namespace, name, choice)
        if found is None:
            place, known = namespace or context_namespace, await _known_hpas(client)
            raise no_such_hpa(name, place, known, await because_of_missing_crds(client, OWN_HPAS, place))
        return found

    try:
        return ask_cluster(options, look)
    except ValueError as error:
        raise CommandError(str(error)) from error


async def explain_replicas(
    client: Client, namespace: str, name: str, choice: Choice
) -> DecisionToExplain | None:
    """Decide about an HPA by the operator's settings. Return the decision and a note about the settings."""
    found = await settings_for(client, HORIZONTAL, choice)
    if not await _is_there(client, namespace, name):
        return None
    notes = [*dry_run_note(found), *unwatched_note(found, namespace), found.line]
    settings = found.settings.replace(watch_namespaces=(namespace,))
    if (glance := await _glance(client, settings, namespace, name)) is not None:
        notes = [*unloaded_note(glance.record), *glance.notes, *notes]
        return DecisionToExplain(glance.record, notes, is_dry_run=found.settings.dry_run)
    # The operator leaves such HPAs alone. What it would decide is shown all the same.
    both = settings.replace(own_hpas=True, native_hpas=True)
    if (glance := await _glance(client, both, namespace, name)) is None:
        return None
    flag = "no --native-hpas" if settings.horizontal.own_hpas else "--no-own-hpas"
    return DecisionToExplain(
        glance.record, [not_acted_on_note(found, flag), *unloaded_note(glance.record), *glance.notes, *notes]
    )


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
    notes: list[str]
    """What the operator decided otherwise, and each kind that the decision needs and that could not be listed."""


async def _glance(client: Client, settings: Settings, namespace: str, name: str) -> _Glance | None:
    runtime = Runtime(client.clock, client, settings, fence=ClosedFence())
    component = HpaController(runtime, config=decision_config(settings))
    try:
        await _start(component)
        record = await component.dry_run(namespace, name)
        unread = [f"not readable: {error}" for error in component.unread().values()]
        stored = component.stored_reason(namespace, name)
        return None if record is None else _Glance(record, [*operator_note(record, stored), *unread])
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


def no_such_hpa(
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
