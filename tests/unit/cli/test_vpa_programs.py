"""The help of upstream's programs shows their own flags with the defaults that they have there."""

import re

import pytest
from click.testing import CliRunner

from trimtab.cli import vpa_programs

PROGRAMS = {
    "vpa-recommender": (vpa_programs.recommender, "8942", "--recommender-interval"),
    "vpa-updater": (vpa_programs.updater, "8943", "--updater-interval"),
    "vpa-admission-controller": (vpa_programs.admission_controller, "8000", "--webhook-port"),
}


def help_of(program):
    return CliRunner().invoke(PROGRAMS[program][0], ["--help"]).output


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_about_the_program(program):
    """It listed the flags of horizontal and the dashboard, and --components, on 600 lines."""
    text = help_of(program)
    assert PROGRAMS[program][2] in text
    assert "--horizontal-pod-autoscaler" not in text
    assert "--components" not in text
    assert "trimtab run --help-all" in text


@pytest.mark.parametrize("program", ["vpa-recommender", "vpa-updater"])
def test_help_shows_the_defaults_of_the_program(program):
    text = re.sub(r"\s+", " ", help_of(program))
    assert f"0 picks a free one. [default: {PROGRAMS[program][1]};" in text
    assert (
        "Hold a Lease before writing, so that several replicas of Trimtab may run. [default: false;" in text
    )


def test_flags_that_the_help_leaves_out_still_work():
    made = vpa_programs.updater.make_context("vpa-updater", ["--horizontal-pod-autoscaler-tolerance=0.2"])
    assert made.params["tolerance"] == 0.2
