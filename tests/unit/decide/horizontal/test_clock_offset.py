"""Our own clock is found wrong only if all others agree about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.decide.horizontal.observation.clock_offset import ROUNDED_TO, describe_offset, find_clock_offset
from trimtab.decide.horizontal.rules import HpaSettings

SETTINGS = HpaSettings()  # samples may be 120 s old and dated 60 s ahead


@pytest.mark.parametrize(
    ("server", "sources", "want"),
    [
        pytest.param(0.4, {"resource": -15}, 0, id="all clocks agree"),
        pytest.param(-150.4, {"resource": -165}, -150, id="a fast clock: server and source agree"),
        pytest.param(89.8, {"resource": 75}, 90, id="a slow clock: server and source agree"),
        pytest.param(-150, {"resource": -165, "custom": -900}, -150, id="a second source has also stopped"),
        pytest.param(0.4, {"resource": -165}, 0, id="one source is off alone"),
        pytest.param(0.4, {"resource": -165, "custom": -170}, 0, id="sources are off, but not the server"),
        pytest.param(-150, {"resource": -15}, 0, id="the server is off alone"),
        pytest.param(-150, {"resource": -15, "custom": -165}, 0, id="the sources disagree"),
        pytest.param(-150, {"resource": 4000}, 0, id="server and source are off by different amounts"),
        pytest.param(-60, {"resource": -75}, 0, id="samples are fresh enough by our clock"),
        pytest.param(None, {"resource": -165}, 0, id="one source, and the server has no date"),
        pytest.param(
            None, {"resource": -165, "custom": -155}, -160, id="two sources agree without the server"
        ),
        pytest.param(None, {"resource": -165, "custom": 4000}, 0, id="two sources disagree"),
        pytest.param(-150, {}, 0, id="no samples at all"),
    ],
)
def test_find_clock_offset(server, sources, want):
    assert find_clock_offset(server, sources, SETTINGS) == want


@given(
    server=st.none() | st.floats(-1e6, 1e6),
    good=st.floats(-SETTINGS.stale_after, SETTINGS.ahead_limit),
    others=st.dictionaries(st.sampled_from("abc"), st.floats(-1e9, 1e9)),
)
def test_a_source_that_is_right_by_our_clock_keeps_it(server, good, others):
    assert find_clock_offset(server, others | {"good": good}, SETTINGS) == 0


@given(
    ours=st.floats(-1e6, 1e6),
    lags=st.lists(st.floats(0, 100), min_size=1, max_size=3),
    has_server=st.booleans(),
)
def test_any_error_of_our_clock_that_rejects_all_samples_is_found(ours, lags, has_server):
    sources = {str(place): -ours - lag for place, lag in enumerate(lags)}
    found = find_clock_offset(-ours if has_server else None, sources, SETTINGS)
    if all(-SETTINGS.stale_after > newest or newest > SETTINGS.ahead_limit for newest in sources.values()):
        if has_server:
            assert abs(found + ours) <= ROUNDED_TO / 2
        else:
            assert (found != 0) == (len(lags) > 1)


@pytest.mark.parametrize(
    ("offset", "want"),
    [
        pytest.param(-150, "about 150 s ahead of", id="fast"),
        pytest.param(90, "about 90 s behind", id="slow"),
    ],
)
def test_the_text_names_the_direction(offset, want):
    assert want in describe_offset(offset)
