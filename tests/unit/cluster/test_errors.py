"""What the answers of servers and proxies mean as errors."""

import json

import pytest

from trimtab.cluster import errors
from trimtab.cluster.errors import error_from_answer, error_from_status
from trimtab.model.status import Status, StatusDetails


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (Status(reason="Expired", code=410), errors.Gone),
        (Status(reason="Gone", code=500), errors.Gone),
        (Status(reason="Timeout", code=500), errors.ServerTimeout),
        (Status(reason="ServerTimeout", code=500), errors.ServerTimeout),
        (Status(reason="AlreadyExists", code=409), errors.AlreadyExists),
        (Status(reason="NameNotAllowed", code=409), errors.Conflict),
        (Status(code=429), errors.TooManyRequests),
        (Status(code=499), errors.ApiError),
        (Status(code=500), errors.ServerError),
        (Status(code=502), errors.ServerError),
        (Status(code=503), errors.Unavailable),
        (Status(code=504), errors.ServerTimeout),
    ],
)
def test_the_reason_says_more_than_the_code(status, kind):
    assert type(error_from_status("reading", status)) is kind


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (Status(message="no", reason="Why", code=400), "reading pods: no (400)"),
        (Status(reason="Why", code=400), "reading pods: Why (400)"),
        (Status(code=400), "reading pods: no message (400)"),
    ],
)
def test_an_error_says_what_was_done_and_why_it_failed(status, want):
    assert str(error_from_status("reading pods", status)) == want


@pytest.mark.parametrize(
    ("header", "detail", "want"),
    [
        (None, 0, None),
        (None, 1, 1.0),
        (2.0, 0, 2.0),
        (2.0, 9, 2.0),
        (0.0, 9, 0.0),
    ],
)
def test_the_header_says_more_about_when_to_try_again_than_the_status(header, detail, want):
    status = Status(code=429, details=StatusDetails(retry_after_seconds=detail))
    assert error_from_status("reading", status, header).retry_after == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("9" * 30, 3600.0),
    ],
)
def test_retry_after_is_a_number_of_seconds_up_to_an_hour(value, want):
    assert errors.parse_retry_after(value) == want


def body(**fields):
    return json.dumps({"kind": "Status", **fields}).encode()


@pytest.mark.parametrize(
    ("content", "is_failure"),
    [
        (body(status="Failure"), True),
        (body(), True),
        (body(status="Success"), False),
        (json.dumps({"kind": "Pod", "status": "Status"}).encode(), False),
        (b'{"kind": "Status", "code": "many"}', False),
        (b"<html>", False),
        (b"", False),
        (b" " * 300 + body(status="Failure"), False),
    ],
)
def test_a_failure_is_a_status_that_is_no_success(content, is_failure):
    assert (errors.read_failure(content) is not None) == is_failure


@pytest.mark.parametrize(
    ("content", "want"),
    [
        (body(status="Failure", message="no", code=500), "no"),
        (b"<html>\n  bad   gateway\n</html>", "<html> bad gateway </html>"),
        (b"x" * 300, "x" * 200),
        (b"  \n", "no Kubernetes Status in the answer"),
        (b"\xff", "�"),
    ],
)
def test_an_answer_of_any_kind_has_its_http_status_and_its_words(content, want):
    error = error_from_answer("reading", 502, {"retry-after": "4"}, content)
    assert (error.message, error.code, error.retry_after) == (want, 502, 4.0)


def test_an_error_can_be_told_as_another_one():
    found = error_from_status("patching", Status(message="no", reason="Invalid", code=422), 3.0)
    other = errors.Conflict.like(found)
    assert type(other) is errors.Conflict
    assert (str(other), other.reason, other.retry_after) == (str(found), "Invalid", 3.0)


VPA = {"group": "autoscaling.trimtab.dev", "kind": "verticalpodautoscalers", "name": "web"}


def not_found(**details: str) -> bytes:
    body = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": details}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("content", "is_object"),
    [
        pytest.param(not_found(**VPA), True, id="the object"),
        pytest.param(not_found(**VPA | {"name": "db"}), False, id="another object"),
        pytest.param(not_found(kind="namespaces", name="web"), False, id="the namespace"),
        pytest.param(not_found(), False, id="the resource, by a Status"),
        pytest.param(b"404 page not found\n", False, id="the API or its CRD"),
        pytest.param(b"<html>no such page</html>", False, id="the page of a proxy"),
    ],
)
def test_a_404_says_whether_the_object_is_missing_or_what_serves_it(content, is_object):
    error = error_from_answer("reading", 404, {}, content)
    assert isinstance(error, errors.NotFound)
    assert error.lacks_object("verticalpodautoscalers", "web") is is_object
