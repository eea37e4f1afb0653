"""Explains the sizes of a VPA or a pod by the settings of the operator."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.explain.arguments import ask_cluster, choice_of
from trimtab.cli.explain.notes import dry_run_note, not_acted_on_note, unwatched_note
from trimtab.cli.missing_crds import INSTALL, because_of_missing_crds
from trimtab.cli.operator_port import NothingKnownError, ask_estimates
from trimtab.cli.operator_settings import Choice, vertical_settings
from trimtab.cluster.client import Client
from trimtab.cluster.errors import NotFound
from trimtab.model.json import wire
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.explain import CannotLookError, Explained, Explainer, NotFoundError
from trimtab.operator.vertical.kinds import NATIVE, OWN


def explain_size_here(
    kind: str, name: str, namespace: str, operator: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Explain a VPA or a pod of the cluster that the options name, with the last answers of an estimator."""
    choice = choice_of(options)

    async def look(client: Client, context_namespace: str) -> tuple[Explained, list[str]]:
        place = namespace or context_namespace
        try:
            return await explain_size(client, kind, place, name, choice)
        except CannotLookError as error:
            if reason := await because_of_missing_crds(client, OWN.vpas, place):
                text = f"there is no VPA in namespace {place}{reason}"
                raise CommandError(text, INSTALL, FOUND) from error
            raise

    try:
        explained, notes = ask_cluster(options, look)
    except NotFoundError as error:
        raise CommandError(str(error), "look with: kubectl get tvpa,vpa,pods", FOUND) from error
    except (ValueError, CannotLookError) as error:
        raise CommandError(str(error)) from error
    answers = []
    if operator and kind == "vpa":
        answers = _last_answers(operator, f"{namespace or 'default'}/{name}", options["request_timeout"])
    return {
        "about": f"{kind}/{name}",
        "text": "\n".join([*explained.lines, *answers, *notes]),
        "notes": notes,
        "explanation": wire.to_builtins(explained.data),
    }


async def explain_size(
    client: Client, kind: str, namespace: str, name: str, choice: Choice
) -> tuple[Explained, list[str]]:
    """Explain a VPA or a pod by the operator's settings.

    Return the explanation and a note about the settings.
    """
    vpa = None if kind == "pod" else await _find_vpa(client, namespace, name)
    found = await vertical_settings(client, choice, _recommender_of(vpa))
    settings, notes = found.settings, [*dry_run_note(found), *unwatched_note(found, namespace), found.line]
    if vpa is not None and vpa.is_native and not settings.native_vpas:
        # The operator leaves such VPAs alone. What it would decide is shown all the same.
        notes.insert(0, not_acted_on_note(found, "no --native-vpas"))
        settings = settings.replace(native_vpas=True)
    explainer = Explainer(client, namespace, settings, sees_all_pods=found.updater_sees_all_pods)
    try:
        explained = await (explainer.pod(name) if kind == "pod" else explainer.vpa(name))
    finally:
        await explainer.close()
    return explained, notes


async def _find_vpa(client: Client, namespace: str, name: str) -> VerticalPodAutoscaler | None:
    """Return a VPA of either kind, the own one first. A missing VPA is reported later."""
    for kind in (OWN, NATIVE):
        with suppress(NotFound):
            return await client.get(kind.vpas, name, namespace)
    return None


def _recommender_of(vpa: VerticalPodAutoscaler | None) -> str:
    """Return the name of the recommender of a VPA, or an empty text for any that may have its estimator."""
    if vpa is None:
        return ""
    named = recommender_of(vpa)
    return "" if is_plugin_name(named) else named


def records_of_estimator(
    kind: str, name: str, namespace: str, operator: str, timeout: timedelta | None
) -> str:
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
