"""Which namespaces the settings of a recommender and an updater cover together."""

import pytest

from trimtab.operator.settings.published import FoundSettings, combined
from trimtab.operator.settings.settings import Settings


def found(*namespaces: str, is_published: bool = True) -> FoundSettings:
    return FoundSettings(Settings.of(watch_namespaces=namespaces), "here", is_published=is_published)


@pytest.mark.parametrize(
    ("recommender", "updater", "watched"),
    [
        pytest.param(found("a"), found("b", "a"), ("a", "b"), id="either"),
        pytest.param(found(), found("b"), (), id="the recommender watches all"),
        pytest.param(found("a"), found(), (), id="the updater watches all"),
        pytest.param(found(), found(), (), id="both watch all"),
        pytest.param(found("a"), found(is_published=False), ("a",), id="published before assumed"),
        pytest.param(found(is_published=False), found("b"), ("b",), id="published before assumed, too"),
        pytest.param(
            found("a", is_published=False), found("b", is_published=False), ("a", "b"), id="assumed"
        ),
    ],
)
def test_the_namespaces_of_either_loop_count_and_none_means_all(recommender, updater, watched):
    settings = combined(recommender, updater)
    assert settings.settings.watch_namespaces == watched
    assert settings.updater_sees_all_pods is (updater.settings.watch_namespaces == ())
