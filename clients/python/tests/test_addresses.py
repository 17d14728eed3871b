"""configure(): the configuration document, versions, and which addresses are refused."""

import json
import socket
import threading
import unittest

import tally_sdk as sdk
from tally_sdk._http import send
from tally_sdk._urls import base_of, origin_of
from tally_sdk._version import check_platform
from tally_sdk.errors import ConfigurationError

from .world import World


class Configure(World):
    def test_stores_the_catalog_and_its_registry(self) -> None:
        sdk.configure(f" {self.registry.url}/ ")
        stored = json.loads(self.config.read_text())
        self.assertEqual(stored, {"format": 1, "catalog_url": self.registry.url, "registry_url": self.registry.url})
        self.assertEqual(self.config.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.config.parent.stat().st_mode & 0o777, 0o700)
        self.assertIsNone(sdk.logged_in())

    def test_works_with_versions_from_1_67_on_compared_as_numbers(self) -> None:
        for version in ("1.67", "1.67.0", "1.100.0", "2.0.0", "1.67.0-rc.1"):
            self.registry.version = version
            sdk.configure(self.registry.url)

    def test_refuses_an_older_version_and_says_which_is_needed(self) -> None:
        for version in ("1.66.9", "0.100.0", "1.6.70"):
            self.registry.version = version
            with self.assertRaisesRegex(sdk.VersionError, rf"has version {version}: version 1\.67 or later is needed"):
                sdk.configure(self.registry.url)
        for version in ("latest", "1", ""):
            with self.assertRaisesRegex(sdk.VersionError, "not a version number"):
                check_platform(version, "x")
        with self.assertRaisesRegex(sdk.VersionError, "does not report its version"):
            check_platform(None, "x")
        self.assertFalse(self.config.exists())

    def test_ends_a_request_whose_answer_comes_byte_by_byte(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        ended = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.01):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        with self.assertRaisesRegex(sdk.UnreachableError, "got no answer"):
            send("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/config.json", timeout_s=0.3)
        ended.set()
        thread.join()

    def test_refuses_a_redirect(self) -> None:
        self.registry.canned["/config.json"] = (302, {"Location": f"{self.registry.url}/elsewhere"}, b"")
        with self.assertRaisesRegex(sdk.ProtocolError, "redirect"):
            sdk.configure(self.registry.url)
        self.assertEqual(self.registry.paths(), ["GET /config.json"])

    def test_refuses_what_is_not_a_catalog(self) -> None:
        for body in (b"<html>", b"[]", b"{}", b'{"registryUrl": 1, "version": "1.67.0"}', b"[" * 100_000):
            self.registry.canned["/config.json"] = (200, {}, body)
            with self.assertRaisesRegex(sdk.ProtocolError, "has no registryUrl"):
                sdk.configure(self.registry.url)

    def test_refuses_a_registry_without_https(self) -> None:
        self.registry.registry_url = "http://registry.example.com"
        with self.assertRaisesRegex(sdk.ConfigurationError, "registryUrl .* must use https"):
            sdk.configure(self.registry.url)

    def test_reports_a_server_that_does_not_answer(self) -> None:
        self.registry.close()
        with self.assertRaisesRegex(sdk.UnreachableError, r"GET http://127\.0\.0\.1:\d+/config\.json got no answer"):
            sdk.configure(self.registry.url)


class Addresses(unittest.TestCase):
    def test_are_brought_into_one_form(self) -> None:
        self.assertEqual(base_of("HTTPS://Catalog.Example.com:443/a/", "it"), "https://catalog.example.com/a")
        self.assertEqual(origin_of("http://LOCALHOST:8080/", "it"), "http://localhost:8080")
        self.assertEqual(origin_of("http://[::1]:8080", "it"), "http://[::1]:8080")
        self.assertEqual(origin_of("http://127.0.0.9", "it"), "http://127.0.0.9")

    def test_letters_outside_ascii_that_look_like_ascii_to_unicode(self) -> None:
        # the long s and the Kelvin sign
        for address in ("http\u017f://example.com", "http\u017f://example.com:443", "https://\u212aexample.com"):
            with self.assertRaises(ConfigurationError):
                origin_of(address, "it")

    def test_of_other_machines_need_https(self) -> None:
        for url in ("http://example.com", "http://10.0.0.1", "http://127.0.0.1.example.com", "http://localhost.example.com", "http://[::2]"):
            with self.assertRaisesRegex(sdk.ConfigurationError, "must use https"):
                base_of(url, "it")

    def test_that_are_none_are_refused_without_showing_a_password(self) -> None:
        wrong = ("", "example.com", "ftp://example.com", "https://", "https://a b", "https://a\\b", "https://a?x", "https://a#x", "https://a:0", "https://a:99999")
        for url in (*wrong, None, 5, "https://a/" + "b" * 3_000, "file:///etc/passwd", "https://exämple.com"):
            with self.assertRaises(sdk.ConfigurationError):
                base_of(url, "it")
        with self.assertRaises(sdk.ConfigurationError) as caught:
            base_of("https://user:hunter2@example.com", "it")
        self.assertNotIn("hunter2", str(caught.exception))
        with self.assertRaisesRegex(sdk.ConfigurationError, "without a path"):
            origin_of("https://example.com/a", "it")


if __name__ == "__main__":
    unittest.main()
