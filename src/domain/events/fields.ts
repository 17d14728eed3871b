/** What the four dialects share: reading fields of JSON that nobody has checked, and making a record or a fault of them. */
import { z } from 'zod';
import { isBucketName } from '../bucket.ts';
import type { FaultCode } from '../fault.ts';
import type { RecordResult } from './record-result.ts';
import { isKey, type ToldKey } from './keys.ts';
import { printable } from '../printable.ts';
import type { Change, ChangeRecord, Dialect } from './record.ts';

/** No reason repeats more than this of a message. */
const QUOTE_LENGTH_MAX = 60;
/** Longest event name that is kept. */
const EVENT_NAME_LENGTH_MAX = 128;
/** S3's limit for a version id; etags and sequencers are far shorter. An index's keyword field could not hold a much longer one. */
const ID_LENGTH_MAX = 1_024;

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value of parsed JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of object fields; undefined where there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isJsonObject(current)) return undefined;
    current = current[field];
  }
  return current;
}

/** Whether a field says nothing. A path that an input transformer does not find arrives as the empty string. */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/** Whether a field names an event, known or not. */
export function isEventName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** An identifier that S3 made (etag, version id, sequencer), or nothing. */
export const idSchema = z
  .string()
  .max(ID_LENGTH_MAX)
  .refine((text) => text.isWellFormed(), 'Invalid input: not well-formed Unicode')
  .nullish();

/** A delete marker as the sources write it: absent, null, the empty string, a boolean, or its name. */
export const deleteMarkerSchema = z.literal([true, false, 'true', 'false', '', null]).optional();

/** Whether a parsed delete marker says yes. */
export function isMarked(deleteMarker: z.infer<typeof deleteMarkerSchema>): boolean {
  return deleteMarker === true || deleteMarker === 'true';
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** An ISO 8601 time as ms since the epoch; undefined when it is no time, or not of the years 1970 to 9999. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !ISO_TIME.test(value)) return undefined;
  const timeMs = Date.parse(value);
  return timeMs >= 0 && timeMs < Date.UTC(10_000, 0) ? timeMs : undefined;
}

/** A piece of a message for a fault's reason: short, on one line, in quotes. */
export function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${printable(value, QUOTE_LENGTH_MAX)}"` : kindOf(value);
}

/** What a value of parsed JSON is, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'absent';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A record that can never succeed. The bucket goes with it if it is a name, for its loss gap. */
export function rejectedRecord(code: FaultCode, reason: string, bucket?: unknown): RecordResult {
  const known = typeof bucket === 'string' && isBucketName(bucket) ? { bucket } : {};
  return { ok: false, fault: { code, reason }, ...known };
}

/** A record that its schema refused: the first mistake is named by its place and kind, never by its value. */
export function invalidRecord(error: z.ZodError, bucket: unknown): RecordResult {
  const issue = error.issues[0];
  return rejectedRecord('record.invalid', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`, bucket);
}

/** A record of no consequence. Nothing of it is needed, so nothing of it can be wrong: its key is empty, and its bucket too if it names none. */
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

/** The fields of a record as its dialect told them. */
export interface RecordFacts {
  readonly dialect: Dialect;
  readonly eventName: string;
  readonly change: Change;
  readonly bucket: unknown;
  readonly key: ToldKey;
  readonly eventTimeMs: number | undefined;
  readonly sequencer?: string | null | undefined;
  /** With or without quotes. */
  readonly etag?: string | null | undefined;
  readonly sizeBytes?: number | null | undefined;
  readonly versionId?: string | null | undefined;
}

/** Makes a record of a change, or says what keeps its bucket or key from being one (`record.bucket-invalid`, `record.key-missing`, `record.key-invalid`). */
export function recordOf(facts: RecordFacts): RecordResult {
  const { dialect, change, bucket, key } = facts;
  if (typeof bucket !== 'string' || !isBucketName(bucket)) {
    return rejectedRecord('record.bucket-invalid', `the bucket's name is ${quoted(bucket)}`);
  }
  if (key.key === '' && change.kind !== 'bulk-deleted') {
    return rejectedRecord('record.key-missing', `${quoted(facts.eventName)} names no key`, bucket);
  }
  if (key.key !== '' && !isKey(key.key)) {
    return rejectedRecord('record.key-invalid', `the key ${quoted(key.key)} is ill-formed or longer than 1,024 bytes`, bucket);
  }
  const eventName = shortName(facts.eventName);
  return { ok: true, record: { dialect, bucket, key: key.key, keyUncertain: key.uncertain, eventName, change, ...optionalFields(facts) } };
}

function optionalFields(facts: RecordFacts): Partial<ChangeRecord> {
  const { eventTimeMs, sequencer, sizeBytes, versionId } = facts;
  const etag = facts.etag?.replaceAll('"', '');
  return {
    ...(eventTimeMs !== undefined && { eventTimeMs }),
    ...(!isAbsent(sequencer) && { sequencer }),
    ...(!isAbsent(etag) && { etag }),
    ...(!isAbsent(sizeBytes) && { sizeBytes }),
    ...(!isAbsent(versionId) && { versionId }),
  };
}

function shortName(eventName: string): string {
  return eventName.slice(0, EVENT_NAME_LENGTH_MAX).toWellFormed();
}
