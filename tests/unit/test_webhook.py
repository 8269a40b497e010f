"""The webhook is reached at a public address, over TLS, once resolved; and nothing else ever is."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from firebreak.budgets import webhook
from firebreak.budgets.address import is_public
from firebreak.budgets.webhook import INTERNET, NotDelivered, Webhook
from tests.hook import HOST, URL, Hook, hooked

BODY = {"text": "Budget Firestore is past 100%."}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    with hooked(tmp_path_factory.mktemp("hook")) as hook:
        yield hook


@pytest.fixture
def hook(server: Hook) -> Hook:
    server.got.clear()
    server.statuses.clear()
    server.looked_up.clear()
    return server


def target(url: str = URL) -> Webhook:
    found = webhook.read(url)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "34.120.1.1",
        "1.1.1.1",
        "172.15.255.255",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "169.253.1.1",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001:806::2004",
    ],
)
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.8.8.8",
        "169.254.169.254",
        "169.254.169.253",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.170",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1%eth0",
        "fec0::1",
        "ff02::1",
        "",
        "localhost",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "8.8.8.8 ",
    ],
)
def test_an_address_that_leads_inside_or_nowhere_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("url", ["", "none", "  none\n"])
def test_no_webhook_is_nobody_to_tell(url: str) -> None:
    assert webhook.read(url) is None


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        (f"{URL}\n", HOST, "/services/T0/B0/secret"),
        ("https://hooks.example.test", HOST, "/"),
        ("https://HOOKS.example.test:443/a?b=c&d", HOST, "/a?b=c&d"),
    ],
)
def test_a_webhook_is_a_host_and_a_path(url: str, host: str, path: str) -> None:
    assert target(url) == Webhook(host=host, target=path)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.test/a",
        "HTTP://hooks.example.test/a",
        "ftp://hooks.example.test/a",
        "file:///etc/passwd",
        "gopher://hooks.example.test/a",
        "//hooks.example.test/a",
        "hooks.example.test/a",
        "https:hooks.example.test/a",
        "https:///a",
        "https://",
        "https://hooks.example.test:8443/a",
        "https://hooks.example.test:80/a",
        "https://hooks.example.test:0/a",
        "https://hooks.example.test:x/a",
        "https://hooks.example.test:99999/a",
        "https://user@hooks.example.test/a",
        "https://user:password@hooks.example.test/a",
        "https://hooks.example.test@10.0.0.1/a",
        "https://hooks.example.test\\@10.0.0.1/a",
        "https://hooks.example.test/a#fragment",
        "https://hooks.example.test/a b",
        "https://hooks.example.test/a\r\nHost: x",
        "https://hooks.example.test/ä",
        "https://hööks.example.test/a",
        "https://localhost/a",
        "https://metadata/a",
        "https://[::1]/a",
        "https://[fe80::1%25eth0]/a",
        "https://[/a",
        "https://hooks..test/a",
        "https://-hooks.test/a",
        "https://hooks_.test/a",
        "https://hooks.example.test./a",
        f"https://{'a' * 64}.test/a",
        f"https://hooks.example.test/{'a' * 3_000}",
        "nobody",
    ],
)
def test_a_url_that_is_not_https_to_a_named_host_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as error:
        webhook.read(url)

    assert "test" not in str(error.value)


def test_what_is_sent_arrives_at_the_address_that_was_looked_up_once(hook: Hook) -> None:
    webhook.send(target(), BODY, net=hook.net())

    assert hook.got == [{"path": "/services/T0/B0/secret", "host": HOST, "body": BODY}]
    assert hook.looked_up == [HOST]


def test_the_secret_path_is_not_shown() -> None:
    assert "secret" not in repr(target())


@pytest.mark.parametrize("status", [204, 201, 299])
def test_any_2xx_is_taken(hook: Hook, status: int) -> None:
    hook.statuses.append(status)

    webhook.send(target(), BODY, net=hook.net())

    assert len(hook.got) == 1


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
def test_any_other_answer_is_a_failure_and_no_redirect_is_followed(hook: Hook, status: int) -> None:
    hook.statuses.append(status)

    with pytest.raises(NotDelivered, match=f"^status {status}$"):
        webhook.send(target(), BODY, net=hook.net())

    assert len(hook.got) == 1


@pytest.mark.parametrize(
    "addresses", [["169.254.169.254"], ["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:10.0.0.1"], []]
)
def test_a_name_that_leads_inside_is_never_connected_to(hook: Hook, addresses: list[str]) -> None:
    """One private address among public ones is enough: who mixes them means the private one."""
    connected: list[str] = []

    def connect(address: str) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    net = hook.net(resolve=lambda _: addresses, is_allowed=INTERNET.is_allowed, connect=connect)
    with pytest.raises(NotDelivered, match="not a public one"):
        webhook.send(target(), BODY, net=net)

    assert connected == []


@pytest.mark.parametrize("host", ["localhost.localdomain", "127.0.0.1", "2130706433.0", "169.254.169.254"])
def test_nothing_on_this_machine_or_beside_it_is_reached_from_the_real_net(host: str) -> None:
    with pytest.raises(NotDelivered):
        webhook.send(Webhook(host=host, target="/"), BODY)


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    with hooked(tmp_path, host="somebody.else.test") as other:
        with pytest.raises(NotDelivered, match="SSLCertVerificationError"):
            webhook.send(target(), BODY, net=other.net())

        assert other.got == []


def test_a_certificate_that_nobody_vouches_for_is_refused(hook: Hook) -> None:
    with pytest.raises(NotDelivered, match="SSLCertVerificationError"):
        webhook.send(target(), BODY, net=hook.net(tls=INTERNET.tls))

    assert hook.got == []


def test_an_answer_that_goes_on_for_ever_is_left_at_the_deadline(hook: Hook) -> None:
    hook.statuses.append(100)

    with pytest.raises(NotDelivered, match=r"^no answer in time$"):
        webhook.send(target(), BODY, net=hook.net(total_s=0.3))

    assert left()


def test_a_server_that_says_nothing_is_left_at_the_deadline(hook: Hook) -> None:
    """It takes the connection and never begins with TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        net = hook.net(total_s=0.3, connect=lambda address: socket.create_connection((address, port), timeout=60))

        with pytest.raises(NotDelivered, match=r"^no answer in time$"):
            webhook.send(target(), BODY, net=net)

        assert left()


@pytest.mark.parametrize("at", ["resolve", "connect"])
def test_who_is_still_on_the_way_at_the_deadline_sends_nothing_any_more(hook: Hook, at: str) -> None:
    """The name, or the connection, comes only once the caller has been told that nothing was delivered."""
    late, net = threading.Event(), hook.net()
    usual = getattr(net, at)

    def slow(what: str) -> object:
        assert late.wait(timeout=60)
        return usual(what)

    with pytest.raises(NotDelivered, match=r"^no answer in time$"):
        webhook.send(target(), BODY, net=hook.net(**{at: slow}, total_s=0.1))
    late.set()

    assert left()
    assert hook.got == []


def test_who_was_given_up_does_not_connect_again(hook: Hook) -> None:
    """Closed between its handshake and its request; the base class would connect anew."""
    connection = webhook._Pinned(HOST, hook.net())
    connection.connect()
    connection.hang_up()

    with pytest.raises(NotDelivered, match=r"^given up$"):
        webhook._exchange(connection, "/", b"{}")

    assert hook.looked_up == [HOST]


def left() -> bool:
    """Whether the thread that waited for the answer ends, now that nobody waits for it."""
    waiting = [thread for thread in threading.enumerate() if thread.name == "firebreak-within"]
    for thread in waiting:
        thread.join(timeout=10)
    return not any(thread.is_alive() for thread in waiting)


def test_nobody_there_is_not_delivered(hook: Hook) -> None:
    def connect(_: str) -> socket.socket:
        raise ConnectionRefusedError

    with pytest.raises(NotDelivered, match=r"^ConnectionRefusedError$"):
        webhook.send(target(), BODY, net=hook.net(connect=connect))


def test_a_name_that_nobody_has_is_not_delivered(hook: Hook) -> None:
    def resolve(_: str) -> list[str]:
        raise socket.gaierror

    with pytest.raises(NotDelivered, match=r"^gaierror$"):
        webhook.send(target(), BODY, net=hook.net(resolve=resolve))
