"""The budget of lines: what counts, for which package, and what is said of too many or too few."""

import pytest

from tools.budget import code_lines, main

CODE = """
'''Say what the module is.

It has several lines.
'''

import os  # the one

# A comment.
LIMIT = 3
'''Document the limit.'''


def text(
    first,
):
    '''Return a text.'''

    return '''a
b'''
"""


def test_blanks_comments_and_docstrings_are_free():
    assert code_lines(CODE) == len(["import", "LIMIT", "def", "first", "):", "return", "b"])


@pytest.fixture
def root(tmp_path):
    """A tree with 2 lines at the top, 3 in a package, and 4 in the package inside of it."""
    for number, file in ((2, "src/top.py"), (3, "src/lab/store.py"), (4, "src/lab/nodes/pods/node.py")):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("pass\n" * number)
    return tmp_path


def outcome(root, capsys, *budget, table=False):
    (root / "pyproject.toml").write_text("\n".join(["[tool.trimtab.budget]", *budget]))
    with pytest.raises(SystemExit) as ended:
        main(root, table=table)
    return ended.value.code, capsys.readouterr().out.splitlines()


def test_each_file_counts_for_the_longest_name(root, capsys):
    exact = ("building = []", "src = 2", '"src/lab" = 3', '"src/lab/nodes" = 4')
    code, printed = outcome(root, capsys, *exact, table=True)
    assert code == 0
    assert [line.split() for line in printed] == [
        ["src", "2", "of", "2"],
        ["src/lab", "3", "of", "3"],
        ["src/lab/nodes", "4", "of", "4"],
    ]


def test_a_package_over_its_number_fails(root, capsys):
    code, printed = outcome(root, capsys, "building = []", "src = 2", '"src/lab" = 5')
    assert code.startswith("src/lab has 7 lines of code, 2 over its budget: remove as many, or raise")
    assert printed == []


def test_a_package_that_is_rebuilt_may_exceed_its_number(root, capsys):
    assert outcome(root, capsys, 'building = ["src/lab"]', "src = 2", '"src/lab" = 5') == (0, [])


def test_a_package_that_is_rebuilt_is_one_of_the_budget(root, capsys):
    code, _ = outcome(root, capsys, 'building = ["src/labs"]', "src = 2", '"src/lab" = 8')
    assert code == "`building` in pyproject.toml names no package of the budget: src/labs"


def test_a_number_far_above_the_package_should_be_lowered(root, capsys):
    code, printed = outcome(root, capsys, "building = []", "src = 2", '"src/lab" = 8')
    assert code == 0
    assert printed == ["src/lab has 7 lines of code: lower its budget of 8 in pyproject.toml"]
