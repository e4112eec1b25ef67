import asyncio
import base64
from pathlib import Path

import pytest

from agent_tui.features.sandbox.proxy import NetworkGate, Wanted
from agent_tui.features.sandbox.proxy_request import Target
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.network_gate import gate_folder, loopback_gate
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row


class Echo(QuietHandler):
    """Answers with the request that it got, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("transfer-encoding"):
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        said = f"{self.requestline}\n{self.headers}".encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET


def allowing(gate: NetworkGate) -> NetworkGate:
    async def decide(_wanted: Wanted) -> str:
        return ""

    gate.decide = decide
    return gate


async def ask(folder: Path, *sent: bytes) -> bytes:
    """What the gate answers until it closes."""
    reader, writer = await asyncio.open_unix_connection(folder / "proxy")
    try:
        for piece in sent:
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()


async def test_without_anybody_to_decide_all_is_refused_in_words_and_nothing_is_looked_up():
    looked_up: list[str] = []
    gate = NetworkGate(resolve=lambda host, _port: looked_up.append(host) or ["192.0.2.1"])
    refused: list[tuple[Target, str]] = []
    gate.tell_refusal = lambda target, why: refused.append((target, why))
    async with gate_folder(gate) as folder:
        answer = await ask(folder, b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n")
    first, _, rest = answer.partition(b"\r\n")
    words = b"agent-tui's sandbox: network access to pypi.org was not allowed"
    assert first == b"HTTP/1.1 403 " + words  # programs print it each time they try again
    assert words + b": no conversation is under way. Do not try to get around it." in rest
    assert looked_up == []
    assert refused == [(Target("pypi.org", 443), "no conversation is under way")]
    assert [one.refusal for one in gate.records] == ["no conversation is under way"]


@each_row(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "224.0.0.1", "0.0.0.0"),
        *("::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "240.0.0.1"),
    ],
)
async def test_a_name_that_leads_to_a_private_address_is_refused(address: str):
    gate = allowing(NetworkGate(resolve=lambda _host, _port: ["93.184.216.34", address]))
    async with gate_folder(gate) as folder:
        answer = await ask(folder, b"CONNECT rebinds.test:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"rebinds.test resolves to {address}".encode() in answer


async def test_what_says_a_private_address_itself_is_refused_without_a_question():
    gate, asked = NetworkGate(), list[Target]()

    async def decide(wanted: Wanted) -> str:
        asked.append(wanted.target)
        return ""

    gate.decide = decide
    async with gate_folder(gate) as folder:
        for host in ("10.1.2.3", "[::1]", "localhost"):
            answer = await ask(folder, f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 403 "), host
    assert asked == []
    assert gate.why_never(Target("203.0.113.80", 443))
    assert not gate.why_never(Target("example.com", 443))


async def test_an_address_is_looked_up_once_and_that_one_is_connected_to():
    lookups: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"]

    gate = allowing(NetworkGate(may_be_private=True, resolve=resolve, proxy_for=lambda _t: ""))
    with LoopbackServer(Echo) as server:
        async with gate_folder(gate) as folder:
            sent = f"CONNECT a.test:{server.port} HTTP/1.1\r\n\r\n".encode()
            inner = b"GET /x HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n"
            answer = await ask(folder, sent, inner)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert lookups == ["a.test"]
    (record,) = gate.records
    assert (record.target, record.refusal, record.sent) == (
        Target("a.test", server.port),
        "",
        len(inner),
    )
    assert record.received > 50


async def test_a_plain_request_ends_the_connection_and_nothing_behind_it_is_sent_on():
    gate = allowing(loopback_gate())
    with LoopbackServer(Echo) as server:
        async with gate_folder(gate) as folder:
            first = f"POST http://a.test:{server.port}/x HTTP/1.1\r\nHost: b.test\r\n".encode()
            behind = b"GET /smuggled HTTP/1.1\r\nHost: b.test\r\n\r\n"
            answer = await ask(folder, first + b"Content-Length: 3\r\n\r\nabc" + behind)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"POST /x HTTP/1.1\n" in answer
    assert f"Host: a.test:{server.port}\n".encode() in answer
    assert answer.endswith(b"abc")
    assert b"smuggled" not in answer
    assert b"b.test" not in answer


async def test_a_body_in_chunks_is_handed_on_and_an_unclear_one_ends_the_connection():
    gate = allowing(loopback_gate())
    with LoopbackServer(Echo) as server:
        async with gate_folder(gate) as folder:
            first = f"POST http://a.test:{server.port}/ HTTP/1.1\r\n".encode()
            first += b"Transfer-Encoding: chunked\r\n\r\n"
            whole = await ask(folder, first, b"3\r\nabc\r\n1;x\r\nd\r\n0\r\nT: 1\r\n\r\n")
            broken = await ask(folder, first, b"zz\r\nabc")
    assert whole.endswith(b"abcd")
    assert broken == b""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"\0" * 100 + b"\r\n\r\n", b"400"),
        (b"CONNECT a.test:1 HTTP/1.1\r\n" + b"X: y\r\n" * 30_000, b"400"),
        (b"CONNECT missing.example:443 HTTP/1.1\r\n\r\n", b"424"),
        (b"CONNECT a.test:1 HTTP/1.1\r\n\r\n", b"424"),
    ],
)
async def test_what_cannot_be_done_is_answered(sent: bytes, status: bytes):
    async with gate_folder(allowing(loopback_gate())) as folder:
        answer = await ask(folder, sent)
    assert answer.split(b" ")[1] == status


async def test_a_command_that_gives_up_ends_the_question():
    asked, left = asyncio.Event(), asyncio.Event()

    async def decide(_wanted: Wanted) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return ""

    gate = loopback_gate()
    gate.decide = decide
    async with gate_folder(gate) as folder:
        _, writer = await asyncio.open_unix_connection(folder / "proxy")
        writer.write(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(asked.wait(), PATIENCE_S)
        writer.close()
        await asyncio.wait_for(left.wait(), PATIENCE_S)


async def test_the_persons_own_proxy_is_gone_through_and_its_password_stays_outside(monkeypatch):
    heads: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        if heads[-1].startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            writer.write(b"tunnel: " + await reader.read(9))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name in ("HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://me:p%40ss@127.0.0.1:{port}")
        monkeypatch.delenv(name.lower(), raising=False)
    gate = allowing(NetworkGate(resolve=lambda _host, _port: ["93.184.216.34"]))
    async with gate_folder(gate) as folder:
        tunnel = await ask(folder, b"CONNECT a.test:443 HTTP/1.1\r\n\r\n", b"encrypted")
        plain = await ask(folder, b"GET http://a.test/x HTTP/1.1\r\n\r\n")
    server.close()
    key = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:p@ss")
    assert tunnel == b"HTTP/1.1 200 Connection established\r\n\r\ntunnel: encrypted"
    assert plain.endswith(b"hi")
    assert heads[0].startswith(b"CONNECT a.test:443 HTTP/1.1\r\n")
    assert heads[1].startswith(b"GET http://a.test/x HTTP/1.1\r\n")
    assert all(key in head for head in heads)
    assert "p%40ss" not in "".join(gate.environ().values())


def test_programs_inside_are_led_to_the_gate_and_not_for_the_loopback():
    gate = NetworkGate()
    environ = gate.environ({"GRADLE_OPTS": "-Xmx1g"})
    proxy = f"http://127.0.0.1:{gate.port}"
    assert {environ[name] for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY")} == {proxy}
    assert environ["no_proxy"] == "localhost,127.0.0.1,::1"
    assert environ["GRADLE_OPTS"].startswith("-Xmx1g -Dhttp.proxyHost=127.0.0.1 ")
