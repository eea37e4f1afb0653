"""Tasks that nobody waits for: their failures are told, loops start again, and no other way to start one exists."""

import ast
import asyncio
from pathlib import Path

import trimtab
from trimtab.clock import VirtualClock, keep_running, start_task

AWAITED = {
    "clock.py": "the two ways to start one",
    "operator/process.py": "run_until_stopped waits for all of them and raises what ended one",
    "operator/horizontal/reconciler.py": "_run is the error boundary, wait_idle and close wait",
    "operator/horizontal/rivals.py": "whoever asked waits for the flight",
    "operator/vertical/recommender/history_loader.py": "take raises what reading a namespace raised",
    "operator/control_loop.py": "_pause waits for the first and ends the others",
    "operator/vertical/targets.py": "whoever asked waits for the flight",
    "metrics/reader.py": "whoever asked waits for the flight",
    "adapter/sources/router.py": "whoever asked waits for the flight",
    "cluster/access_reviews.py": "whoever asked waits for the flight",
    "adapter/adapter.py": "the program waits for all of its loops",
    "cluster/cache/parts.py": "prepare waits for the list of namespaces",
    "cluster/codec/lists.py": "the reader of pages waits for the next page",
    "dashboard/web/event_stream.py": "the stream waits for the first and ends the others",
    "dashboard/read_only.py": "started ends and gathers it",
    "dashboard/dashboard.py": "the page waits for it on its way out",
}
"""The modules that start a task by hand, and who gets to see its failure."""


def starts(path: Path) -> bool:
    called = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return any(
        isinstance(one, ast.Attribute) and one.attr in {"ensure_future", "create_task"} for one in called
    )


def test_every_module_that_starts_a_task_says_who_sees_it_fail():
    root = Path(trimtab.__file__).parent
    programs = ("operator", "cluster", "metrics", "adapter", "dashboard")
    found = {
        str(path.relative_to(root))
        for path in (root / "clock.py", *(one for name in programs for one in (root / name).rglob("*.py")))
        if starts(path)
    }
    assert found == set(AWAITED)


def test_a_loop_that_fails_is_logged_and_starts_again(caplog):
    runs: list[int] = []

    async def run() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise RuntimeError("nobody expected this")
        if len(runs) == 3:
            await asyncio.Event().wait()

    async def main() -> None:
        task = keep_running("the loop", run)
        await asyncio.sleep(10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    VirtualClock().run(main())
    assert runs == [0, 1, 2]
    assert [one.getMessage() for one in caplog.records if one.name == "trimtab.clock"] == [
        "the loop failed and starts again",
        "the loop ended by itself and starts again",
    ]


def test_work_that_nobody_waits_for_does_not_fail_silently(caplog):
    async def fail() -> None:
        raise RuntimeError("nobody expected this")

    async def main() -> None:
        start_task("the hand-over", fail())
        await asyncio.sleep(1)

    VirtualClock().run(main())
    assert "the hand-over failed: nobody expected this" in caplog.text
