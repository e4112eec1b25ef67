"""The server of the tests itself: what it must leave behind is nothing."""

import gc
import json
import socket
import warnings

from tests.support.openai_server import OpenAiServer, Reply
from tests.support.rows import each_row

BODY = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


@each_row("sent", [b"", REQUEST[:9], REQUEST[:-1], REQUEST], ids=len)
@each_row("stays", [False, True], ids=["leaves", "stays"])
def test_an_early_hang_up_leaves_no_connection_open(sent: bytes, stays: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with OpenAiServer() as server:
            server.play(Reply(text="word " * 50_000))
            client = socket.create_connection(("127.0.0.1", server.port))
            client.sendall(sent)
            if sent == REQUEST:
                client.recv(100)
            if not stays:
                client.close()
        client.close()
        gc.collect(1)
    assert [str(warning.message) for warning in caught] == []
