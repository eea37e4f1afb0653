"""Every vertical ruling is on by default, and upstream has none."""

from dataclasses import fields

import pytest

from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8, VpaCompat


@pytest.mark.parametrize("switch", [field.name for field in fields(VpaCompat)])
def test_every_ruling_is_on_and_upstream_has_none(switch):
    assert getattr(DEFAULT, switch) is True
    assert getattr(VPA_1_8, switch) is False
