"""
Every operation of the Python SDK at a real registry, as a program sees them that has installed the wheel. The first
difference from what is promised ends it with a traceback. What needs no real registry is in clients/python/tests.
"""

import datetime
import inspect
import json
import os
import time
import warnings

# set, and never read by the package: reading them would send requests to a port where nothing listens
os.environ["SERVICE_API_KEY"] = "qk_" + "0" * 49
os.environ["SERVICE_REGISTRY_URL"] = "http://127.0.0.1:9"

import tally_sdk as sdk  # noqa: E402

REGISTRY = os.environ["WALK_REGISTRY"]
DRIVER = os.environ["BROWSER_DRIVER"]
# secrets of keys that were refused in one way or another, by how
REFUSED = json.loads(os.environ["WALK_REFUSED"])
FAILED = "Authentication failed. Check your credentials or API key."
UTC = datetime.timezone.utc


def fails(kind, message, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        assert type(error) is kind, f"{type(error).__name__} and not {kind.__name__}: {error}"
        assert message in str(error), f"{error!s} and not {message}"
        return error
    raise AssertionError(f"{call.__name__}{arguments}{named} did not fail with {kind.__name__}")


def until_refused():
    """The error of the first request that is refused: a process may use what it knows of a key for some seconds."""
    while True:
        try:
            sdk.whoami()
        except sdk.AuthenticationError as error:
            return error
        time.sleep(0.2)


def person(name):
    os.environ["BROWSER_DRIVER"] = f"{DRIVER}/{name}"


def has_signatures():
    def of(call):
        return [(each.name, each.default) for each in inspect.signature(call).parameters.values()][: len(specified[call])]

    required = inspect.Parameter.empty
    specified = {
        sdk.login: [],
        sdk.logged_in: [],
        sdk.logout: [],
        sdk.login_with_api_key: [("api_key", required), ("registry_url", required)],
        sdk.api_keys.create: [("name", required), ("expires_in_days", 90)],
        sdk.api_keys.list: [("name", None), ("fingerprint", None), ("status", None)],
        sdk.api_keys.get: [("id", required)],
        sdk.api_keys.revoke: [("id", None), ("secret", None)],
        sdk.admin.api_keys.list: [("email", None), ("key_name", None), ("status", None)],
        sdk.admin.api_keys.get: [("id", required)],
        sdk.admin.api_keys.revoke: [("id", required)],
    }
    for call, parameters in specified.items():
        assert of(call) == parameters, (call, of(call))


def logs_in():
    sdk.configure(REGISTRY)
    assert sdk.logged_in() is None
    person("mallory")
    fails(sdk.LoginError, "the login was refused", sdk.login)
    assert sdk.logged_in() is None
    person("alice")
    assert sdk.login() is None
    assert sdk.logged_in() == REGISTRY
    caller = sdk.whoami()
    assert (caller.user.email, caller.role, caller.kind, caller.key) == ("alice@example.com", "user", "session", None), caller


def handles_own_keys():
    key, secret = sdk.api_keys.create("walk-default")
    assert type(key) is sdk.ApiKey and secret.startswith("qk_") and len(secret) == 52
    assert key.name == "walk-default" and key.user_email == "alice@example.com" and key.status == "ACTIVE"
    assert key.fingerprint == f"{secret[:7]}…{secret[-4:]}" and key.last_used_at is None
    assert key.expires_at - key.created_at == datetime.timedelta(days=90) and key.created_at.tzinfo == UTC
    listed = sdk.api_keys.list()
    assert type(listed) is list and key in listed
    assert sdk.api_keys.list(name="walk-default", fingerprint=key.fingerprint, status="ACTIVE") == [key]
    assert sdk.api_keys.list(name="walk", fingerprint=key.fingerprint) == []
    assert [each.status for each in sdk.api_keys.list(status="EXPIRED")] == ["EXPIRED"]
    fails(sdk.RequestError, "status: must be one of ACTIVE, EXPIRED", sdk.api_keys.list, status="REVOKED")
    assert sdk.api_keys.get(key.id) == key
    for unknown in ("k" + "0" * 22, "nonsense", "", "../session"):
        assert sdk.api_keys.get(unknown) is None
    fails(sdk.RequestError, "there is no API key nonsense", sdk.api_keys.revoke, id="nonsense")
    assert sdk.api_keys.revoke(id=key.id) is None
    assert sdk.api_keys.get(key.id) is None and key.id not in [each.id for each in sdk.api_keys.list()]
    other, leaked = sdk.api_keys.create("walk-leaked")
    assert sdk.api_keys.revoke(secret=f" {leaked}\n") is None
    assert sdk.api_keys.get(other.id) is None
    for call in (sdk.admin.api_keys.list, lambda: sdk.admin.api_keys.get(key.id), lambda: sdk.admin.api_keys.revoke(id=key.id)):
        assert fails(sdk.PermissionDeniedError, "this needs the role admin", call).status == 403


def searches():
    assert [*sdk.search("nothing-has-this-name")] == []
    assert [each.bucket for each in sdk.buckets()] == ["demo"]
    assert sdk.explain("demo", "nothing").sentence.startswith("A search does not find it")
    fails(sdk.PermissionDeniedError, "role admin", sdk.jobs)
    fails(sdk.PermissionDeniedError, "role admin", sdk.reindex, "demo")


def uses_a_key():
    key, secret = sdk.api_keys.create("walk-login")
    ending, ending_secret = sdk.api_keys.create("walk-ending", expires_in_days=14)
    for text in (f"  {secret}\r\n", f"\ufeff{secret}"):
        assert sdk.login_with_api_key(text, registry_url=REGISTRY) is None
    caller = sdk.whoami()
    assert (caller.kind, caller.role, caller.key.id, caller.user.email) == ("api_key", "user", key.id, "alice@example.com")
    assert sdk.logged_in() == REGISTRY
    used = sdk.api_keys.get(key.id)
    assert used.last_used_at is None or abs(datetime.datetime.now(UTC) - used.last_used_at) < datetime.timedelta(hours=1)
    assert fails(sdk.PermissionDeniedError, "needs a login", sdk.api_keys.create, "x").code == "session.required"
    fails(sdk.PermissionDeniedError, "an API key can revoke only itself", sdk.api_keys.revoke, id=ending.id)
    typo = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    for text in (typo, "qk_short", *REFUSED.values()):
        assert str(fails(sdk.AuthenticationError, FAILED, sdk.login_with_api_key, text, registry_url=REGISTRY)) == FAILED
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sdk.login_with_api_key(ending_secret, registry_url=REGISTRY)
        [*sdk.search("x")]
    assert [str(each.message)[:23] for each in caught] == ["The API key expires at "], caught
    # a key may revoke itself
    sdk.api_keys.revoke(id=ending.id)
    assert str(until_refused()) == FAILED
    sdk.login_with_api_key(secret, registry_url=REGISTRY, persist=True)
    assert sdk.logout() is None and sdk.logged_in() is None
    fails(sdk.NotLoggedInError, "not logged in", sdk.whoami)


def administers():
    person("root")
    sdk.login()
    assert sdk.whoami().role == "admin"
    mine, secret = sdk.api_keys.create("walk-admin", scopes=["read", "operate", "admin"])
    assert mine.scopes == ("read", "operate", "admin")
    assert sdk.api_keys.create("walk-operate")[0].scopes == ("read", "operate")
    alices = sdk.admin.api_keys.list(email="alice@example.com")
    assert type(alices) is list and {each.user_email for each in alices} == {"alice@example.com"}
    assert [each.name for each in sdk.admin.api_keys.list(email="alice@example.com", key_name="walk-login", status="ACTIVE")] == ["walk-login"]
    assert sdk.admin.api_keys.list(email="alice@example.com", key_name="walk-admin") == []
    assert len(sdk.admin.api_keys.list()) >= len(alices) + 2
    assert [each.name for each in sdk.admin.api_keys.list(status="EXPIRED")] == ["walk-expired"]
    assert [each.owner_disabled for each in sdk.admin.api_keys.list(email="bob@example.com")] == [True]
    long_ago = datetime.datetime.now(UTC) - datetime.timedelta(days=90)
    assert sdk.admin.api_keys.list(status="ACTIVE", unused_since=long_ago) == []
    (found,) = sdk.admin.api_keys.list(key_name="walk-login")
    assert sdk.admin.api_keys.get(found.id) == found and sdk.admin.api_keys.get("nonsense") is None
    assert sdk.admin.api_keys.revoke(id=found.id) is None
    assert sdk.admin.api_keys.get(found.id) is None
    assert len(sdk.jobs()) > 0 and sdk.job("nothing") is None
    job = sdk.reindex("demo", mode="report")
    assert sdk.job(job.id).id == job.id and job.requested_by == "root@example.com"
    sdk.login_with_api_key(secret, registry_url=REGISTRY)
    assert len(sdk.admin.api_keys.list(key_name="walk-admin")) == 1
    sdk.logout()


for step in (
    has_signatures,
    logs_in,
    handles_own_keys,
    searches,
    uses_a_key,
    administers,
):
    step()
    print(step.__name__, flush=True)
