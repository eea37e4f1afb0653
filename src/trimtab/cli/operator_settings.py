"""Which settings a command explains decisions by: the operator's own, or what is assumed instead."""

from dataclasses import dataclass, replace

import click

from trimtab.cluster.client import Client
from trimtab.operator.settings.published import Found, combined, find_settings
from trimtab.operator.settings.settings import Settings

GATES = "HPASelectionStrategy=true,HPAScaleToZero=true,VPASelectorRefinement=true"
"""The gates that are assumed where the operator's cannot be read: those that the chart opens."""

operator_namespace_option = click.option(
    "--operator-namespace",
    envvar="TRIMTAB_OPERATOR_NAMESPACE",
    default="trimtab",
    show_default=True,
    help="Namespace whose Leases carry the operator's settings; decisions are explained by them.",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user asked for on the command line."""

    namespace: str
    feature_gates: str = ""
    compat: str = ""

    def over(self, found: Found) -> Found:
        """Return the settings with the user's own rules, named where they replace the operator's."""
        settings, given = found.settings, []
        if self.feature_gates:
            settings = replace(settings, feature_gates=self.feature_gates)
            given.append(f"--feature-gates={self.feature_gates}")
        if self.compat:
            settings = replace(settings, compat=self.compat)
            given.append(f"--compat={self.compat}")
        if not given:
            return found
        return replace(found, settings=settings, source=f"{found.source}; with {' '.join(given)} instead")


async def settings_for(client: Client, loop: str, choice: Choice) -> Found:
    """Return the settings of the operator that runs a loop, or those that are assumed."""
    fallback = Settings(feature_gates=GATES)
    return choice.over(await find_settings(client, choice.namespace, loop, fallback))


async def vertical_settings(client: Client, choice: Choice, recommender: str = "") -> Found:
    """Return the settings of VPAs, of the recommender of that name and of the updater."""
    fallback = Settings(feature_gates=GATES)
    one = await find_settings(client, choice.namespace, "recommender", fallback, recommender=recommender)
    other = await find_settings(client, choice.namespace, "updater", fallback)
    return choice.over(combined(one, other))
