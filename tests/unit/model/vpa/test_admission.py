"""The answer to an admission review: allowed with a patch, or refused with a Status that names every cause."""

import pytest

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.vpa.admission import Review, review_scope, review_vpa

TARGET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
GATES = FeatureGates(vpa_selector_refinement=True)


def scoped(name, **spec):
    policy = {"updateMode": "InPlaceOrRecreate"}
    return {"spec": {"targetRef": TARGET, "updatePolicy": policy, "vpaScope": {"name": name}, **spec}}


def test_a_missing_update_policy_is_filled_in():
    answer = review_vpa(Review("CREATE", "db", {"spec": {"targetRef": TARGET}}), GATES)
    assert answer.allowed
    assert answer.patch == [{"op": "add", "path": "/spec/updatePolicy", "value": {"updateMode": "Recreate"}}]


def test_a_new_object_is_noticed_although_upstream_does_not():
    review = Review("CREATE", "db", {"spec": {}}, old_object=None)
    answer = review_vpa(review, GATES)
    assert answer.status is not None
    assert [cause["field"] for cause in answer.status["details"]["causes"]] == ["spec.targetRef"]
    assert review_vpa(review, GATES, checks_creates=False).allowed


def test_scp_u3_a_missing_scope_is_refused_on_create():
    answer = review_vpa(Review("CREATE", "db", scoped("leader"), scopes={"other"}), GATES)
    assert answer.status is not None
    assert answer.status["code"] == 422
    assert answer.status["message"] == (
        'VerticalPodAutoscaler.autoscaling.trimtab.dev "db" is invalid: spec.vpaScope.name: Not found: "leader"'
    )


def test_scp_u3_an_unrelated_update_is_allowed_after_the_scope_is_gone():
    new = scoped("leader", recommenders=[{"name": "mine"}])
    assert review_vpa(Review("UPDATE", "db", new, scoped("leader"), scopes=()), GATES).allowed
    assert not review_vpa(
        Review("UPDATE", "db", scoped("follower"), scoped("leader"), scopes=()), GATES
    ).allowed


def test_scopes_are_not_checked_where_they_are_not_known():
    assert review_vpa(Review("CREATE", "db", scoped("leader"), scopes=None), GATES).allowed


def test_warnings_come_with_the_answer():
    answer = review_vpa(
        Review("CREATE", "db", scoped("leader", updatePolicy={"updateMode": "Recreate"})), GATES
    )
    assert answer.allowed
    assert "evicts pods" in answer.warnings[0]


@pytest.mark.parametrize(
    "raw", [None, [], "text", 5, {"spec": []}, {"spec": {"updatePolicy": {"minReplicas": "x"}}}]
)
def test_what_cannot_be_decoded_is_refused_with_the_fields_named(raw):
    answer = review_vpa(Review("CREATE", "db", raw), GATES)
    assert answer.status is not None
    assert all(cause["field"] for cause in answer.status["details"]["causes"])


def test_an_old_object_that_cannot_be_read_allows_nothing_extra():
    answer = review_vpa(Review("UPDATE", "db", scoped("leader"), {"spec": 5}), FeatureGates())
    assert not answer.allowed


def test_a_scope_with_a_bad_selector_is_refused_and_a_good_one_is_not():
    bad = {"spec": {"podSelector": {"matchExpressions": [{"key": "role", "operator": "In"}]}}}
    answer = review_scope(Review("CREATE", "leader", bad))
    assert answer.status is not None
    assert answer.status["message"].startswith(
        'VPAScope.autoscaling.trimtab.dev "leader" is invalid: spec.podSelector: '
    )
    assert review_scope(
        Review("CREATE", "leader", {"spec": {"podSelector": {"matchLabels": {"role": "leader"}}}})
    ).allowed
    assert not review_scope(Review("CREATE", "leader", {"spec": {"podSelector": []}})).allowed
