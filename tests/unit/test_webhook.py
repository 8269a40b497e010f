"""The webhook is told over TLS, under one deadline, and its URL is never repeated."""

import logging
import socket
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firebreak.budgets import announce
from firebreak.budgets.announce import NotDelivered
from tests.hook import SECRET, Hook, hooked

BODY = {"text": "Budget Firestore is past 100%."}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    with hooked(tmp_path_factory.mktemp("hook")) as hook:
        yield hook


@pytest.fixture
def hook(server: Hook) -> Hook:
    server.got.clear()
    server.statuses.clear()
    server.headers.clear()
    return server


@pytest.mark.parametrize("value", ["", "none", "  none\n"])
def test_no_webhook_is_nobody_to_tell(value: str) -> None:
    assert announce.read(value) is None


def test_a_pasted_url_may_end_with_a_newline(hook: Hook) -> None:
    assert announce.read(f"{hook.url}\n") == hook.url


@pytest.mark.parametrize(
    "value",
    [
        "http://hooks.example.test/a",
        "ftp://hooks.example.test/a",
        "file:///etc/passwd",
        "//hooks.example.test/a",
        "hooks.example.test/a",
        "https:hooks.example.test/a",
        "https:///a",
        "https://",
        "https://hooks.example.test:99999/a",
        "https://[/a",
        "nobody",
    ],
)
def test_a_value_that_is_not_an_https_url_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(ValueError, match=r"^must be an https URL, or none$"):
        announce.read(value)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_2xx_is_taken_and_a_body_without_an_end_is_not_read(hook: Hook, status: int) -> None:
    hook.statuses.append(status)

    announce.send(hook.url, BODY, http=hook.client())

    assert hook.got == [{"path": f"/{SECRET}", "type": "application/json", "body": BODY}]


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
def test_any_other_answer_is_a_failure_and_no_redirect_is_followed(hook: Hook, status: int) -> None:
    hook.statuses.append(status)
    hook.headers["Location"] = f"{hook.url}/elsewhere"
    hook.headers["Retry-After"] = "0"

    with pytest.raises(NotDelivered, match=f"^status {status}$"):
        announce.send(hook.url, BODY, http=hook.client())

    assert len(hook.got) == 1


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    with hooked(tmp_path, host="somebody.else.test") as other:
        with pytest.raises(NotDelivered, match=r"^SSLError$"):
            announce.send(other.url, BODY, http=other.client())

        assert other.got == []


def test_a_certificate_that_nobody_vouches_for_is_refused(hook: Hook) -> None:
    with pytest.raises(NotDelivered, match=r"^SSLError$"):
        announce.send(hook.url, BODY, http=announce.client())

    assert hook.got == []


def test_an_answer_that_goes_on_for_ever_is_left_at_the_deadline(hook: Hook) -> None:
    hook.statuses.append(100)

    with pytest.raises(NotDelivered, match=r"^no answer in time$"):
        announce.send(hook.url, BODY, http=hook.client(), total_s=0.3)


def test_a_server_that_says_nothing_is_left_at_the_deadline(hook: Hook) -> None:
    """It takes the connection and never begins with TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = replace(hook, port=listener.getsockname()[1])

        with pytest.raises(NotDelivered, match=r"^no answer in time$"):
            announce.send(silent.url, BODY, http=hook.client(), total_s=0.3)


def test_nobody_there_is_not_delivered_and_the_traceback_does_not_hold_the_url(hook: Hook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = replace(hook, port=listener.getsockname()[1])

    with pytest.raises(NotDelivered, match=r"^NewConnectionError$") as error:
        announce.send(gone.url, BODY, http=hook.client())

    assert "secret" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("host", ["hooks..test", "hööks..test", f"{'a' * 64}.test"])
def test_a_name_that_cannot_be_one_is_not_delivered(hook: Hook, host: str) -> None:
    with pytest.raises(NotDelivered, match=r"^LocationParseError$"):
        announce.send(f"https://{host}/a", BODY, http=hook.client())


def test_headers_that_make_no_sense_do_not_bring_the_url_into_a_log(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.headers["X"] = "1\r\nno header"

    with caplog.at_level(logging.WARNING):
        announce.send(hook.url, BODY, http=hook.client())

    assert caplog.text == ""
