"""The figures on the page about simulation are the figures that its commands print."""

import re
from pathlib import Path

from trimtab.cli import answer

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "simulate-before-switching-on.md").read_text(encoding="utf-8")


def test_the_week_of_the_page_comes_out_as_printed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(ROOT)
    (shown,) = re.findall(r"--svg week.svg\n(.*?)```", PAGE, re.DOTALL)
    files = ["examples/simulate-web.yaml", "examples/simulate-web-eager.yaml"]
    picture = tmp_path / "week.svg"
    options = ["--trace", "examples/traffic-week.csv", "--request", "cpu=500m", "--svg", str(picture)]
    assert answer(["simulate", *files, *options]) == 0
    assert capsys.readouterr().out == shown
    assert picture.read_text(encoding="utf-8") == (ROOT / "docs/images/simulate.svg").read_text(
        encoding="utf-8"
    )


def test_the_day_of_the_page_comes_out_as_printed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(ROOT)
    (shown,) = re.findall(r"--svg day.svg\n(.*?)```", PAGE, re.DOTALL)
    picture = tmp_path / "day.svg"
    options = ["--request", "cpu=1", "--request", "memory=4Gi", "--price", "cpu=0.04,memory=0.005"]
    files = ["examples/simulate-one-vpa.yaml", "examples/leader-follower.yaml"]
    trace = ["--trace", "examples/leadership-day.csv"]
    assert answer(["simulate", *files, *trace, *options, "--svg", str(picture)]) == 0
    assert capsys.readouterr().out == shown
    assert picture.read_text(encoding="utf-8") == (ROOT / "docs/images/simulate-vpas.svg").read_text(
        encoding="utf-8"
    )
