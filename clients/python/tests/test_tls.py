"""Requests by https: certificates are checked before anything is sent, and a proxy sees encrypted bytes only."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
import unittest
from typing import List
from unittest import mock

import tally_sdk as sdk
from tally_sdk import _http

from .registry import Registry
from .world import World


@unittest.skipUnless(shutil.which("openssl"), "NOT RUN: openssl is missing")
class Tls(World):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(_http._openers.clear)
        _http._openers.clear()
        key, self.certificate = str(self.home / "key.pem"), str(self.home / "certificate.pem")
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        subprocess.run([*command, *names, "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.secure = Registry(context)
        self.addCleanup(self.secure.close)

    def test_the_certificate_of_an_unknown_authority_is_refused_before_anything_is_sent(self) -> None:
        _, secret = self.secure.add_key("nightly")
        with self.assertRaisesRegex(sdk.UnreachableError, "certificate verify failed"):
            sdk.login_with_api_key(secret, registry_url=self.secure.url)
        self.assertEqual(self.secure.received, [])

    def test_a_trusted_certificate_is_accepted(self) -> None:
        _, secret = self.secure.add_key("nightly")
        with mock.patch.dict(os.environ, {"SSL_CERT_FILE": self.certificate}):
            sdk.login_with_api_key(secret, registry_url=self.secure.url)
        self.assertEqual(len([*sdk.search("cat")]), 5)

    def test_a_proxy_sees_no_credential(self) -> None:
        _, secret = self.secure.add_key("nightly")
        proxy = _Proxy()
        self.addCleanup(proxy.close)
        environment = {"SSL_CERT_FILE": self.certificate, "https_proxy": proxy.url, "no_proxy": ""}
        with mock.patch.dict(os.environ, environment):
            sdk.login_with_api_key(secret, registry_url=self.secure.url)
        self.assertEqual(self.secure.with_credentials(), ["GET /v1/session"])
        seen = b"".join(proxy.seen)
        self.assertTrue(seen.startswith(b"CONNECT 127.0.0.1:"))
        self.assertNotIn(secret.encode(), seen)
        self.assertNotIn(b"\r\nAuthorization", seen)


class _Proxy:
    """A proxy that keeps what its clients send."""

    def __init__(self) -> None:
        self.seen: List[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(4_096)
            self.seen.append(request)
            host, port = request.split(b" ")[1].split(b":")
            server = socket.create_connection((host.decode(), int(port)))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for source, target, keep in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._copy, args=(source, target, keep), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, keep: bool) -> None:
        try:
            while True:
                part = source.recv(65_536)
                if not part:
                    target.shutdown(socket.SHUT_WR)
                    return
                if keep:
                    self.seen.append(part)
                target.sendall(part)
        except OSError:
            return


if __name__ == "__main__":
    unittest.main()
