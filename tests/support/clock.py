"""Virtual time in tests: whatever waits, waits for no time at all."""

import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import wraps
from typing import Any


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine test under the fixture `clock`, inside of the asynchronous contexts among what it takes."""
    taken = inspect.signature(test).parameters

    @wraps(test)
    def played(**fixtures: Any) -> None:
        async def act() -> None:
            async with AsyncExitStack() as stack:
                for name, value in fixtures.items():
                    if isinstance(value, AbstractAsyncContextManager):
                        fixtures[name] = await stack.enter_async_context(value)
                await test(**{name: fixtures[name] for name in taken})

        fixtures["clock"].run(act())

    clock = inspect.Parameter("clock", inspect.Parameter.KEYWORD_ONLY)
    vars(played)["__signature__"] = inspect.Signature([*({**taken, "clock": clock}.values())])
    return played
