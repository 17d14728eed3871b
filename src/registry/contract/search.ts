/** A search's parameters and answer. */
import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../ordering/document.ts';
import { sortFields, sortOrders } from '../../store/conditions.rules.ts';
import { bucketStatus } from './bucket.ts';
import {
  bucketName,
  count,
  cursor,
  flag,
  keyPrefix,
  limit,
  moment,
  must,
  objectKey,
  oneOf,
  pageOf,
  repeated,
  textOf,
  time,
} from './fields.ts';

/** A document of the index, as stored. */
export const storedObject = objectDocumentSchema;
export type StoredObject = ObjectDocument;

/** Longer than the longest key, whose characters may each be escaped. */
const QUERY_LENGTH_MAX = 4_096;
/** A tag has a name of 128 and a value of 256 characters; user metadata is at most 2 KiB. */
const PAIR_LENGTH_MAX = 2_200;
const PAIRS_MAX = 16;

const size = z.int(must('must be a whole number of bytes')).min(0, 'must be at least 0');
const pair = textOf(PAIR_LENGTH_MAX, 1);

/** The filters that narrow a search. */
export const filterFields = {
  query: textOf(QUERY_LENGTH_MAX)
    .exactOptional()
    .describe('All filters in one text, in the grammar of docs/guides/search.md: `report ext:pdf size>1G modified<7d -"draft"`.'),
  tz: textOf(64, 1).exactOptional().describe('The time zone of dates without one: Europe/Berlin, +02:00. Default: UTC.'),
  bucket: bucketName.exactOptional().describe('Only objects of this connected bucket.'),
  key: objectKey.exactOptional().describe('Only the object with this key.'),
  prefix: keyPrefix.exactOptional().describe('Only keys that begin with this.'),
  q: textOf(1_024)
    .exactOptional()
    .describe(
      'Words of the key, instead of `query`. Each must match; the last one may be the beginning of a word. Empty: all objects. Other syntax of `query` is refused here.',
    ),
  contains: textOf(1_024, 1).exactOptional().describe('Only keys that contain this text, ignoring case and accents; 3 to 256 characters.'),
  match: textOf(256, 1)
    .exactOptional()
    .describe(
      'Only keys that match this pattern: `*` is any run of characters, `?` one character. Without a slash, it may also start after any slash. Needs at least 3 other characters in a row, or a prefix; at most 8 `*` and 8 `?`.',
    ),
  extension: textOf(66, 1).exactOptional().describe('Only names with this extension, with or without the dot: `gz`, `tar.gz`.'),
  size_min: size.exactOptional().describe('Only objects of at least this many bytes.'),
  size_max: size.exactOptional().describe('Only objects of at most this many bytes.'),
  modified_after: moment.exactOptional().describe('Only objects last modified at or after this moment.'),
  modified_before: moment.exactOptional().describe('Only objects last modified before this moment.'),
  content_type: textOf(255, 1).exactOptional().describe('Only this content type, or `image/*`; enriched buckets only.'),
  storage_class: textOf(64, 1).exactOptional().describe('Only this storage class.'),
  etag: textOf(128, 1).exactOptional().describe('Only this etag, without quotes.'),
  tag: repeated(pair, PAIRS_MAX)
    .exactOptional()
    .describe('NAME=VALUE: only objects with this tag; NAME: with any value. Each of several must match. `=` in a name is `%3D`.'),
  meta: repeated(pair, PAIRS_MAX)
    .exactOptional()
    .describe('NAME=VALUE: only objects with this user metadata, without x-amz-meta-; NAME: with any value. Each of several must match.'),
  deleted: flag
    .exactOptional()
    .describe('`true`: only objects deleted in the last 7 to 14 days. Combines only with bucket, key, prefix, contains and match.'),
  deleted_after: moment.exactOptional().describe('Only objects deleted at or after this moment.'),
  deleted_before: moment.exactOptional().describe('Only objects deleted before this moment.'),
} as const;

export const searchQuery = z.strictObject({
  ...filterFields,
  sort: oneOf(sortFields)
    .exactOptional()
    .describe('The order: by bucket and key (the default), or by this field, then by bucket and key. A missing value counts as −1.'),
  order: oneOf(sortOrders)
    .exactOptional()
    .describe('Ascending (the default) or descending. Equal values are always by bucket and key, ascending.'),
  as_of: flag.exactOptional().describe("`true`: the response shows how far each named bucket's index can be relied on."),
  total: flag.exactOptional().describe('`true`: also count the results, up to 10,000.'),
  limit,
  cursor: cursor.exactOptional(),
});

export const asOf = z
  .object({
    bucket: bucketName,
    status: bucketStatus,
    last_event_at: time
      .exactOptional()
      .describe('When its last event arrived, to the minute. Absent for callers who cannot read the whole bucket.'),
    last_compared_at: time
      .exactOptional()
      .describe('When the whole bucket was last compared. Absent: never, or the caller cannot read the whole bucket.'),
    behind_ms: z
      .number()
      .exactOptional()
      .describe(
        'How long events of the last three minutes have waited in the queue, at least. Absent: less than 10 s, or no events arrived, or the caller cannot read the whole bucket.',
      ),
    gaps: count.describe('How many of its gaps are open.'),
  })
  .meta({ id: 'AsOf', description: "How far a bucket's index can be relied on." });

export const clause = z
  .object({
    field: z.string().describe('The field, or the kind of text: words, contains, match; object for an address.'),
    negated: z.boolean(),
    operator: z.string().exactOptional().describe('For comparisons: >, >=, <, <= or =.'),
    values: z.array(z.string()).readonly().describe('One of them must match. Sizes are in bytes, times in UTC.'),
    text: z.string().describe('The clause as written.'),
    position: count.describe('Where it starts in the query, in UTF-16 units from 0.'),
  })
  .meta({ id: 'Clause', description: 'One clause of a query as it was understood, with absolute values.' });

export const searchAnswer = pageOf(storedObject).extend({
  understood: z.array(clause).readonly().exactOptional().describe('The clauses of `query`.'),
  as_of: z.array(asOf).readonly().exactOptional().describe('With as_of=true; for at most 8 buckets.'),
  total: z
    .object({
      value: count.describe('How many objects match, counted up to 10,000.'),
      exact: z.boolean().describe('False: more objects match.'),
    })
    .exactOptional()
    .describe('With total=true.'),
});
