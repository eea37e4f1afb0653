"""A misspelt name comes with the name that was probably meant."""

import pytest

from trimtab.model.spelling import nearest

COMMANDS = ["explain", "lab", "run", "simulate", "top", "up"]


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("explan", "explain", id="a letter is missing"),
        pytest.param("simulates", "simulate", id="a letter too many"),
        pytest.param("tpo", "top", id="two letters of a short name are transposed"),
        pytest.param("pu", "up", id="the only two letters are transposed"),
        pytest.param("rnu", "run", id="the last two letters are transposed"),
        pytest.param("Tpo", "top", id="transposed in another case"),
        pytest.param("opt", "", id="a letter in another place is more than one mistake"),
        pytest.param("x", "", id="nothing is alike"),
        pytest.param("", "", id="an empty name"),
    ],
)
def test_nearest(name, want):
    assert nearest(name, COMMANDS) == want


def test_the_name_of_the_same_letters_is_nearer_than_one_with_another_letter():
    assert nearest("wbe", ["web", "wbee"]) == "web"
