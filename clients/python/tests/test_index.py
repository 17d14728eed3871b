"""search, buckets, explain, reindex, jobs; and answers that no registry sends."""

import datetime
import json
import unittest
from typing import Tuple

import tally_sdk as sdk

from .registry import BUCKET, JOB
from .world import World


class Index(World):
    def setUp(self) -> None:
        super().setUp()
        self.log_in()

    def test_search_reads_all_pages_as_they_are_needed(self) -> None:
        found = sdk.search("cat", bucket="photos", extension="jpg")
        self.assertEqual(next(found).key, "2026/cat-0.jpg")
        self.assertEqual(len(self.registry.received), 1)
        self.assertEqual([each.key for each in found], [f"2026/cat-{number}.jpg" for number in range(1, 5)])
        self.assertEqual(len(self.registry.received), 3)
        self.assertEqual(self.registry.queries[-3], [("query", "cat"), ("bucket", "photos"), ("extension", "jpg"), ("limit", "1000")])

    def test_search_reads_as_many_pages_as_its_limit_takes(self) -> None:
        found = [*sdk.search("cat", limit=None)]
        self.assertEqual([each.key for each in found], [f"2026/cat-{number}.jpg" for number in range(5)])
        self.assertEqual(len(self.registry.received), 3)
        self.assertEqual(found[0].tags, {"a": "b"})
        self.assertIsNone(found[0].etag)
        self.assertEqual(found[0].expires_at, datetime.datetime.max.replace(tzinfo=datetime.timezone.utc))
        self.registry.received.clear()
        self.assertEqual(len([*sdk.search("cat", limit=2)]), 2)
        self.assertEqual(len(self.registry.received), 1)
        self.assertEqual(len([*sdk.search("cat", limit=3)]), 3)
        with self.assertRaises(ValueError):
            sdk.search("cat", limit=0)

    def test_changes_go_on_from_a_cursor_and_tell_when_to_begin_again(self) -> None:
        pages = [*sdk.changes("photos", prefix="2026/")]
        self.assertEqual([each.key for page in pages for each in page.items], [f"cat-{number}.jpg" for number in range(5)])
        self.assertEqual(self.registry.queries[-1], [("bucket", "photos"), ("prefix", "2026/"), ("after", "4"), ("limit", "1000")])
        self.assertEqual([*sdk.changes("photos", after=pages[-1].cursor)], [])
        self.assertEqual([page.reset for page in sdk.changes("photos", after="lost")], [True, False, False, False])
        following = sdk.changes("photos", after=pages[-2].cursor, follow=True)
        self.assertEqual([each.key for each in next(following).items], ["cat-4.jpg"])

    def test_search_sends_every_filter_as_the_api_takes_it(self) -> None:
        noon = datetime.datetime(2026, 1, 2, 13, 0, 0, 1_999, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
        sdk.search(
            contains="ar t+",
            match="*.gz",
            size_min=0,
            size_max=5,
            modified_after=noon,
            modified_before=datetime.date(2026, 2, 1),
            content_type="image/*",
            storage_class="GLACIER",
            etag="e",
            tags={"a=b%": "c=d", "e": "", "f=": None},
            meta={"k": "ä"},
            deleted_after="2026-01-01",
            sort="size",
            order="desc",
            limit=2,
        )
        self.assertEqual(
            self.registry.queries[-1],
            [
                ("contains", "ar t+"),
                ("match", "*.gz"),
                ("size_min", "0"),
                ("size_max", "5"),
                ("modified_after", "2026-01-02T12:00:00.001Z"),
                ("modified_before", "2026-02-01"),
                ("content_type", "image/*"),
                ("storage_class", "GLACIER"),
                ("etag", "e"),
                ("tag", "a%3Db%25=c=d"),
                ("tag", "e="),
                ("tag", "f%3D"),
                ("meta", "k=ä"),
                ("deleted_after", "2026-01-01"),
                ("sort", "size"),
                ("order", "desc"),
                ("limit", "2"),
            ],
        )
        sdk.search(query="size>1G is:deleted", tz="Europe/Berlin", deleted=True, limit=1)
        wanted = [("query", "size>1G is:deleted"), ("tz", "Europe/Berlin"), ("deleted", "true"), ("limit", "1")]
        self.assertEqual(self.registry.queries[-1], wanted)
        with self.assertRaisesRegex(ValueError, "modified_after must have a time zone"):
            sdk.search(modified_after=datetime.datetime(2026, 1, 1))

    def test_buckets_explain_reindex_and_jobs(self) -> None:
        (bucket,) = sdk.buckets()
        self.assertEqual((bucket.bucket, bucket.status.state), ("photos", "never_compared"))
        self.registry.buckets = ["a", "b", "c", "d", "e"]
        self.assertEqual([each.bucket for each in sdk.buckets()], self.registry.buckets)
        explanation = sdk.explain("photos", "a b/ä?.jpg")
        self.assertEqual((explanation.key, explanation.agrees, explanation.index), ("a b/ä?.jpg", "unknown", None))
        job = sdk.reindex("photos", mode="report")
        self.assertEqual((job.mode, job.state, job.progress), ("report", "running", None))
        self.assertEqual(self.registry.received[-1].body["mode"], "report")
        self.assertEqual(len(sdk.jobs()), 3)
        shown = sdk.job(JOB["id"])
        assert shown is not None and shown.counts is not None
        self.assertEqual(shown.counts["bytes_listed"], 12.5)
        self.assertIsNone(sdk.job("job-unknown"))

    def test_usage(self) -> None:
        usage = sdk.usage("cat", by=["extension", "class"], size_min=5, tags={"a": "b"}, limit=3)
        asked = [("query", "cat"), ("size_min", "5"), ("tag", "a=b"), ("by", "extension"), ("by", "class"), ("limit", "3")]
        self.assertEqual(self.registry.queries[-1], asked)
        extension, storage_class = usage.by
        self.assertEqual((usage.objects, extension.groups[0].filter, extension.others), (2, "ext:jpg", sdk.Sums(2, 2**40)))
        self.assertEqual((storage_class.by, storage_class.groups[0].name), ("class", None))
        sdk.usage(by="bucket")
        self.assertEqual(self.registry.queries[-1], [("by", "bucket"), ("limit", "100")])

    def test_a_refusal_names_code_and_advice(self) -> None:
        with self.assertRaises(sdk.RequestError) as caught:
            sdk.explain("other", "a")
        self.assertEqual(str(caught.exception), "there is no such thing (bucket.not-connected)")
        self.assertEqual((caught.exception.status, caught.exception.advice), (404, "look again"))

    def test_an_answer_of_another_shape_is_refused_naming_the_field(self) -> None:
        cases: Tuple[Tuple[object, str], ...] = (
            ({**BUCKET, "status": {}}, "Bucket.status.state"),
            ({**BUCKET, "created_at": "yesterday"}, "Bucket.created_at"),
            ({**BUCKET, "created_at": "2026-13-01T00:00:00.000Z"}, "Bucket.created_at"),
            ({**BUCKET, "region": 5}, "Bucket.region"),
            ([], "Bucket"),
        )
        for item, where in cases:
            self.registry.canned["/v1/buckets"] = (200, {}, json.dumps({"items": [item]}).encode())
            with self.assertRaisesRegex(sdk.ProtocolError, f"unexpected {where}:"):
                sdk.buckets()
        self.registry.canned["/v1/buckets"] = (200, {}, b"null")
        with self.assertRaisesRegex(sdk.ProtocolError, "without a list"):
            sdk.buckets()

    def test_a_list_that_never_ends_is_refused(self) -> None:
        self.registry.canned["/v1/jobs"] = (200, {}, json.dumps({"items": [], "next": "again"}).encode())
        with self.assertRaisesRegex(sdk.ProtocolError, "the same page again"):
            sdk.jobs()

    def test_errors_show_no_control_characters_of_the_server(self) -> None:
        problem = {"detail": "\x1b[2Jgone\u202e" + "a" * 5_000, "code": "x.y"}
        self.registry.canned["/v1/jobs"] = (500, {}, json.dumps(problem).encode())
        with self.assertRaises(sdk.RequestError) as caught:
            sdk.jobs()
        self.assertTrue(str(caught.exception).startswith("\\u001b[2Jgone\\u202eaaa"))
        self.assertLess(len(str(caught.exception)), 2_100)

    def test_an_error_page_of_another_server_is_not_shown(self) -> None:
        self.registry.canned["/v1/jobs"] = (502, {}, b"<html>bad gateway</html>")
        with self.assertRaisesRegex(sdk.ProtocolError, "502 and no problem document"):
            sdk.jobs()


if __name__ == "__main__":
    unittest.main()
