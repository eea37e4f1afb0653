"""What docs/commands.md shows is what happens."""

import re
from pathlib import Path

import pytest

from trimtab.cli import COMMANDS, answer

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
(MANIFEST,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
FIRST, SECOND = re.findall(r"```console\n\$ trimtab validate web.yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("manifest", "want", "code"),
    [
        pytest.param(MANIFEST, FIRST, 1, id="as written"),
        pytest.param(
            MANIFEST.replace("many", "5").replace('"80"', "80"), SECOND, 0, id="once these are numbers"
        ),
    ],
)
def test_the_findings_shown_are_the_findings_printed(manifest, want, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(manifest, encoding="utf-8")
    assert answer(["validate", "web.yaml"]) == code
    out, err = capsys.readouterr()
    assert out + err == want


@pytest.mark.parametrize("name", ["completion", "convert", "install", "validate"])
def test_a_command_of_the_page_exists(name):
    assert name in COMMANDS
    assert f"trimtab {name}" in PAGE
