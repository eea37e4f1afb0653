"""F25: a leader that is stopped past its lease and then continued writes nothing, with real processes and signals."""

from pathlib import Path

from tests.faults.horizontal.scene import becomes, held, load
from tests.faults.processes.program import QUICK_LEASE, Program, leader, started
from tests.scenarios.horizontal.stage import Stage


async def has_taken_over(stage: Stage, before: str) -> bool:
    return await leader(stage) not in {"", before}


async def freeze_and_thaw(stage: Stage, old: Program, new: Program, loads: tuple[int, int]) -> None:
    """Stop the leader until the other leads, let it go on, and look what it writes."""
    holder = await leader(stage)
    old.stop()
    await stage.wait_for(lambda: has_taken_over(stage, holder))
    load(stage, loads[0] * 100)
    await becomes(stage, loads[0])
    written, asked = old.accepted(), old.asked("/leases")
    load(stage, loads[1] * 100)
    old.go_on()
    await becomes(stage, loads[1])

    async def has_looked() -> bool:
        return old.asked("/leases") >= asked + 4

    await stage.wait_for(has_looked)
    assert old.accepted() == written
    assert any(path.endswith("/scale") for path in new.accepted())


def test_f25_of_two_processes_the_frozen_one_writes_nothing_when_it_goes_on(both, tmp_path: Path):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with (
            started(stage, tmp_path / "one", *QUICK_LEASE) as one,
            started(stage, tmp_path / "other", *QUICK_LEASE) as other,
        ):
            load(stage, 600)
            await becomes(stage, 6)
            old, new = (one, other) if one.accepted() else (other, one)
            assert not new.accepted(), "only the leader writes"
            await freeze_and_thaw(stage, old, new, (9, 12))
            await freeze_and_thaw(stage, new, old, (14, 17))
            assert await one.end() == 0
            assert await other.end() == 0

    both(scenario)
