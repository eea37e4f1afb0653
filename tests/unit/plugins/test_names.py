"""The names for authors of plug-ins are those that the documentation lists."""

import re
from pathlib import Path

import pytest

import trimtab.plugins
import trimtab.plugins.testing

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"


@pytest.mark.parametrize(("column", "module"), [(1, trimtab.plugins), (2, trimtab.plugins.testing)])
def test_the_page_lists_every_name_and_no_other(column, module):
    section = PAGE.read_text().split("## Names for authors")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")][1:]
    listed = [name for row in rows for name in re.findall(r"`(\w+)", row[column])]
    assert sorted(listed) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in listed)
