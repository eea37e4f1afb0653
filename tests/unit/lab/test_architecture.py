"""The path of one server-side apply is the one that docs/architecture.md lists."""

from tests.scenarios.walks import check_path, entered_modules
from tests.unit.lab.api import DEPLOYMENTS, running
from trimtab.clock import VirtualClock

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}


def test_one_apply_takes_the_documented_path():
    clock = VirtualClock()

    async def scenario() -> list[str]:
        async with running(clock) as api:
            with entered_modules() as entered:
                await api.call(
                    "PATCH",
                    f"{DEPLOYMENTS}/web",
                    DEPLOYMENT,
                    "fieldManager=me",
                    "application/apply-patch+yaml",
                )
        return entered

    check_path("The path of one `kubectl apply` in the lab", clock.run(scenario()))
