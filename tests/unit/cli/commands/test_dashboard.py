"""`trimtab dashboard` starts the page with the settings of its options."""

import pytest
from click.testing import CliRunner

from trimtab.cli.commands import dashboard
from trimtab.operator.settings.settings import Settings


@pytest.mark.parametrize(
    ("options", "plugins"),
    [([], ()), (["--plugins", "example.com/A,example.com/B"], ("example.com/A", "example.com/B"))],
)
def test_it_loads_the_plugins_that_are_named_and_no_other(options, plugins, monkeypatch):
    started: list[Settings] = []
    monkeypatch.setattr(dashboard, "start", lambda settings, **_more: started.append(settings))
    result = CliRunner().invoke(dashboard.dashboard, options)
    assert result.exit_code == 0, result.output
    assert [settings.plugins for settings in started] == [plugins]
