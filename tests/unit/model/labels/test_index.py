"""The selector index gives the same answers as looking at everything."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trimtab.model.labels.index import SelectorIndex
from trimtab.model.labels.selector import EVERYTHING, NOTHING, Selector


@pytest.fixture
def index():
    index: SelectorIndex[str, str] = SelectorIndex()
    index.set_pod("web-1", "shop", {"app": "web", "tier": "front"})
    index.set_pod("web-2", "shop", {"app": "web", "tier": "front"})
    index.set_pod("job-1", "shop", {"app": "web", "job": "scrape"})
    index.set_pod("blog-1", "blog", {"app": "web"})
    index.set_selector("all web", "shop", Selector.parse("app=web"))
    index.set_selector("front", "shop", Selector.parse("app=web,tier=front"))
    index.set_selector("no job", "shop", Selector.parse("!job"))
    index.set_selector("blog", "blog", EVERYTHING)
    return index


def test_pods_of_a_selector(index):
    assert index.pods_of("all web") == ["web-1", "web-2", "job-1"]
    assert index.pods_of("front") == ["web-1", "web-2"]
    assert index.pods_of("no job") == ["web-1", "web-2"]
    assert index.pods_of("blog") == ["blog-1"]


def test_selectors_of_a_pod_come_in_the_order_they_were_added(index):
    assert index.selectors_of("web-2") == ("all web", "front", "no job")
    assert index.selectors_of("job-1") == ("all web",)
    assert index.selectors_of("blog-1") == ("blog",)


def test_a_selector_that_selects_nothing_matches_nothing(index):
    index.set_selector("none", "shop", NOTHING)
    assert index.pods_of("none") == []
    assert "none" not in index.selectors_of("web-1")


def test_new_labels_move_a_pod(index):
    index.set_pod("web-1", "shop", {"app": "web", "job": "x"})
    assert index.pods_of("front") == ["web-2"]
    assert index.selectors_of("web-1") == ("all web",)


def test_a_new_selector_is_seen_by_pods_that_were_asked_before(index):
    assert index.selectors_of("job-1") == ("all web",)
    index.set_selector("jobs", "shop", Selector.parse("job=scrape"))
    assert index.selectors_of("job-1") == ("all web", "jobs")
    index.remove_selector("all web")
    assert index.selectors_of("job-1") == ("jobs",)


def test_forgetting_everything_leaves_nothing_behind(index):
    for pod in ("web-1", "web-2", "job-1", "blog-1", "never seen"):
        index.remove_pod(pod)
    for selector in ("all web", "front", "no job", "blog", "never seen"):
        index.remove_selector(selector)
    assert index._namespaces == {}
    with pytest.raises(KeyError):
        index.pods_of("front")
    with pytest.raises(KeyError):
        index.selectors_of("web-1")


namespaces = st.sampled_from(["one", "two"])
pods = st.integers(0, 7)
names = st.integers(0, 5)
label_sets = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
selectors = st.sampled_from(
    [
        NOTHING,
        *map(
            Selector.parse,
            ["", "a=x", "a=y", "a=x,b=y", "b in (x)", "b in (x,y)", "!c", "c", "a=x,a=y", "a!=x,c=x"],
        ),
    ]
)


class IndexAgainstBruteForce(RuleBasedStateMachine):
    """Adds, moves and removes pods and selectors, and compares every answer with a full scan."""

    def __init__(self):
        super().__init__()
        self.index: SelectorIndex[int, int] = SelectorIndex()
        self.pods: dict[int, tuple[str, dict[str, str]]] = {}
        self.selectors: dict[int, tuple[str, Selector]] = {}

    @rule(pod=pods, namespace=namespaces, labels=label_sets)
    def set_pod(self, pod, namespace, labels):
        self.index.set_pod(pod, namespace, labels)
        self.pods[pod] = namespace, labels

    @rule(pod=pods)
    def remove_pod(self, pod):
        self.index.remove_pod(pod)
        self.pods.pop(pod, None)

    @rule(name=names, namespace=namespaces, selector=selectors)
    def set_selector(self, name, namespace, selector):
        self.index.set_selector(name, namespace, selector)
        self.selectors[name] = namespace, selector

    @rule(name=names)
    def remove_selector(self, name):
        self.index.remove_selector(name)
        self.selectors.pop(name, None)

    @invariant()
    def answers_equal_a_full_scan(self):
        matching = {
            (pod, name)
            for pod, (pod_namespace, labels) in self.pods.items()
            for name, (namespace, selector) in self.selectors.items()
            if namespace == pod_namespace and selector.matches(labels)
        }
        assert {(pod, name) for name in self.selectors for pod in self.index.pods_of(name)} == matching
        assert {(pod, name) for pod in self.pods for name in self.index.selectors_of(pod)} == matching


IndexAgainstBruteForce.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestTheIndexEqualsBruteForce = IndexAgainstBruteForce.TestCase


@given(st.dictionaries(pods, label_sets), selectors)
@settings(max_examples=60)
def test_any_selector_finds_the_pods_it_matches(labelled, selector):
    index: SelectorIndex[int, int] = SelectorIndex()
    for pod, labels in labelled.items():
        index.set_pod(pod, "one", labels)
    index.set_selector(0, "one", selector)
    assert sorted(index.pods_of(0)) == sorted(p for p in labelled if selector.matches(labelled[p]))
