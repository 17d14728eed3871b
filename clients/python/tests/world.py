"""A registry and an empty home for each test."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, Optional
from unittest import mock

from tally_sdk import _store
from tally_sdk._client import client
from tally_sdk._store import SessionCredential
from tally_sdk._tokens import request_token, session_of

from .registry import Registry

HERE = Path(__file__).resolve().parent


class World(unittest.TestCase):
    """`registry` runs, and the home of this user is `home`."""

    def setUp(self) -> None:
        self.registry = Registry()
        self.addCleanup(self.registry.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.stored = self.home / "tally" / "credentials.json"
        self.config = self.home / "tally" / "config.json"
        # a proxy of the machine must not see the requests of these tests
        environment = mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(self.home), "http_proxy": "http://127.0.0.1:9"})
        environment.start()
        self.addCleanup(environment.stop)
        self.restart()

    def restart(self) -> None:
        """What a new process has: no memory."""
        client.__init__()  # type: ignore[misc]

    def log_in(self) -> SessionCredential:
        """A stored login, as login() makes one."""
        if not self.config.exists():
            client.configure(self.registry.url)
        challenge = {"code_challenge": "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "code_challenge_method": "S256"}
        _, _, shown = self.registry._authorize({**challenge, "machine": "here", "no_browser": "true"})
        answer = request_token(self.registry.url, {"code": shown["code"], "code_verifier": ""})
        session = session_of(answer, client.config())
        client.keep_login(session, client.config())
        self.registry.received.clear()
        return session

    def stored_session(self) -> SessionCredential:
        session = _store.read_credentials().session
        assert session is not None
        return session

    def python(
        self, code: str, *, env: Optional[Dict[str, str]] = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a program of its own, with the package and the home of this test."""
        package = str(HERE.parent)
        environment = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        # the login of the machine that runs the tests may be remote
        for name in ("SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY", "CODESPACES"):
            if name not in (env or {}):
                environment.pop(name, None)
        return subprocess.run(
            [sys.executable, "-c", code], input=stdin, env=environment, capture_output=True, text=True, timeout=500, check=False
        )
