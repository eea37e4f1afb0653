"""What the shared caches of the vertical components report about themselves."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trimtab.operator.vertical.cluster_view import ClusterView

KINDS = ("pods", "verticalpodautoscalers", "nodes")
CACHES = st.tuples(st.booleans(), st.sampled_from(["", "403"]), st.sampled_from(["", "the watch is silent"]))
"""Whether the first list is complete, why the last request failed, and why the cache cannot be watched."""


@given(st.lists(CACHES, min_size=len(KINDS), max_size=len(KINDS)))
def test_a_kind_is_a_problem_until_it_is_listed_and_while_it_cannot_be_watched(drawn: list[Any]) -> None:
    caches = dict(zip(KINDS, drawn, strict=True))
    fakes = [
        SimpleNamespace(
            resource=SimpleNamespace(plural=kind),
            is_settled=is_listed,
            last_error=lambda error=error: error,
            failure=lambda failure=failure: failure,
        )
        for kind, (is_listed, error, failure) in caches.items()
    ]
    view: Any = SimpleNamespace(all_caches=lambda: fakes)
    problems = ClusterView.problems(view)
    healthy = {kind for kind, (is_listed, _, failure) in caches.items() if is_listed and not failure}
    assert set(problems) == set(KINDS) - healthy
    for kind, problem in problems.items():
        is_listed, error, failure = caches[kind]
        assert problem == (failure if is_listed else error or "the first list is not complete")
