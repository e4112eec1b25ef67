import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_tui.features.sandbox.proxy_request import BadRequest, Target, chunk_bytes, read_head
from tests.support.rows import each_row


def head(first: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([first, *lines, b"", b""])


@pytest.mark.parametrize(
    ("netloc", "target"),
    [
        (b"PyPI.org:443", Target("pypi.org", 443)),
        (b"pypi.org.:443", Target("pypi.org", 443)),
        (b"[2606:4700:0:0:0:0:0:1]:8443", Target("2606:4700::1", 8443)),
        (b"192.0.2.1:80", Target("192.0.2.1", 80)),
    ],
)
def test_a_tunnel_names_a_host_and_a_port(netloc: bytes, target: Target):
    request = read_head(head(b"CONNECT " + netloc + b" HTTP/1.1", b"Host: other.test"))
    assert (request.target, request.is_tunnel) == (target, True)


@each_row(
    "netloc",
    [
        *(b"pypi.org", b"pypi.org:", b"pypi.org:0", b"pypi.org:65536", b"pypi.org:+443"),
        *(b"pypi.org:443:443", b":443", b"a@pypi.org:443", b"pypi.org/x:443", b"[::1:443"),
        *(b"127.1:443", b"0x7f000001:443", b"2130706433:443", b"0177.0.0.1:443", b"a..b:443"),
        *(b"[::ffff]x:443", b"p\xc3\xafpi.org:443", b"-:443", b"https://pypi.org:443", b"a b:443"),
    ],
)
def test_a_tunnel_to_what_could_be_read_in_two_ways_is_refused(netloc: bytes):
    with pytest.raises(BadRequest):
        read_head(head(b"CONNECT " + netloc + b" HTTP/1.1"))


def test_the_first_line_decides_on_the_host_and_the_rest_of_the_hop_stays_here():
    request = read_head(
        head(
            b"POST http://Docs.test:8080/a?b=/c HTTP/1.1",
            b"Host: evil.test",
            b"Proxy-Authorization: Basic eA==",
            b"Connection: keep-alive, X-Hop",
            b"X-Hop: 1",
            b"Upgrade: websocket",
            b"Accept:\t*/* ",
            b"Content-Length: 5",
        )
    )
    assert request.target == Target("docs.test", 8080)
    assert request.head() == head(
        b"POST /a?b=/c HTTP/1.1",
        b"Host: docs.test:8080",
        b"Accept: */*",
        b"Content-Length: 5",
        b"Connection: close",
    )
    assert request.body_bytes == 5


def test_a_proxy_on_the_way_gets_the_whole_url_and_its_own_lines():
    request = read_head(head(b"GET http://docs.test?q HTTP/1.0"))
    assert request.head(through_proxy=(b"Proxy-Authorization: Basic eA==",)) == head(
        b"GET http://docs.test/?q HTTP/1.0",
        b"Host: docs.test",
        b"Proxy-Authorization: Basic eA==",
        b"Connection: close",
    )


@each_row(
    "lines",
    [
        (b"Content-Length: 1", b"Content-Length: 1"),
        (b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        (b"Content-Length: +1",),
        (b"Content-Length: 1, 1",),
        (b"Transfer-Encoding: gzip, chunked",),
        (b"Transfer-Encoding : chunked",),
        (b" folded: 1",),
        (b"X: a\rGET http://b.test/ HTTP/1.1",),
        (b"X: a\nHost: b.test",),
        (b"X: \0",),
        (b"no colon",),
        (b": x",),
    ],
)
def test_what_another_reader_may_understand_differently_is_refused(lines: tuple[bytes, ...]):
    with pytest.raises(BadRequest):
        read_head(head(b"POST http://a.test/ HTTP/1.1", *lines))


@each_row(
    "first",
    [
        *(b"GET / HTTP/1.1", b"GET https://a.test/ HTTP/1.1", b"GET http://a.test/ HTTP/2.0"),
        *(b"get http://a.test/ HTTP/1.1", b"GET  http://a.test/ HTTP/1.1", b"", b"GET"),
        *(b"GET http://a@b.test/ HTTP/1.1", b"GET http://a.test\\@b.test/ HTTP/1.1"),
        *(
            b"GET http://a.test/\x01 HTTP/1.1",
            b"GET http://a.test/# HTTP/1.1 x",
            b"GET http:///x H",
        ),
        *(b"GET http://a.test#@b.test/ HTTP/1.1", b"GET ftp://a.test/ HTTP/1.1"),
    ],
)
def test_a_plain_request_names_a_plain_url(first: bytes):
    with pytest.raises(BadRequest):
        read_head(head(first))


PIECES = st.sampled_from(
    [
        *(b"GET ", b"CONNECT ", b"http://", b"a.test", b":80", b"/", b" HTTP/1.1", b"\r\n", b"\n"),
        *(b"Host: b.test", b"Content-Length: 3", b"Transfer-Encoding: chunked", b"\0", b" ", b"@"),
        *(b"[::1]", b"\\", b"%00", b"\r", b"\t", b"X: y", b"#", b"?"),
    ]
)


@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=14).map(b"".join)))
@example(b"GET http://a.test/")
def test_no_bytes_break_the_reader_or_make_two_requests_of_one(sent: bytes):
    try:
        request = read_head(sent + b"\r\n\r\n")
    except BadRequest:
        return
    assert 0 < request.target.port < 65_536
    assert not set(request.target.host) - set("abcdefghijklmnopqrstuvwxyz0123456789._-:")
    if request.is_tunnel:
        return
    lines = request.head().split(b"\r\n")
    assert lines[-2:] == [b"", b""]
    assert not any(b"\n" in line or b"\r" in line or b"\0" in line for line in lines)
    assert b"" not in lines[:-2]
    names = [line.partition(b":")[0].lower() for line in lines[1:-2]]
    assert names.count(b"host") == 1
    assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
    again = read_head(request.head(through_proxy=()))
    assert (again.target, again.path) == (request.target, request.path)


@pytest.mark.parametrize(("line", "size"), [(b"1a", 26), (b"0;x=y", 0)])
def test_a_chunk_announces_its_length(line: bytes, size: int):
    assert chunk_bytes(line) == size


@each_row("line", [b"", b"0x1", b"-1", b"+1", b" 1", b"1_0", b"1\n"])
def test_a_chunk_of_unclear_length_is_refused(line: bytes):
    with pytest.raises(BadRequest):
        chunk_bytes(line)
