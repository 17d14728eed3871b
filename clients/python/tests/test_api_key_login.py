"""login_with_api_key() and logout()."""

import os
import unittest
import warnings
from unittest import mock

import tally_sdk as sdk

from .registry import FAILED
from .world import World


class ApiKeyLogin(World):
    def test_authenticates_the_session_with_the_key(self) -> None:
        record, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(f"\n  {secret}\t\r\n", registry_url=self.registry.url)
        self.assertEqual(self.registry.received[-1].authorization, f"Bearer {secret}")
        self.assertEqual(sdk.logged_in(), self.registry.url)
        caller = sdk.whoami()
        self.assertEqual((caller.kind, caller.role), ("api_key", "user"))
        assert caller.key is not None and caller.user is not None
        self.assertEqual((caller.key.id, caller.user.email), (record["id"], "ada@example.com"))

    def test_refuses_a_text_without_the_prefix_before_any_request(self) -> None:
        for text in ("", " ", "abc", "QK_abc", "k_qk_", "qk-abc", "Bearer qk_abc", None, 5):
            with self.assertRaises(ValueError) as caught:
                sdk.login_with_api_key(text, registry_url=self.registry.url)  # type: ignore[arg-type]
            self.assertEqual(str(caught.exception), "API key must start with 'qk_' prefix")
            self.assertIsInstance(caught.exception, sdk.TallyError)
        self.assertEqual(self.registry.received, [])

    def test_reports_wrong_expired_and_malformed_keys_with_one_message(self) -> None:
        _, expired = self.registry.add_key("old", status="EXPIRED")
        for secret in ("qk_unknown", expired, "qk_a b", "qk_a\nX-Injected: 1", "qk_ä", "qk_" + "a" * 5_000):
            with self.assertRaises(sdk.AuthenticationError) as caught:
                sdk.login_with_api_key(secret, registry_url=self.registry.url)
            self.assertEqual(str(caught.exception), FAILED)
        self.assertIsNone(sdk.logged_in())

    def test_reports_a_key_that_was_revoked_later(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, self.registry.url)
        revoked = dict(self.registry.keys)
        self.registry.keys.clear()
        # no request was refused yet
        self.assertEqual(sdk.logged_in(), self.registry.url)
        with self.assertRaisesRegex(sdk.AuthenticationError, f"^{FAILED}$"):
            sdk.whoami()
        self.assertIsNone(sdk.logged_in())
        # its owner was disabled and enabled again, for example
        self.registry.keys.update(revoked)
        self.assertEqual(sdk.whoami().kind, "api_key")
        self.assertEqual(sdk.logged_in(), self.registry.url)
        self.registry.keys.clear()
        with self.assertRaisesRegex(sdk.AuthenticationError, f"^{FAILED}$"):
            sdk.search("cat")

    def test_never_reads_variables_of_the_environment(self) -> None:
        _, secret = self.registry.add_key("nightly")
        with mock.patch.dict(os.environ, {"SERVICE_API_KEY": secret, "SERVICE_REGISTRY_URL": self.registry.url}):
            self.assertIsNone(sdk.logged_in())
            with self.assertRaisesRegex(sdk.NotLoggedInError, "call login"):
                sdk.search("cat")
            with self.assertRaises(TypeError):
                sdk.login_with_api_key()  # type: ignore[call-arg]
        self.assertEqual(self.registry.received, [])

    def test_keeps_the_key_in_memory(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.assertEqual([*self.home.rglob("*")], [])
        self.restart()
        self.assertIsNone(sdk.logged_in())

    def test_stores_the_key_if_that_is_requested(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(f" {secret} ", registry_url=self.registry.url, persist=True)
        self.assertEqual(self.stored.stat().st_mode & 0o777, 0o600)
        self.restart()
        self.assertEqual(sdk.logged_in(), self.registry.url)
        self.assertEqual(len([*sdk.search("cat")]), 5)

    def test_precedes_a_stored_login_until_logout(self) -> None:
        self.log_in()
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.assertEqual(sdk.whoami().kind, "api_key")
        self.restart()
        self.assertEqual(sdk.whoami().kind, "session")

    def test_gives_way_to_a_later_login(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url, persist=True)
        self.log_in()
        self.assertEqual(sdk.whoami().kind, "session")
        self.restart()
        self.assertEqual(sdk.whoami().kind, "session")

    def test_gives_way_to_a_later_login_also_where_that_cannot_be_stored(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url, persist=True)
        with mock.patch("tally_sdk._files.write", side_effect=OSError("read-only")), self.assertWarnsRegex(UserWarning, "The login is"):
            self.log_in()
        self.assertEqual(sdk.whoami().kind, "session")
        sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.assertEqual(sdk.whoami().kind, "api_key")

    def test_sends_the_key_to_its_registry_only(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url)
        other = type(self.registry)()
        self.addCleanup(other.close)
        sdk.configure(other.url)
        sdk.search("cat")
        self.assertEqual(other.with_credentials(), [])

    def test_follows_no_redirect(self) -> None:
        other = type(self.registry)()
        self.addCleanup(other.close)
        _, secret = self.registry.add_key("nightly")
        for status in (301, 302, 303, 307, 308):
            self.registry.canned["/v1/session"] = (status, {"Location": f"{other.url}/v1/session"}, b"")
            with self.assertRaisesRegex(sdk.ProtocolError, "redirect"):
                sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.assertEqual(other.received, [])

    def test_sends_no_key_over_http_to_another_machine(self) -> None:
        with self.assertRaisesRegex(sdk.ConfigurationError, "registry_url must use https"):
            sdk.login_with_api_key("qk_abc", registry_url="http://registry.example.com")

    def test_refuses_an_older_platform(self) -> None:
        _, secret = self.registry.add_key("nightly")
        self.registry.version = "1.66.9"
        with self.assertRaisesRegex(sdk.VersionError, "version 1.67 or later is needed"):
            sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.registry.canned["/v1/session"] = (404, {}, b"")
        with self.assertRaisesRegex(sdk.VersionError, "version 1.67 or later is needed"):
            sdk.login_with_api_key(secret, registry_url=self.registry.url)
        self.assertIsNone(sdk.logged_in())

    def test_a_home_that_cannot_be_written_to_is_no_error(self) -> None:
        _, secret = self.registry.add_key("nightly")
        # a file in the place of the folder: nothing can be stored, not even by root
        self.stored.parent.write_text("")
        with self.assertWarnsRegex(UserWarning, "kept in memory only"):
            sdk.login_with_api_key(secret, registry_url=self.registry.url, persist=True)
        self.assertEqual(sdk.logged_in(), self.registry.url)
        self.assertEqual(len([*sdk.search("cat")]), 5)

    def test_warns_once_that_the_key_expires_soon(self) -> None:
        _, secret = self.registry.add_key("ending")
        with self.assertWarnsRegex(UserWarning, "The API key expires at 2027-02-20T19:00:00.123Z"):
            sdk.login_with_api_key(secret, registry_url=self.registry.url)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sdk.search("cat")

    def test_shows_no_secret(self) -> None:
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url, persist=True)
        from tally_sdk._client import client

        self.assertNotIn(secret, repr(client.credential()))
        self.assertNotIn(secret, repr(vars(client)))
        self.registry.close()
        with self.assertRaises(sdk.UnreachableError) as caught:
            sdk.api_keys.revoke(secret=secret)
        self.assertNotIn(secret, str(caught.exception))
        self.assertIsNone(caught.exception.__cause__)


class Logout(World):
    def test_clears_both_kinds_and_ends_the_session(self) -> None:
        self.log_in()
        _, secret = self.registry.add_key("nightly")
        sdk.login_with_api_key(secret, registry_url=self.registry.url, persist=True)
        sdk.logout()
        self.assertEqual(self.registry.logins, [])
        self.assertIsNone(sdk.logged_in())
        self.assertFalse(self.stored.exists())
        self.restart()
        self.assertIsNone(sdk.logged_in())
        # the key itself stays valid
        self.assertIn(secret, self.registry.keys)

    def test_ends_the_login_that_could_not_be_stored_and_the_one_before_it(self) -> None:
        self.log_in()
        with mock.patch("tally_sdk._files.write", side_effect=OSError("read-only")), self.assertWarnsRegex(UserWarning, "The login is"):
            self.log_in()
        self.assertEqual(len(self.registry.logins), 2)
        sdk.logout()
        self.assertEqual(self.registry.logins, [])
        self.assertFalse(self.stored.exists())

    def test_removes_everything_here_even_if_the_registry_cannot_be_reached(self) -> None:
        self.log_in()
        (self.stored.parent / ".credentials.json.1.left").write_text("half")
        self.registry.close()
        with self.assertWarnsRegex(UserWarning, "All credentials were removed here, but the session was not ended"):
            sdk.logout()
        self.assertEqual([each.name for each in self.stored.parent.iterdir()], ["config.json"])

    def test_without_credentials_does_nothing(self) -> None:
        sdk.logout()
        self.assertEqual(self.registry.received, [])


if __name__ == "__main__":
    unittest.main()
