"""Why not more, and why not fewer, in words that name the number that would change it."""

import pytest

from tests.dashboard import stage
from tests.unit.decide.horizontal import builders as given
from trimtab.dashboard.pages.decision import decision_view


def view(replicas, *readings, hpa=None, **fields):
    one = stage.autoscaler(hpa=hpa)
    stage.decided(one, replicas, *readings, **fields)
    return decision_view(one.records[-1])


def used(replicas, milli):
    return given.usage_of(given.pods(replicas), milli)


def test_within_tolerance_both_directions_name_their_threshold():
    told = view(3, used(3, 52))
    assert told.more == ("No metric asks for more. It grows when cpu is above 55 %.")
    assert told.less.startswith("The present replicas are needed. It shrinks when cpu")
    assert told.less.endswith("is at 33 % or less and stays so for 300 s.")


def test_two_metrics_one_is_enough_to_grow_and_all_are_needed_to_shrink():
    two = given.hpa(given.cpu(), given.external(given.average("10")))
    told = view(3, used(3, 50), given.series(30), hpa=two)
    assert ", or queue is above 11" in told.more
    assert " and queue is at" in told.less


@pytest.mark.parametrize(
    ("told", "more", "less"),
    [
        (lambda: view(3, used(3, 90)), "It grows from 3 to 6.", "The present replicas"),
        (
            lambda: view(10, used(10, 90)),
            "The metrics ask for 18, but this is maxReplicas. Next: raise maxReplicas.",
            "The present replicas",
        ),
        (lambda: view(10, used(10, 50)), "There are 10, which is maxReplicas.", "The present replicas"),
        (lambda: view(1, used(1, 10)), "No metric asks for more", "There are 1, which is minReplicas."),
        (
            lambda: view(4, used(4, 10)),
            "No metric asks for more",
            "The metrics ask for 1, but more was recommended",
        ),
        (
            lambda: view(3, used(3, 400), hpa=given.hpa(high=100)),
            "It grows from 3 to 6; the metrics ask for 24, but one sync goes no farther than 6.",
            "The present",
        ),
        (
            lambda: view(12, used(12, 50)),
            "There are more replicas than maxReplicas.",
            "It shrinks from 12 to 10.",
        ),
        (lambda: view(0), "Someone set the replicas to zero", "Someone set the replicas to zero"),
        (
            lambda: view(3, given.unreadable("gone")),
            "No metric can be read.",
            "No metric can be read. To change that:",
        ),
    ],
)
def test_each_kind_of_decision_has_its_sentence(told, more, less):
    found = told()
    assert (found.more[: len(more)], found.less[: len(less)]) == (more, less)


def test_a_metric_that_cannot_be_read_keeps_the_replicas_from_shrinking():
    two = given.hpa(given.cpu(), given.external(given.average("10")))
    told = view(3, used(3, 50), given.unreadable("no answer"), hpa=two)
    assert told.less == "A metric cannot be read, and replicas are not lowered on half the facts."


def test_the_limits_tell_how_far_one_sync_may_go():
    calm = given.hpa(
        behavior=given.behavior(
            given.rules(("Pods", 2, 60), ("Percent", 10, 60), select="Max", window=30),
            given.rules(("Pods", 1, 60), select="Min"),
        )
    )
    told = view(5, used(5, 50), hpa=calm)
    assert (told.up.allowed, told.up.window_seconds, told.up.policies) == (
        7,
        30,
        ("2 pods per 60 s", "10 % per 60 s"),
    )
    assert (told.down.allowed, told.down.window_seconds, told.down.policies) == (4, 300, ("1 pod per 60 s",))
    plain = view(5, used(5, 50))
    assert (plain.up.allowed, plain.down.allowed) == (10, 1)


def test_a_metric_with_a_selector_is_called_by_its_labels_and_not_in_gos_notation():
    mail = given.external(given.average("30"), "queue_length", {"matchLabels": {"queue": "mail"}})
    told = view(2, given.series(150), hpa=given.hpa(mail))
    assert told.summary == 'scales from 2 to 4: queue_length{queue="mail"} above target'
    assert (told.metrics[0].label, told.metrics[0].name) == (
        'queue_length{queue="mail"}',
        "External metric, average per pod",
    )


def test_at_zero_there_is_nothing_left_to_remove():
    queue = given.hpa(given.external(given.average("30")), low=0, status=given.marked())
    told = view(0, given.series(0), hpa=queue)
    assert told.less == "There is nothing left to remove."


def test_a_lost_metric_says_what_it_counts_as():
    queue = given.losing(given.external(given.average("10")), "Replicas", replicas=3)
    told = view(3, used(3, 50), given.unreadable("the adapter is down"), hpa=given.hpa(given.cpu(), queue))
    assert told.reason == "WithinTolerance"
    lost = told.metrics[1]
    assert lost.label == "queue"
    assert lost.fallback == "its fall-back of 3 replicas counts"
    assert lost.problem.endswith("the adapter is down")
    assert lost.replicas == 3
    alone = view(3, given.unreadable("the adapter is down"), hpa=given.hpa(queue))
    assert (alone.reason, alone.state) == ("LossPolicy", "held")
    assert alone.less.startswith(
        "queue cannot be read: its fall-back of 3 replicas counts. Next: make this metric readable"
    )
