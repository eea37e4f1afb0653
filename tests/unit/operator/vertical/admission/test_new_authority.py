"""A new authority is trusted before it signs, whenever the API server reads the configuration."""

from datetime import UTC, datetime, timedelta

import pytest

from trimtab.operator.vertical.admission.certificates import (
    AUTHORITY_LIFETIME,
    PUBLISHED_BEFORE_USE,
    make_material,
    renewed,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("trimtab-webhook.trimtab.svc",)
DUE = NOW + AUTHORITY_LIFETIME * 2 / 3


def serial(pair):
    return pair.certificate.serial_number


def test_a_new_authority_is_published_for_two_minutes_before_it_signs():
    assert PUBLISHED_BEFORE_USE.total_seconds() == 120
    first = renewed(make_material(NAMES, NOW), NAMES, DUE - timedelta(days=1))
    published = renewed(first, NAMES, DUE)
    assert published.next_authority is not None
    assert serial(published.leaf) == serial(first.leaf)
    waiting = renewed(published, NAMES, DUE + PUBLISHED_BEFORE_USE - timedelta(seconds=1))
    assert waiting is published
    used = renewed(published, NAMES, DUE + PUBLISHED_BEFORE_USE)
    assert used.next_authority is None
    assert serial(used.authority) == serial(published.next_authority)
    assert serial(used.leaf) != serial(published.leaf)
    assert used.old_authority_pem == first.authority.certificate_pem


@pytest.mark.parametrize("seconds", [-1, 0])
def test_an_authority_is_renewed_after_two_thirds_of_its_life(seconds):
    material = renewed(make_material(NAMES, NOW), NAMES, DUE - timedelta(days=1))
    later = renewed(material, NAMES, DUE + timedelta(seconds=seconds))
    assert (later.next_authority is not None) == (seconds >= 0)
