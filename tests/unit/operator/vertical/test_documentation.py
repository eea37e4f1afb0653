"""What docs/vertical.md shows is accepted and does what it says."""

import re
from pathlib import Path

import yaml

from trimtab.decide.vertical.control.claims import index_vpas
from trimtab.decide.vertical.control.role_labels import RoleDeclaration, parse_declaration
from trimtab.decide.vertical.control.scope import Scope
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.admission import Review, review_scope, review_vpa
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.operator.settings.settings import declared

PAGE = (Path(__file__).parents[4] / "docs" / "vertical.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_objects_of_the_example_are_accepted_and_the_leaders_vpa_goes_first():
    objects = list(yaml.safe_load_all(BLOCKS[0]))
    gates = FeatureGates.of({"VPASelectorRefinement": True})
    scope, *vpas = objects
    assert review_scope(Review("CREATE", "leader", scope)).allowed
    for vpa in vpas:
        assert review_vpa(Review("CREATE", vpa["metadata"]["name"], vpa, scopes={"leader"}), gates).allowed
    typed = [wire.convert(vpa, VerticalPodAutoscaler) for vpa in vpas]
    index = index_vpas(
        [(vpa, Selector.parse("app=db")) for vpa in typed],
        {"shop/leader": wire.convert(scope, VPAScope)},
        is_gate_on=True,
    )
    (claims,) = index.by_target.values()
    assert [claim.vpa.metadata.name for claim in claims] == ["db-leader", "db"]
    assert isinstance(claims[0].scope, Scope)


def test_the_annotations_of_the_example_declare_a_role():
    template = yaml.safe_load(BLOCKS[1])["template"]
    pod = wire.convert({"metadata": {**template["metadata"], "name": "db-0", "namespace": "shop"}}, Pod)
    assert parse_declaration(pod) == RoleDeclaration("shop", "db", "role", "leader", "follower")


def test_every_flag_on_the_page_exists():
    known = {each.flag for each in declared()}
    assert set(re.findall(r"--[a-z][a-z-]+[a-z]", PAGE)) <= known
