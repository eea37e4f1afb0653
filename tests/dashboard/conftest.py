"""A browser for the modules that need one. Such a module runs on one event loop, because the browser does."""

import pytest_asyncio

from tests.dashboard import browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(tmp_path_factory):
    async with browser.chromium(tmp_path_factory.mktemp("profile")) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="module")
async def tab(chromium):
    async with browser.tab(chromium) as opened:
        await opened.size(1280, 900)
        yield opened
        assert opened.complaints == []
