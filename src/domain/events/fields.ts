/** Functions that the dialects share: they read fields of unchecked JSON and make a record or a fault of them. */
import { z } from 'zod';
import { isBucketName } from '../bucket-name.ts';
import type { FaultCode } from '../fault.ts';
import { isKey, type WrittenKey } from './keys.ts';
import { printable } from '../printable.ts';
import type { Change, ChangeRecord, Dialect, RecordResult } from './record.ts';

/** A fault's reason repeats at most this many characters of a message. */
const QUOTE_LENGTH_MAX = 60;
/** Longer event names are cut to this length. */
const EVENT_NAME_LENGTH_MAX = 128;
/** S3's limit for a version id; etags and sequencers are far shorter. A keyword field of the index cannot hold much longer values. */
const ID_LENGTH_MAX = 1_024;

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value of parsed JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of object fields; undefined when there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isJsonObject(current)) return undefined;
    current = current[field];
  }
  return current;
}

/** Whether a field is without a value. A path that an input transformer does not find arrives as the empty string. */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/** Whether a field holds an event name, known or unknown. */
export function isEventName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** An identifier made by S3 (etag, version id, sequencer), or nothing. */
export const idSchema = z
  .string()
  .max(ID_LENGTH_MAX)
  .refine((text) => text.isWellFormed(), 'Invalid input: not well-formed Unicode')
  .nullish();

/** A delete marker as the sources write it: absent, null, the empty string, a boolean, or its name. */
export const deleteMarkerSchema = z.literal([true, false, 'true', 'false', '', null]).optional();

/** Whether a parsed delete-marker field is true. */
export function isMarked(deleteMarker: z.infer<typeof deleteMarkerSchema>): boolean {
  return deleteMarker === true || deleteMarker === 'true';
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** An ISO 8601 time as ms since the epoch; undefined when the value is not such a time or lies outside the years 1970 to 9999. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !ISO_TIME.test(value)) return undefined;
  const timeMs = Date.parse(value);
  return timeMs >= 0 && timeMs < Date.UTC(10_000, 0) ? timeMs : undefined;
}

/** A piece of a message for a fault's reason: shortened, on one line, in quotes. */
export function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${printable(value, QUOTE_LENGTH_MAX)}"` : kindOf(value);
}

/** The type of a value of parsed JSON, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'absent';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A record that can never succeed. `bucket` is kept if it is a valid bucket name: a loss gap is opened for it. */
export function rejectedRecord(code: FaultCode, reason: string, bucket?: unknown): RecordResult {
  const known = typeof bucket === 'string' && isBucketName(bucket) ? { bucket } : {};
  return { ok: false, fault: { code, reason }, ...known };
}

/** A record that does not match its schema. The reason names the first mistake by path and kind, never by its value. */
export function invalidRecord(error: z.ZodError, bucket: unknown): RecordResult {
  const issue = error.issues[0];
  return rejectedRecord('record.invalid', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`, bucket);
}

/** A record that changes nothing in the index. None of its fields are needed, so none are checked: the key is empty, and so is the bucket if the record has no valid one. */
export function ignoredRecord(
  facts: Pick<RecordFacts, 'dialect' | 'eventName' | 'bucket' | 'eventTimeMs'> & { readonly change: Change },
): RecordResult {
  const { bucket, eventTimeMs } = facts;
  return {
    ok: true,
    record: {
      dialect: facts.dialect,
      bucket: typeof bucket === 'string' && isBucketName(bucket) ? bucket : '',
      key: '',
      keyUncertain: false,
      eventName: shortName(facts.eventName),
      change: facts.change,
      ...(eventTimeMs !== undefined && { eventTimeMs }),
    },
  };
}

/** The fields of a record as its dialect gives them. */
export interface RecordFacts {
  readonly dialect: Dialect;
  readonly eventName: string;
  readonly change: Change;
  readonly bucket: unknown;
  readonly key: WrittenKey;
  readonly eventTimeMs: number | undefined;
  readonly sequencer?: string | null | undefined;
  /** With or without the quotes of the ETag header. */
  readonly etag?: string | null | undefined;
  readonly sizeBytes?: number | null | undefined;
  readonly versionId?: string | null | undefined;
  /** Of an audit trail, unchecked. */
  readonly requestId?: unknown;
}

/** Makes the record of a change. It is rejected when its bucket or key is not valid (`record.bucket-invalid`, `record.key-missing`, `record.key-invalid`). */
export function recordOf(facts: RecordFacts): RecordResult {
  const { dialect, change, bucket, key } = facts;
  if (typeof bucket !== 'string' || !isBucketName(bucket)) {
    return rejectedRecord('record.bucket-invalid', `the bucket name is not valid: ${quoted(bucket)}`);
  }
  if (key.key === '' && change.kind !== 'bulk-deleted') {
    return rejectedRecord('record.key-missing', `${quoted(facts.eventName)} names no key`, bucket);
  }
  if (key.key !== '' && !isKey(key.key)) {
    return rejectedRecord(
      'record.key-invalid',
      `the key ${quoted(key.key)} is not well-formed Unicode or is longer than 1,024 bytes`,
      bucket,
    );
  }
  const eventName = shortName(facts.eventName);
  const record: Writable<ChangeRecord> = { dialect, bucket, key: key.key, keyUncertain: key.uncertain, eventName, change };
  addOptionalFields(record, facts);
  return { ok: true, record };
}

type Writable<Fields> = { -readonly [Field in keyof Fields]: Fields[Field] };

/** Adds the fields one by one, because a spread for each optional field makes an object for each of them. */
function addOptionalFields(record: Writable<ChangeRecord>, facts: RecordFacts): void {
  const { eventTimeMs, sequencer, sizeBytes, versionId } = facts;
  const etag = facts.etag?.replaceAll('"', '');
  const requestId = requestIdOf(facts);
  if (eventTimeMs !== undefined) record.eventTimeMs = eventTimeMs;
  if (!isAbsent(sequencer)) record.sequencer = sequencer;
  if (!isAbsent(etag)) record.etag = etag;
  if (!isAbsent(sizeBytes)) record.sizeBytes = sizeBytes;
  if (!isAbsent(versionId)) record.versionId = versionId;
  if (requestId !== undefined) record.requestId = requestId;
}

/** A request ID as S3 and CloudTrail write them. It only ever proves something, so any other value counts as absent. */
const REQUEST_ID = /^[\w-]{8,128}$/;

function requestIdOf({ change, requestId }: RecordFacts): string | undefined {
  const isDelete = change.kind === 'deleted' || change.kind === 'marker-created' || change.kind === 'bulk-deleted';
  return isDelete && typeof requestId === 'string' && REQUEST_ID.test(requestId) ? requestId : undefined;
}

function shortName(eventName: string): string {
  return eventName.slice(0, EVENT_NAME_LENGTH_MAX).toWellFormed();
}
