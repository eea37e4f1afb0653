"""The page's own files: complete, unchanged, and without anything from outside."""

import hashlib
import json
import re
from importlib import resources

import pytest

from tests.dashboard.asking import app_of, ask
from tools.vendor_dashboard import PACKAGES

STATIC = resources.files("trimtab.dashboard") / "static"
OWN = sorted(entry.name for entry in STATIC.iterdir() if entry.is_file())
VENDORED = json.loads((STATIC / "vendor" / "vendor.json").read_text())


@pytest.mark.parametrize("name", sorted(VENDORED))
def test_a_vendored_file_is_the_reviewed_one(name):
    assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == VENDORED[name]["sha256"]


def test_the_list_of_vendored_files_is_complete_and_pinned():
    there = {entry.name for entry in (STATIC / "vendor").iterdir()} - {"vendor.json"}
    assert there == set(VENDORED) == {name for package in PACKAGES for name in package.files}
    pinned = {f"{package.name}@{package.version}" for package in PACKAGES}
    assert {entry["package"] for entry in VENDORED.values()} == pinned
    for package in PACKAGES:
        assert f"LICENSE.{package.name}.txt" in there


@pytest.mark.parametrize("name", OWN)
def test_our_files_name_nothing_outside_and_bring_nothing_inline(name):
    text = (STATIC / name).read_text()
    outside = [url for url in re.findall(r"https?://[^\s\"'`<>)]+", text) if "www.w3.org" not in url]
    assert outside == []
    assert not re.search(
        r"\bstyle=\"|\bon\w+=\"|<script(?![^>]*\bsrc=)|dangerouslySetInnerHTML|innerHTML\s*=|\beval\(", text
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/static/main.js", "text/javascript; charset=utf-8"),
        ("/static/app.css", "text/css; charset=utf-8"),
        ("/static/vendor/uplot.js", "text/javascript; charset=utf-8"),
        ("/favicon.ico", "image/svg+xml"),
    ],
)
async def test_files_need_no_login_and_say_what_they_are(path, kind):
    answer = await ask(app_of(), "GET", path)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)


async def test_every_module_that_is_imported_is_served():
    app = app_of()
    for name in OWN:
        for path in re.findall(r'from "\./([\w/.]+)"', (STATIC / name).read_text()):
            assert (await ask(app, "GET", f"/static/{path}")).status == 200, f"{name} imports {path}"


async def test_an_unchanged_file_is_not_sent_again():
    first = await ask(app_of(), "GET", "/static/app.css")
    second = await ask(app_of(), "GET", "/static/app.css", headers={"if-none-match": first.headers["etag"]})
    assert (second.status, second.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static//etc/passwd", "/static/vendor/vendor.json", "/static/"]
)
async def test_no_path_leads_to_other_files(path):
    assert (await ask(app_of(), "GET", path)).status == 401
