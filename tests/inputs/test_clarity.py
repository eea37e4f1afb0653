"""What counts as a clear refusal."""

import pytest

from tests.inputs.clarity import Answer, unclear
from tests.inputs.count import Count, Outcome
from tests.inputs.input import GONE, Refusal

MOST = Refusal("spec.maxReplicas", 0)


def told(text: str, code: int = 422) -> Answer:
    return Answer(code, text)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        pytest.param(told("spec.maxReplicas: Invalid value: 0: should be at least 1"), MOST, id="path, value and reason"),
        pytest.param(told("spec.maxReplicas: Required value"), Refusal("spec.maxReplicas", GONE), id="a missing value"),
        pytest.param(
            told('spec.maxReplicas: Invalid value: "string": must be of type integer'),
            Refusal("spec.maxReplicas", "five"),
            id="the kind of a value, where the kind is wrong",
        ),
        pytest.param(told("name: Too long: may not be more than 512 bytes"), Refusal("name", "x" * 999), id="the size of a huge value"),
        pytest.param(
            Answer(422, "no", (("", "there is no 'x' on the path /spec/x"),)), Refusal("/spec/x", "x"), id="a cause without a field"
        ),
    ],
)  # fmt: skip
def test_clear(answer: Answer, wanted: Refusal):
    assert unclear(answer, wanted) == ""


@pytest.mark.parametrize(
    ("answer", "wanted", "lack"),
    [
        pytest.param(told("", 201), MOST, "answered with 201", id="taken"),
        pytest.param(told("spec.maxReplicas: 0 is not at least 1", 500), MOST, "answered with 500", id="a failure"),
        pytest.param(told("Invalid value: 0: should be at least 1"), MOST, "does not name", id="no path"),
        pytest.param(told("spec.maxReplicas: should be at least 1"), MOST, "does not show", id="no value"),
        pytest.param(told("spec.maxReplicas: Invalid value: 0"), MOST, "does not say why", id="no reason"),
        pytest.param(
            told("spec.maxReplicas: Invalid value: 0: " + "very " * 999), MOST, "its message has", id="a message that nobody reads"
        ),
        pytest.param(
            told("spec.maxReplicas: Invalid value: 0: must be even at night"),
            Refusal("spec.maxReplicas", 0, "at least 1"),
            "does not say why",
            id="another reason",
        ),
    ],
)  # fmt: skip
def test_unclear(answer: Answer, wanted: Refusal, lack: str):
    assert unclear(answer, wanted).startswith(lack)


def test_an_input_counts_once_and_only_if_every_door_refused_it_clearly():
    count = Count()
    count.add("validate", [Outcome("a", True, 1.0), Outcome("b", True, 2.0)])
    count.add("lab", [Outcome("a", True, 30.4), Outcome("b", True, 1.0, "taken"), Outcome("c", False, 1.0)])
    first, second = str(count).splitlines()
    assert first == "bad inputs refused clearly 1 / 2, slowest 30 ms (a); good ones taken 1 / 1"
    assert second == "  by door: validate 2 / 2, lab 1 / 2"
    assert list(count.problems()) == ["lab: b: taken"]
