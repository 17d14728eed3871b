"""api_keys and admin.api_keys."""

import datetime
import unittest

import tally_sdk as sdk

from .registry import OTHER_EMAIL
from .world import World

UTC = datetime.timezone.utc


class ApiKeys(World):
    def setUp(self) -> None:
        super().setUp()
        self.log_in()

    def test_create_returns_the_record_and_the_secret(self) -> None:
        key, secret = sdk.api_keys.create("nightly-import-prod")
        self.assertEqual(self.registry.received[-1].body, {"name": "nightly-import-prod", "expires_in_days": 90})
        self.assertTrue(secret.startswith("qk_"))
        self.assertEqual((key.name, key.user_email, key.status), ("nightly-import-prod", "ada@example.com", "ACTIVE"))
        self.assertEqual(key.fingerprint, f"{secret[:7]}…{secret[-4:]}")
        self.assertEqual(key.created_at, datetime.datetime(2026, 11, 22, 19, 0, 0, 123_000, UTC))
        self.assertEqual(key.created_at.utcoffset(), datetime.timedelta(0))
        self.assertIsNone(key.last_used_at)
        self.assertNotIn(secret, repr(key))
        sdk.login_with_api_key(secret, registry_url=self.registry.url)

    def test_create_leaves_the_check_of_the_days_to_the_registry(self) -> None:
        for days in (0, 366, 1.5, 90.0, "90", True):
            with self.assertRaises(sdk.RequestError) as caught:
                sdk.api_keys.create("x", expires_in_days=days)  # type: ignore[arg-type]
            self.assertEqual((caught.exception.status, caught.exception.code), (400, "request.invalid"))
        self.assertEqual(sdk.api_keys.create("x", 365, scopes=["read", "admin"])[0].scopes, ("read", "admin"))

    def test_a_key_cannot_create_a_key(self) -> None:
        _, secret = sdk.api_keys.create("x")
        sdk.login_with_api_key(secret, registry_url=self.registry.url)
        with self.assertRaises(sdk.PermissionDeniedError) as caught:
            sdk.api_keys.create("y")
        self.assertEqual(caught.exception.code, "session.required")

    def test_list_reads_all_pages(self) -> None:
        for number in range(5):
            sdk.api_keys.create(f"key-{number}")
        self.assertEqual([key.name for key in sdk.api_keys.list()], [f"key-{number}" for number in range(5)])

    def test_list_combines_its_filters(self) -> None:
        first, _ = self.registry.add_key("a")
        self.registry.add_key("a", status="EXPIRED")
        self.registry.add_key("b")
        self.registry.add_key("a", email=OTHER_EMAIL)
        self.assertEqual(len(sdk.api_keys.list(name="a")), 2)
        self.assertEqual([key.id for key in sdk.api_keys.list(name="a", status="ACTIVE")], [first["id"]])
        self.assertEqual([key.id for key in sdk.api_keys.list(fingerprint=first["fingerprint"])], [first["id"]])
        self.assertEqual(sdk.api_keys.list(name="none of them"), [])

    def test_get_returns_a_record_or_none(self) -> None:
        record, _ = self.registry.add_key("a", used="2026-11-22T19:05:00.000Z")
        found = sdk.api_keys.get(record["id"])
        assert found is not None
        self.assertEqual(found.last_used_at, datetime.datetime(2026, 11, 22, 19, 5, tzinfo=UTC))
        foreign, _ = self.registry.add_key("b", email=OTHER_EMAIL)
        for id in (foreign["id"], "kunknown", "", ".", "..", "../jobs", "a/b?c#d", "ä\n"):
            self.assertIsNone(sdk.api_keys.get(id))

    def test_revoke_by_id(self) -> None:
        record, secret = self.registry.add_key("a")
        sdk.api_keys.revoke(id=record["id"])
        self.assertNotIn(secret, self.registry.keys)
        with self.assertRaises(sdk.RequestError) as caught:
            sdk.api_keys.revoke(id=record["id"])
        self.assertEqual(caught.exception.status, 404)

    def test_revoke_by_secret_is_anonymous_and_needs_no_login(self) -> None:
        _, secret = self.registry.add_key("a")
        sdk.logout()
        self.registry.received.clear()
        sdk.api_keys.revoke(secret=f" {secret}\n")
        sdk.api_keys.revoke(secret=secret)
        self.assertNotIn(secret, self.registry.keys)
        self.assertEqual(self.registry.with_credentials(), [])
        with self.assertRaisesRegex(ValueError, "API key must start with 'qk_' prefix"):
            sdk.api_keys.revoke(secret="abc")

    def test_revoke_by_secret_works_although_the_stored_credentials_are_open_to_others(self) -> None:
        _, secret = self.registry.add_key("a")
        self.stored.chmod(0o644)
        sdk.api_keys.revoke(secret=secret)
        self.assertNotIn(secret, self.registry.keys)

    def test_revoke_takes_exactly_one_of_id_and_secret_by_name(self) -> None:
        for given in ({}, {"id": "a", "secret": "qk_b"}):
            with self.assertRaisesRegex(ValueError, "exactly one of id and secret"):
                sdk.api_keys.revoke(**given)
        with self.assertRaises(TypeError):
            sdk.api_keys.revoke("a")  # type: ignore[misc]


class AdminApiKeys(World):
    def setUp(self) -> None:
        super().setUp()
        self.log_in()
        self.registry.admin = True

    def test_lists_gets_and_revokes_keys_of_all_users(self) -> None:
        own, _ = self.registry.add_key("a")
        other, secret = self.registry.add_key("a", email=OTHER_EMAIL)
        self.assertEqual(len(sdk.admin.api_keys.list()), 2)
        self.assertEqual([key.id for key in sdk.admin.api_keys.list(email=OTHER_EMAIL, key_name="a", status="ACTIVE")], [other["id"]])
        found = sdk.admin.api_keys.get(other["id"])
        assert found is not None
        self.assertEqual(found.user_email, OTHER_EMAIL)
        self.assertIsNone(sdk.admin.api_keys.get("kunknown"))
        sdk.admin.api_keys.revoke(id=other["id"])
        self.assertNotIn(secret, self.registry.keys)
        self.assertFalse(hasattr(sdk.admin.api_keys, "create"))

    def test_unused_keys_are_found_by_the_specified_calls(self) -> None:
        self.registry.add_key("never")
        self.registry.add_key("long ago", used="2026-01-01T00:00:00.000Z")
        self.registry.add_key("now", used="2026-11-22T19:00:00.000Z")
        threshold = datetime.datetime(2026, 9, 1, tzinfo=UTC)
        keys = sdk.admin.api_keys.list(status="ACTIVE")
        unused = [key.name for key in keys if not key.last_used_at or key.last_used_at < threshold]
        self.assertEqual(unused, ["never", "long ago"])

    def test_unused_since_takes_dates_and_times(self) -> None:
        self.registry.add_key("long ago", used="2026-01-01T00:00:00.000Z")
        self.registry.add_key("now", used="2026-11-22T19:00:00.000Z")
        offset = datetime.timezone(datetime.timedelta(hours=2))
        moments = ("2026-09-01", datetime.date(2026, 9, 1), datetime.datetime(2026, 9, 1, tzinfo=offset))
        for moment in moments:
            self.assertEqual([key.name for key in sdk.admin.api_keys.list(unused_since=moment)], ["long ago"])
        with self.assertRaisesRegex(ValueError, "time zone"):
            sdk.admin.api_keys.list(unused_since=datetime.datetime(2026, 9, 1))

    def test_is_refused_to_others(self) -> None:
        self.registry.admin = False
        with self.assertRaisesRegex(sdk.PermissionDeniedError, "this needs the role admin"):
            sdk.admin.api_keys.list()


class Audit(World):
    def test_lists_the_records_of_a_day_over_all_pages(self) -> None:
        self.registry.admin = True
        self.log_in()
        records = [*sdk.admin.audit(date="2026/11/21", key="nightly")]
        self.assertEqual([each.id for each in records], [f"audit-{number}" for number in range(7)])
        self.assertEqual((records[0].date, records[0].useridentity["email"]), ("2026/11/21", "ada@example.com"))
        self.assertIn([("date", "2026/11/21"), ("key", "nightly"), ("limit", "1000")], self.registry.queries)

    def test_is_refused_to_others(self) -> None:
        self.log_in()
        with self.assertRaises(sdk.PermissionDeniedError):
            next(sdk.admin.audit())


class Grants(World):
    def setUp(self) -> None:
        super().setUp()
        self.log_in()
        self.registry.admin = True

    def test_are_added_listed_over_all_pages_and_removed(self) -> None:
        added = sdk.admin.grants.add("group:analysts", "photos/2026/")
        self.assertEqual((added.who, added.where), ("group:analysts", "photos/2026/"))
        self.assertEqual(len(sdk.admin.grants.list(who="group:analysts")), 7)
        self.assertEqual(sdk.admin.grants.remove("everyone", "photos").who, "everyone")

    def test_answer_who_reads_this_and_what_a_person_reads(self) -> None:
        (reader,) = sdk.admin.access.readers("photos/2026/")
        self.assertEqual((reader.email, reader.by[0].who), ("ada@example.com", "group:analysts"))
        self.assertEqual(sdk.admin.access.of("u1").reads, ("photos",))
        self.assertEqual(sdk.whoami().reads, ("photos/2026/",))


if __name__ == "__main__":
    unittest.main()
