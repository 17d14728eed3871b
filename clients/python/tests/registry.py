"""A registry that speaks the part of the API that this package uses, on 127.0.0.1, for tests."""

import base64
import hashlib
import json
import secrets
import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

FAILED = "Authentication failed. Check your credentials or API key."
EMAIL = "ada@example.com"
OTHER_EMAIL = "bob@example.com"
CREATED = "2026-11-22T19:00:00.123Z"
EXPIRES = "2027-02-20T19:00:00.123Z"
NEVER_CREATED = "2020-01-01T00:00:00.000Z"

Json = Dict[str, Any]


@dataclass
class Received:
    """A request as it arrived."""

    method: str
    path: str
    authorization: Optional[str]
    body: Json


class Problem(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str, detail: str, **extra: str) -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code, **extra}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # a client that refuses a certificate, or that a test has killed
        pass


class Registry:
    """Runs from its creation until close()."""

    def __init__(self, tls: Optional[ssl.SSLContext] = None) -> None:
        self.version = "1.67.0"
        self.admin = False
        self.email_verified = True
        self.session_s = 604_800.0
        self.page_size = 2
        self.buckets = ["photos"]
        self.received: List[Received] = []
        # the parameters of each request, in their order
        self.queries: List[List[Tuple[str, str]]] = []
        # the tokens of the sessions
        self.logins: List[str] = []
        self.challenges: Dict[str, Tuple[str, Optional[str]]] = {}
        self.keys: Dict[str, Json] = {}
        self.secrets: Dict[str, str] = {}
        self.registry_url: Optional[str] = None
        # answers that replace those of a path: status, headers and body
        self.canned: Dict[str, Tuple[int, Dict[str, str], bytes]] = {}
        self.iss: Optional[str] = None
        self._lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), _handler_for(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def paths(self) -> List[str]:
        return [f"{each.method} {each.path}" for each in self.received]

    def with_credentials(self) -> List[str]:
        return [f"{each.method} {each.path}" for each in self.received if each.authorization is not None]

    # ── state that tests set ──

    def add_key(self, name: str, *, email: str = EMAIL, status: str = "ACTIVE", used: Optional[str] = None) -> Tuple[Json, str]:
        secret = "qk_" + secrets.token_hex(24)
        record = {
            "id": "k" + secrets.token_hex(11),
            "name": name,
            "user_email": email,
            "fingerprint": f"{secret[:7]}…{secret[-4:]}",
            "status": status,
            "created_at": CREATED,
            "expires_at": EXPIRES,
            "last_used_at": used,
            "scopes": ["read"],
        }
        self.keys[secret] = record
        return record, secret

    def end_logins(self) -> None:
        self.logins.clear()

    # ── answers ──

    def answer(self, received: Received, query: Dict[str, str]) -> Tuple[int, Dict[str, str], Any]:
        with self._lock:
            self.received.append(received)
            if received.path in self.canned:
                return self.canned[received.path]
            return self._answer(received, query)

    def _answer(self, received: Received, query: Dict[str, str]) -> Tuple[int, Dict[str, str], Any]:
        place = f"{received.method} {received.path}"
        if place == "GET /config.json":
            document = {"registryUrl": self.registry_url or self.url, "catalogUrl": self.url, "version": self.version}
            return 200, {}, document
        if place == "GET /login/authorize":
            return self._authorize(query)
        if place == "POST /login/token":
            return 200, {}, self._token(received.body)
        if place == "POST /v1/api-keys/revoke":
            assert received.authorization is None, "revoking by secret is anonymous"
            self.keys.pop(received.body["secret"], None)
            return 204, {}, None
        return self._known(received, query, place)

    def _authorize(self, query: Dict[str, str]) -> Tuple[int, Dict[str, str], Any]:
        assert query["code_challenge_method"] == "S256" and query["machine"]
        code = secrets.token_urlsafe(16)
        self.challenges[code] = (query["code_challenge"], query.get("redirect_uri"))
        if query.get("no_browser") == "true":
            return 200, {}, {"code": code}
        back = urlencode({"code": code, "state": query["state"], "iss": self.iss or self.url})
        return 302, {"Location": f"{query['redirect_uri']}?{back}"}, None

    def _token(self, body: Json) -> Json:
        assert body["grant_type"] == "authorization_code"
        challenge, redirect = self.challenges.pop(body["code"], (None, None))
        digest = base64.urlsafe_b64encode(hashlib.sha256(body["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if challenge != digest or body.get("redirect_uri") != redirect:
            raise Problem(400, "login.invalid-grant", "the code is not valid", error="invalid_grant")
        token = "qs_" + secrets.token_hex(16)
        self.logins.append(token)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.session_s}

    def _known(self, received: Received, query: Dict[str, str], place: str) -> Tuple[int, Dict[str, str], Any]:
        token = (received.authorization or "").replace("Bearer ", "", 1)
        key = self.keys.get(token)
        is_session = token in self.logins
        if not is_session and (key is None or key["status"] != "ACTIVE"):
            raise Problem(401, "authentication.failed", FAILED)
        headers = {"Tally-Key-Expires": key["expires_at"]} if key is not None and key["name"] == "ending" else {}
        if place == "POST /login/logout":
            assert is_session
            self.logins.remove(token)
            return 204, headers, None
        if received.path.startswith("/v1/admin/") and not self.admin:
            raise Problem(403, "authorization.denied", "this needs the role admin")
        if place == "POST /v1/api-keys":
            return self._create(received.body, key)
        if received.path.startswith(("/v1/api-keys", "/v1/admin/api-keys")):
            return self._keys(received, query)
        return 200, headers, self._index(received, query, place, key)

    def _create(self, body: Json, key: Optional[Json]) -> Tuple[int, Dict[str, str], Any]:
        if key is not None:
            raise Problem(403, "session.required", "a key cannot create a key: log in")
        days = body["expires_in_days"]
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 365:
            raise Problem(400, "request.invalid", "expires_in_days: must be a whole number from 1 to 365")
        record, secret = self.add_key(body["name"])
        record["scopes"] = body.get("scopes", ["read"])
        return 201, {}, {"key": record, "secret": secret}

    def _keys(self, received: Received, query: Dict[str, str]) -> Tuple[int, Dict[str, str], Any]:
        is_admin = received.path.startswith("/v1/admin/")
        visible = {secret: key for secret, key in self.keys.items() if is_admin or key["user_email"] == EMAIL}
        base = "/v1/admin/api-keys" if is_admin else "/v1/api-keys"
        if received.path == base:
            return 200, {}, self._page(_matching([*visible.values()], query), query)
        wanted = unquote(received.path[len(base) + 1 :])
        for secret, key in visible.items():
            if key["id"] == wanted:
                if received.method == "DELETE":
                    del self.keys[secret]
                    return 204, {}, None
                return 200, {}, key
        raise Problem(404, "api-key.not-found", f"there is no key {wanted}")

    def _page(self, items: List[Json], query: Dict[str, str]) -> Json:
        start = int(query.get("cursor", "0"))
        end = start + min(self.page_size, int(query.get("limit", "100")))
        page: Json = {"items": items[start:end]}
        return {**page, "next": str(end)} if end < len(items) else page

    def _feed(self, query: Dict[str, str]) -> Json:
        if query.get("after") == "lost":
            return {"items": [], "cursor": "0", "more": True, "reset": True}
        start = int(query.get("after", "0"))
        end = min(start + self.page_size, 5)
        return {"items": [_object(f"cat-{number}.jpg") for number in range(start, end)], "cursor": str(end), "more": end < 5}

    def _index(self, received: Received, query: Dict[str, str], place: str, key: Optional[Json]) -> Any:
        role = "admin" if self.admin else "user"
        user = {"id": "u1", "email": EMAIL, "email_verified": self.email_verified}
        session = {"user": user, "role": role, "scopes": ["read"], "reads": ["photos/2026/"], "catalog_url": self.url, "version": self.version}
        job = {**JOB, "mode": received.body.get("mode", "apply")}
        answers = {
            "GET /v1/session": {**session, "kind": "session" if key is None else "api_key", **({} if key is None else {"key": key})},
            "GET /v1/admin/grants": self._page([{**GRANT, "where": f"photos/{year}/"} for year in range(2020, 2027)], query),
            "POST /v1/admin/grants": {**GRANT, **received.body},
            "POST /v1/admin/grants/remove": {**GRANT, **received.body},
            "GET /v1/admin/audit": self._page([{**AUDITED, "id": f"audit-{number}"} for number in range(7)], query),
            "GET /v1/admin/readers": self._page([{"user_id": "u1", "email": EMAIL, "role": role, "by": [GRANT]}], query),
            "GET /v1/admin/users/u1/access": ACCESS,
            "GET /v1/objects": self._page([_object(f"2026/cat-{number}.jpg") for number in range(5)], query),
            "GET /v1/usage": USAGE,
            "GET /v1/changes": self._feed(query),
            "GET /v1/buckets": {**self._page([{**BUCKET, "bucket": name} for name in self.buckets], query), "unconnected": []},
            "GET /v1/buckets/photos/explain": {**EXPLANATION, "key": query.get("key")},
            "POST /v1/buckets/photos/reindex": job,
            "GET /v1/jobs": self._page([JOB, JOB, JOB], query),
            f"GET /v1/jobs/{JOB['id']}": {**JOB, "counts": {"listed": 3, "bytes_listed": 12.5}, "later": 1},
        }
        if place not in answers:
            code = "job.not-found" if place.startswith("GET /v1/jobs/") else "bucket.not-connected"
            raise Problem(404, code, "there is no such thing", advice="look again")
        return answers[place]


def _matching(keys: List[Json], query: Dict[str, str]) -> List[Json]:
    names = {"name": "name", "key_name": "name", "email": "user_email", "status": "status", "fingerprint": "fingerprint"}
    found = [key for key in keys if all(key[field] == query[name] for name, field in names.items() if name in query)]
    since = query.get("unused_since")
    return found if since is None else [key for key in found if (key["last_used_at"] or key["created_at"]) < since]


JOB: Json = {
    "id": "job-0mk3x1a2b-0123456789ab",
    "bucket": "photos",
    "prefix": "",
    "mode": "apply",
    "requested_by": EMAIL,
    "state": "running",
    "created_at": CREATED,
}
GRANT: Json = {"who": "group:analysts", "where": "photos", "granted_by": EMAIL, "created_at": CREATED}
AUDITED: Json = {
    "id": "audit-1",
    "eventtime": CREATED,
    "eventname": "ApiKeyUse",
    "useridentity": {"email": EMAIL, "sessionContext": {"auth": {"type": "api_key", "keyName": "nightly"}}},
    "sourceipaddress": "192.0.2.1",
    "date": "2026/11/21",
    "outcome": "done",
    "request_id": "r1",
}
ACCESS: Json = {
    "user_id": "u1",
    "email": EMAIL,
    "role": "user",
    "reads": ["photos"],
    "because": "grants",
    "grants": [GRANT],
    "groups": ["analysts"],
    "groups_left_out": False,
}
BUCKET: Json = {
    "bucket": "photos",
    "region": "eu-central-1",
    "source": "notification",
    "versioning": {"status": "never"},
    "enrich": "none",
    "status": {"state": "never_compared", "severity": "warning", "sentence": "It has never been fully compared", "since": CREATED},
    "created_at": CREATED,
    "created_by": EMAIL,
    "checked_at": CREATED,
}
SUMS: Json = {"objects": 2, "bytes": 2**40}
USAGE: Json = {
    **SUMS,
    "by": [
        {"by": "extension", "groups": [{"name": "jpg", **SUMS, "filter": "ext:jpg"}], "others": SUMS},
        {"by": "class", "groups": [SUMS]},
    ],
}
EXPLANATION: Json = {
    "bucket": "photos",
    "storage": {"state": {"present": False}, "observed_at": CREATED},
    "agrees": "unknown",
    "sentence": "It is not there.",
}


def _object(key: str) -> Json:
    known = {"bucket": "photos", "key": key, "deleted": False, "settled": True, "source": "native", "clock": 1, "indexed_at": CREATED}
    return {**known, "size": 12, "last_modified": CREATED, "expires_at": "+010000-01-01T00:00:00.000Z", "tags": {"a": "b"}}


def _handler_for(registry: Registry) -> Any:
    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            url = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content) if content else {}
            registry.queries.append(parse_qsl(url.query, keep_blank_values=True))
            query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            try:
                received = Received(self.command, url.path, self.headers.get("Authorization"), body)
                status, headers, answer = registry.answer(received, query)
            except Problem as problem:
                status, headers, answer = problem.status, {}, problem.body
            payload = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _handle

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
