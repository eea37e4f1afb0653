"""Every acceptance scenario is shown by a test, where it should be, and the page says by which."""

from tools.acceptance import PAGE, SECTIONS, by_scenario, missing, page


def test_no_scenario_is_without_a_test():
    assert missing() == []


def test_no_test_names_a_scenario_that_does_not_exist():
    listed = {one.id for section in SECTIONS.values() for one in section}
    assert set(by_scenario()) - listed == set()


def test_the_page_is_what_the_tests_say():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.acceptance`"
