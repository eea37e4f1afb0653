"""Settings that follow from others."""

import pytest

from trimtab.operator.settings import Settings


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(Settings(), "trimtab-horizontal", id="by default"),
        pytest.param(Settings(components=("recommender",)), "trimtab-recommender", id="another loop alone"),
        pytest.param(
            Settings(components=("updater", "recommender")), "trimtab-recommender", id="whatever the order"
        ),
        pytest.param(
            Settings(components=("dashboard", "horizontal")),
            "trimtab-horizontal",
            id="with what needs no lease",
        ),
        pytest.param(Settings(components=("adapter",)), "trimtab-adapter", id="only what needs no lease"),
        pytest.param(Settings(leader_elect_resource_name="mine"), "mine", id="as given"),
    ],
)
def test_processes_with_other_loops_have_leases_of_their_own(settings, want):
    assert settings.lease_name == want
