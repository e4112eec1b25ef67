"""A package registry on loopback, reached through a proxy and over TLS as a real one is."""

import gzip
import io
import json
import ssl
import tarfile
import zipfile
from pathlib import Path

from tests.support.certificates import certificate_of
from tests.support.loopback import LoopbackServer, QuietHandler


class RegistryServer(LoopbackServer):
    """The way out of a network gate, at whose end there is one host only.

    Args:
        host: Its name.
        pages: What it answers to ``GET``, by path.
        folder: For its certificate, which is also in ``ca.crt`` there.

    Attributes:
        wanted: The paths that were asked for.
    """

    def __init__(self, host: str, pages: dict[str, bytes], folder: Path) -> None:
        certificate = certificate_of(host, folder)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        end = "-----END CERTIFICATE-----\n"
        public = certificate.read_text().partition(end)[0] + end
        (folder / "ca.crt").write_text(public)
        self.wanted: list[str] = []
        wanted = self.wanted

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_CONNECT(self) -> None:
                """Be the host that the client wants to speak with."""
                self.send_response(200)
                self.end_headers()
                self.connection = tls.wrap_socket(self.connection, server_side=True)
                self.rfile = self.connection.makefile("rb")
                self.wfile = self.connection.makefile("wb", 0)
                self.close_connection = False

            def finish(self) -> None:
                """Close what was made out of the connection, too."""
                super().finish()
                self.connection.close()

            def do_GET(self) -> None:
                """Answer with a page."""
                wanted.append(self.path)
                page = pages.get(self.path)
                self.send_response(404 if page is None else 200)
                kind = "text/html" if self.path.endswith("/") else "application/octet-stream"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(page or b"")))
                self.end_headers()
                self.wfile.write(page or b"")

        super().__init__(Handler)


def wheel_of(name: str) -> bytes:
    """A wheel, version 1.0, with one module of that name."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "answer = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    files[record] = "".join(f"{path},,\n" for path in (*files, record))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return packed.getvalue()


def npm_package_of(name: str) -> bytes:
    """A package, version 1.0.0, with a program of its name that prints 42."""
    package = {"name": name, "version": "1.0.0", "bin": "main.js"}
    files = {
        "package.json": json.dumps(package),
        "main.js": "#!/usr/bin/env node\nconsole.log(42)\n",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue())
