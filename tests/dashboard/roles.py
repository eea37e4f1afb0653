"""A leader and a follower with a VPA each, run for a day on the lab, for the dashboard to show."""

from collections.abc import Sequence

import msgspec

from tests.dashboard.asking import EVERYTHING
from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.stage import FOLLOWER, LEADER, Stage
from trimtab.dashboard import OperatorVertical
from trimtab.dashboard.pages.views import VerticalPage, VerticalRow


def play(look):
    """Let them run, then look: `look` is given the stage and the source of VPAs."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        async with stage.running() as actor:
            for step in range(12):
                swing = 1 + step % 4 / 10
                follower = float(FOLLOWER) * swing
                memory = {
                    "db_0": f"{float(LEADER):.0f}",
                    "db_1": f"{follower:.0f}",
                    "db_2": f"{follower * 1.1:.0f}",
                }
                stage.use(f"{80 + 15 * (step % 5)}m", **memory)
                await stage.recommend(actor, 1)
            await stage.pass_time(25 * 3600)
            await stage.recommend(actor, 1)
            await stage.update(actor)
            await look(stage, OperatorVertical(actor.site.view, actor.recommender, actor.updater))

    play_on_lab(scenario)


class Frozen:
    """The pages as they were at one moment: a browser cannot look into virtual time."""

    def __init__(self):
        self._rows: Sequence[VerticalRow] = ()
        self._pages: dict[str, VerticalPage | None] = {}
        play(self._keep)

    async def _keep(self, stage, source):
        def named(text):
            return text.replace(stage.namespace, "shop")

        found = {row.id: await source.page(row.id, EVERYTHING) for row in source.rows()}
        self._rows = [_renamed(row, VerticalRow, named) for row in source.rows()]
        self._pages = {
            named(identity): _renamed(page, VerticalPage, named) for identity, page in found.items()
        }

    def rows(self):
        return self._rows

    async def page(self, identity, rights):
        del rights
        return self._pages.get(identity)


def _renamed(value, kind, named):
    """Return a value with the stage's own namespace under a name that one can read."""
    return msgspec.json.decode(named(msgspec.json.encode(value).decode()), type=kind)
