"""The changes of the overview keep a page as its viewer may see it, whatever happens to objects and rights."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.dashboard.auth.rights import AUTOSCALERS, Kind, KindInNamespace, Visible
from trimtab.dashboard.pages.views import HorizontalRow, KindView, Notice, ProgramView, Row, VerticalRow
from trimtab.dashboard.sources import Sources
from trimtab.dashboard.web.overview import OverviewCache, listing_of

NAMESPACES = ("shop", "secret-project")
IDS = [f"{kind}/{namespace}/{name}" for kind in AUTOSCALERS for namespace in NAMESPACES for name in "ab"]
LISTINGS = [KindInNamespace(kind, namespace) for kind in AUTOSCALERS.values() for namespace in NAMESPACES]

Step = tuple[dict[str, str], set[Kind], set[KindInNamespace]]
STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(IDS), st.sampled_from(["steady", "held"])),
        st.sets(st.sampled_from(list(AUTOSCALERS.values())), max_size=2),
        st.sets(st.sampled_from(LISTINGS)),
    ),
    max_size=8,
)


def row(identity: str, state: str) -> Row:
    kind, namespace, name = identity.split("/")
    if kind == "vpa":
        return VerticalRow(id=identity, namespace=namespace, name=name, target="", mode="Off", state=state)
    return HorizontalRow(id=identity, namespace=namespace, name=name, target="", low=1, high=2, state=state)


def rows_of(horizontal: tuple[HorizontalRow, ...], vertical: tuple[VerticalRow, ...]) -> dict[str, Row]:
    return {listed.id: listed for listed in horizontal} | {listed.id: listed for listed in vertical}


class Listed:
    """Sources whose rows a test sets."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.program = ProgramView()

    def cache(self) -> OverviewCache:
        return OverviewCache(Sources(_Rows(self, ""), _Rows(self, "vpa/"), lambda: self.program))  # type: ignore[arg-type]  # only rows are read


class _Rows:
    def __init__(self, listed: Listed, prefix: str) -> None:
        self._listed, self._prefix = listed, prefix

    def rows(self) -> list[Row]:
        is_vertical = bool(self._prefix)
        return [
            row(identity, state)
            for identity, state in self._listed.states.items()
            if identity.startswith("vpa/") == is_vertical
        ]


@given(STEPS)
def test_a_followed_page_equals_the_overview_and_names_nothing_that_was_never_shown(steps: list[Step]):
    """Deleted autoscalers were named to every viewer, and rows stayed on the page after a right was revoked."""
    listed = Listed()
    cache = listed.cache()
    version, before, page = 0, Visible(), dict[str, Row]()
    for states, everywhere, granted in steps:
        listed.states = states
        cache.refresh()
        now = Visible(frozenset(everywhere), frozenset(granted & cache.listings()))
        changes = cache.changes_since(version, before, now)
        assert set(changes.removed) <= page.keys()
        for identity in changes.removed:
            del page[identity]
        page |= rows_of(changes.horizontal, changes.vertical)
        shown = cache.overview(now)
        assert page == rows_of(shown.horizontal, shown.vertical)
        assert all(now.covers(listing_of(found)) for found in page.values())
        version, before = cache.version, now


NARROW = Visible(frozenset(), frozenset(LISTINGS[:1]))
WIDE = Visible(frozenset(AUTOSCALERS.values()))


def test_problems_reach_viewers_of_the_cluster_only_because_they_may_name_namespaces():
    listed = Listed()
    cache = listed.cache()
    note = Notice(text="This page only looks.")
    listed.program = ProgramView(
        notices=(
            note,
            Notice(text="pods in secret-project: 403", is_problem=True, details=("secret-project: 403",)),
        ),
        horizontal=KindView(is_read=False, hint="only native ones such as secret-project/web"),
    )
    cache.refresh()
    assert cache.overview(WIDE).program == listed.program
    for told in (cache.overview(NARROW).program, cache.changes_since(0, NARROW, NARROW).program):
        assert told is not None
        assert told.notices[0] == note
        assert [notice.is_problem for notice in told.notices] == [False, True]
        assert not told.horizontal.is_read
        assert "secret-project" not in str(told)
    assert cache.changes_since(cache.version, NARROW, WIDE).program == listed.program
    assert cache.changes_since(cache.version, WIDE, WIDE).program is None


def test_a_lost_cluster_is_told_to_every_viewer_without_its_address():
    listed = Listed()
    cache = listed.cache()
    listed.program = ProgramView(
        notices=(
            Notice(text="The cluster cannot be reached: cannot connect to 10.1.2.3:6443.", is_problem=True),
        ),
        data_at=5.0,
    )
    cache.refresh()
    told = cache.overview(NARROW).program
    assert (told.data_at, [notice.text for notice in told.notices]) == (
        5.0,
        ["The cluster cannot be reached."],
    )
