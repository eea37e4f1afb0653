"""Decisions of a running operator, from its port: as it made them, or made again with other settings."""

from contextlib import suppress
from typing import Any

import msgspec

from trimtab.cli.errors import FOUND, CommandError
from trimtab.cli.explain.arguments import choice_of
from trimtab.cli.explain.hpas import no_such_hpa
from trimtab.cli.operator_port import NothingKnownError, ask_explanation, ask_overview, ask_records
from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.records.record import WELL, decide_and_complete, loads
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.settings.compat import KUBERNETES
from trimtab.operator.settings.settings import Settings


def ask_operator(operator: str, namespace: str, name: str, output: str, options: dict[str, Any]) -> Any:
    """Return how the operator explains its last decision, or its records.

    Raise CommandError if the operator has no such HPA.
    """
    ask = ask_records if output == "record" else ask_explanation
    try:
        return ask(operator, f"{namespace}/{name}", options["request_timeout"])
    except NothingKnownError as error:
        known = []
        with suppress(CommandError):  # an answer without a proposal is an answer
            rows = ask_overview(operator, options["request_timeout"])
            known = [(row["namespace"], row["name"]) for row in rows]
        raise no_such_hpa(name, namespace, known) from error


def repeat_decision(operator: str, namespace: str, name: str, options: dict[str, Any]) -> Record:
    """Repeat the operator's last decision on its observation, by other settings."""
    lines = ask_operator(operator, namespace or "default", name, "record", options).splitlines()
    if not lines:
        raise CommandError(
            f"the operator has not decided about {name!r} yet", "ask again after a sync", FOUND
        )
    last = loads(lines[-1])
    seen = last.observation
    version = seen.rules if seen.rules in KUBERNETES else ""
    operators = Settings.of(feature_gates=str(seen.gates), compat=version)
    try:
        config = decision_config(choice_of(options).apply(operators))
    except ValueError as error:
        raise CommandError(str(error)) from error
    rules = config.rules if options["compat"] else seen.rules
    # The repeated decision was not carried out, so the outcome of the original is left out.
    return decide_and_complete(
        msgspec.structs.replace(seen, gates=config.gates, rules=rules), last.decision.now, WELL
    )
