"""The interactive login, its use by several processes, and the files."""

import json
import os
import re
import sys
import threading
import unittest
import urllib.request
import warnings
from typing import List
from unittest import mock

import tally_sdk as sdk
from tally_sdk._client import client

from .registry import EMAIL, FAILED, Registry
from .world import HERE, World

LOGIN = "import sys, tally_sdk as sdk; sdk.configure(sys.argv[1]) if len(sys.argv) > 1 else None; sdk.login(); print(sdk.logged_in())"


class BrowserLogin(World):
    def setUp(self) -> None:
        super().setUp()
        sdk.configure(self.registry.url)
        self.log = self.home / "browser.log"
        self.env = {"BROWSER": f"{sys.executable} {HERE / 'browser.py'} %s", "BROWSER_LOG": str(self.log)}

    def test_opens_the_browser_and_stores_the_login(self) -> None:
        ended = self.python(LOGIN, env=self.env)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{self.registry.url}\n"), ended.stderr)
        self.assertIn(f"You are logged in as {EMAIL}", self.log.read_text())
        self.assertIn(f"You are logged in as {EMAIL}.", ended.stderr)
        self.assertIn("GET /login/authorize", self.registry.paths())
        self.assertEqual(self.registry.with_credentials(), ["GET /v1/session"])
        # other users of this machine see what a browser is opened with
        self.assertNotRegex(ended.stderr, "state|challenge")
        session = self.stored_session()
        self.assertEqual(self.stored.stat().st_mode & 0o777, 0o600)
        # neither a token nor the code is shown
        self.assertNotIn(session.token, ended.stderr + self.log.read_text())
        self.assertEqual(sdk.whoami().kind, "session")

    def test_marks_an_address_that_is_not_verified(self) -> None:
        self.registry.email_verified = False
        ended = self.python(LOGIN, env=self.env)
        self.assertIn(f"You are logged in as {EMAIL} (not verified).", ended.stderr)
        self.assertIn(f"You are logged in as {EMAIL} (not verified)", self.log.read_text())

    def test_shows_an_error_in_the_terminal_and_in_the_page(self) -> None:
        self.registry.iss = "https://evil.example.com"
        ended = self.python(LOGIN, env=self.env)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("LoginError: a server other than", ended.stderr)
        self.assertIn("answered the login, so nothing was sent", self.log.read_text())
        self.assertNotIn("POST /login/token", self.registry.paths())
        self.assertFalse(self.stored.exists())

    def test_is_refused_at_once_where_no_one_logs_in(self) -> None:
        self.registry.canned["/v1/session"] = (200, {}, b'{"kind": "local", "role": "admin"}')
        ended = self.python(LOGIN, env=self.env)
        self.assertIn(f"LoginError: {self.registry.url} has no login: programs on its machine need none", ended.stderr)
        self.assertFalse(self.log.exists())

    def test_is_not_needed_where_no_one_logs_in(self) -> None:
        sdk.configure(self.registry.url)
        with self.assertRaisesRegex(sdk.NotLoggedInError, "call login"):
            sdk.search("cat")
        self.registry.canned["/v1/objects"] = (200, {}, b'{"items": []}')
        self.assertEqual([*sdk.search("cat")], [])
        self.assertIsNone(sdk.logged_in())

    def test_shows_what_the_registry_refuses(self) -> None:
        self.registry.canned["/login/token"] = (400, {}, json.dumps({"code": "login.invalid-grant", "detail": "no"}).encode())
        ended = self.python(LOGIN, env=self.env)
        self.assertIn("LoginError: the registry refused the code", ended.stderr)
        self.assertIn("The login failed", self.log.read_text())

    def test_leaves_no_session_behind_that_it_does_not_use(self) -> None:
        self.registry.canned["/v1/session"] = (500, {}, b"{}")
        ended = self.python(LOGIN, env=self.env)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("The login failed", self.log.read_text())
        self.assertEqual((self.registry.paths()[-1], self.registry.logins), ("POST /login/logout", []))
        self.registry.canned.clear()
        self.stored.parent.chmod(0o755)
        self.assertIn("CredentialsError", self.python(LOGIN, env=self.env).stderr)
        self.assertEqual((self.registry.paths()[-1], self.registry.logins), ("POST /login/logout", []))

    def test_falls_back_to_a_code_that_is_pasted(self) -> None:
        code = (
            "import builtins, json, re, urllib.request, tally_sdk as sdk, tally_sdk._login as module\n"
            "shown = []\n"
            "module._say = shown.append\n"
            # what a person does: open the address that was shown, and paste the code
            "def paste(prompt):\n"
            "    address = re.search(r'https?://\\S+', shown[-1]).group(0)\n"
            "    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
            "    return '  ' + json.load(opener.open(address))['code'] + '\\n'\n"
            "builtins.input = paste\n"
            "sdk.login()\n"
            "print(sdk.logged_in(), sdk.whoami().kind)\n"
        )
        for env in ({}, {**self.env, "SSH_CONNECTION": "1"}, {**self.env, "JUPYTERHUB_USER": "ada"}):
            ended = self.python(code, env=env)
            self.assertEqual((ended.returncode, ended.stdout), (0, f"{self.registry.url} session\n"), ended.stderr)
        self.assertFalse(self.log.exists())

    def test_falls_back_when_the_browser_cannot_be_opened(self) -> None:
        ended = self.python(LOGIN, env={"BROWSER": "/nowhere/browser %s"})
        self.assertIn("Open this address in a browser, and paste the code that it shows", ended.stderr)

    def test_without_a_browser_and_a_terminal_names_api_keys(self) -> None:
        ended = self.python(LOGIN)
        self.assertIn("LoginError: nobody can paste a code here: use login_with_api_key()", ended.stderr)

    def test_needs_a_configured_catalog_of_this_version(self) -> None:
        self.registry.version = "1.66.9"
        with self.assertRaises(sdk.VersionError):
            sdk.login()
        self.config.unlink()
        self.restart()
        with self.assertRaises(sdk.ConfigurationError) as caught:
            sdk.login()
        self.assertEqual(str(caught.exception), 'no catalog is configured: first call configure("https://…") with its address')


class Listening(World):
    def test_ignores_what_does_not_belong_to_the_login(self) -> None:
        from tally_sdk._listener import Listener

        listener = Listener("right")
        self.addCleanup(listener.close)
        base = listener.address[: -len("/callback")]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def status(path: str, host: str = "") -> int:
            request = urllib.request.Request(base + path, headers={"Host": host} if host else {})
            try:
                return int(opener.open(request, timeout=60).status)
            except urllib.error.HTTPError as error:
                return error.code

        self.assertEqual(status("/callback?state=wrong&code=a"), 404)
        self.assertEqual(status("/callback?code=a"), 404)
        self.assertEqual(status("/callback?state=right&state=right&code=a"), 404)
        self.assertEqual(status("/other?state=right&code=a"), 404)
        self.assertEqual(status("/callback?state=right&code=a", "evil.example.com"), 404)
        seen: List[object] = []

        def finish(parameters: object) -> str:
            seen.append(parameters)
            return "ada"

        waiting = threading.Thread(target=lambda: listener.wait(500, finish, lambda: False))
        waiting.start()
        self.assertEqual(status("/callback?state=right&code=a&iss=b"), 200)
        waiting.join()
        self.assertEqual(seen, [{"state": "right", "code": "a", "iss": "b"}])


    def test_ends_a_login_whose_start_address_is_opened_twice(self) -> None:
        from tally_sdk._listener import Listener

        listener = Listener("right")
        self.addCleanup(listener.close)
        listener.lead_to(f"{self.registry.url}/config.json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        # another user of this machine is the first
        self.assertEqual(opener.open(listener.start_address, timeout=60).url, f"{self.registry.url}/config.json")
        with self.assertRaises(urllib.error.HTTPError) as second:
            opener.open(listener.start_address, timeout=60)
        self.assertEqual(second.exception.code, 409)
        with self.assertRaisesRegex(sdk.LoginError, "was opened twice"):
            listener.wait(500, lambda parameters: "mallory", lambda: False)
        with self.assertRaises(urllib.error.HTTPError) as late:
            opener.open(f"{listener.address}?state=right&code=a", timeout=60)
        self.assertEqual(late.exception.code, 404)


class Login(World):
    def test_is_shared_by_ten_processes_which_send_the_one_token(self) -> None:
        session = self.log_in()
        code = "import tally_sdk as sdk; print(sdk.whoami().kind)"
        ends: List[str] = []
        threads = [threading.Thread(target=lambda: ends.append(self.python(code).stdout)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(ends, ["session\n"] * 10)
        self.assertEqual(self.registry.paths(), ["GET /v1/session"] * 10)
        self.assertEqual({each.authorization for each in self.registry.received}, {f"Bearer {session.token}"})
        self.assertEqual(sorted(each.name for each in self.stored.parent.iterdir()), ["config.json", "credentials.json"])

    def test_that_is_refused_ends_with_the_one_message_and_stays_stored(self) -> None:
        self.log_in()
        before = self.stored.read_bytes()
        self.registry.end_logins()
        with self.assertRaises(sdk.AuthenticationError) as caught:
            sdk.whoami()
        self.assertEqual(str(caught.exception), FAILED)
        self.assertEqual(self.stored.read_bytes(), before)
        self.assertIsNone(sdk.logged_in())

    def test_of_another_process_is_used_by_the_next_request(self) -> None:
        self.log_in()
        self.registry.end_logins()
        ended = self.python(LOGIN, env={"BROWSER": f"{sys.executable} {HERE / 'browser.py'} %s", "BROWSER_LOG": os.devnull})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        session = self.stored_session()
        self.assertEqual(sdk.whoami().kind, "session")
        self.assertEqual(self.registry.received[-1].authorization, f"Bearer {session.token}")

    def test_whose_time_is_over_is_none_that_is_logged_in_and_the_registry_judges_it(self) -> None:
        self.registry.session_s = 0.0
        self.log_in()
        self.assertIsNone(sdk.logged_in())
        self.assertEqual(sdk.whoami().kind, "session")
        self.registry.end_logins()
        with self.assertRaises(sdk.AuthenticationError) as caught:
            sdk.whoami()
        self.assertEqual(str(caught.exception), FAILED)

    def test_that_has_ended_already_is_logged_out_without_a_complaint(self) -> None:
        for mode in (0o600, 0o644):
            self.log_in()
            self.registry.end_logins()
            self.stored.chmod(mode)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                sdk.logout()
            self.assertFalse(self.stored.exists())

    def test_a_changed_registry_needs_a_new_login(self) -> None:
        self.log_in()
        other = Registry()
        self.addCleanup(other.close)
        self.registry.registry_url = other.url
        sdk.configure(self.registry.url)
        self.assertIsNone(sdk.logged_in())
        with self.assertRaisesRegex(sdk.NotLoggedInError, "the catalog has another registry now"):
            sdk.whoami()
        self.assertEqual(other.with_credentials() + self.registry.with_credentials(), [])

    def test_keeps_a_login_in_memory_where_nothing_can_be_stored(self) -> None:
        self.stored.parent.write_text("")
        with self.assertWarnsRegex(UserWarning, "kept in memory only"):
            sdk.configure(self.registry.url)
        with self.assertWarnsRegex(UserWarning, "kept in memory only"):
            self.log_in()
        self.assertEqual(sdk.logged_in(), self.registry.url)
        self.assertEqual(sdk.whoami().kind, "session")
        sdk.logout()
        self.assertEqual(self.registry.logins, [])


@unittest.skipIf(os.name == "nt", "Windows has no modes")
class Files(World):
    def refused(self, pattern: str) -> None:
        self.assertIsNone(sdk.logged_in())
        with self.assertRaisesRegex(sdk.CredentialsError, pattern):
            sdk.whoami()
        self.assertEqual(self.registry.with_credentials(), [])

    def setUp(self) -> None:
        super().setUp()
        self.log_in()

    def test_are_removed_although_a_neighbour_renames_its_own_at_this_moment(self) -> None:
        renamed = self.stored.parent / ".credentials.json.1.abc"
        with mock.patch("pathlib.Path.glob", return_value=[renamed]):
            sdk.logout()
        self.assertFalse(self.stored.exists())

    def test_open_to_others_are_refused(self) -> None:
        for mode in (0o640, 0o604, 0o620, 0o660):
            self.stored.chmod(mode)
            self.refused(f"credentials.json is open to other users.*chmod 600 {re.escape(str(self.stored))}")

    def test_open_to_others_are_ended_and_removed_by_a_logout(self) -> None:
        self.stored.chmod(0o644)
        sdk.logout()
        self.assertEqual(self.registry.logins, [])
        self.assertFalse(self.stored.exists())

    def test_that_others_can_replace_are_removed_by_a_logout_and_sent_nowhere(self) -> None:
        self.stored.chmod(0o666)
        with self.assertWarnsRegex(UserWarning, "the session was not ended"):
            sdk.logout()
        self.assertEqual(self.registry.with_credentials(), [])
        self.assertFalse(self.stored.exists())

    def test_in_a_folder_open_to_others_are_refused(self) -> None:
        self.stored.parent.chmod(0o755)
        self.refused("tally is open to other users.*chmod 700")

    @unittest.skipUnless(hasattr(os, "geteuid") and os.geteuid() == 0, "only root can give a file away")
    def test_of_another_user_are_refused(self) -> None:
        os.chown(self.stored, 12_345, -1)
        self.refused("credentials.json belongs to another user")

    def test_that_are_no_files_are_refused(self) -> None:
        self.stored.unlink()
        os.mkfifo(self.stored, 0o600)
        self.refused("credentials.json is not a file")

    def test_that_are_damaged_are_refused(self) -> None:
        for content in ("", "{", "[]", '{"format": 1, "session": {}}', '{"format": 1, "session": 5}', '{"format": 1, "api_key": {"secret": 5}}'):
            self.stored.write_text(content)
            self.refused("credentials.json is damaged")
        self.stored.write_text('{"format": 2}')
        self.refused("another version of Tally")

    def test_that_name_an_address_without_https_are_refused(self) -> None:
        values = json.loads(self.stored.read_text())
        values["session"]["registry_url"] = "http://example.com"
        self.stored.write_text(json.dumps(values))
        self.refused("credentials.json is damaged")


if __name__ == "__main__":
    unittest.main()
