"""The lines of an explanation: everything that it knows is told, and nothing of what it does not."""

from trimtab.decide.vertical.explain import VPAExplanation, vpa_lines
from trimtab.model.quantity import Quantity


def test_a_vpa_tells_of_every_pod_that_it_does_not_learn_from():
    found = VPAExplanation(
        vpa="shop/base",
        mode="Recreate",
        level=0,
        scope="all pods",
        fed_by=("shop/db-2", "shop/db-3"),
        not_fed_by={"shop/db-0": "it is a leader", "shop/db-1": "it has another owner"},
        recommends={"app": {"cpu": Quantity.parse("1")}, "side": {}},
    )
    first, *lines = (line.strip() for line in vpa_lines(found))
    assert first == "VPA shop/base: mode Recreate, for all pods"
    assert lines[:3] == [
        "learns from shop/db-2, shop/db-3",
        "does not learn from shop/db-0: it is a leader",
        "does not learn from shop/db-1: it has another owner",
    ]
    assert [line.partition(":")[0] for line in lines[3:]] == ["recommends for app", "recommends for side"]
    assert lines[-1] == "recommends for side: nothing"


def test_a_vpa_without_pods_says_so():
    lines = vpa_lines(VPAExplanation(vpa="shop/base", mode="Off", level=0, scope="all pods"))
    assert [line.strip() for line in lines[1:]] == ["learns from no pod"]
