"""The author of a change, in records and log lines."""

import pytest

from trimtab.model.author import Author


@pytest.mark.parametrize(
    ("author", "facts", "text"),
    [
        pytest.param(Author(replica="a"), {"by": "a"}, "a", id="without leader election"),
        pytest.param(
            Author(replica="a", lease_transitions=0),
            {"by": "a", "leaseTransitions": 0},
            "a, lease transition 0",
            id="the first holder of a Lease",
        ),
        pytest.param(
            Author(replica="a", base_version="17"),
            {"by": "a", "baseVersion": "17"},
            "a, based on version 17",
            id="without a Lease, of a version",
        ),
        pytest.param(
            Author(replica="a", lease_transitions=3, base_version="17"),
            {"by": "a", "leaseTransitions": 3, "baseVersion": "17"},
            "a, lease transition 3, based on version 17",
            id="all",
        ),
    ],
)
def test_an_author_is_named_with_what_is_known(author, facts, text):
    assert author.facts == facts
    assert str(author) == text
