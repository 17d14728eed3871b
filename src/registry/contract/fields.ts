/** Fields that several subjects share, with their bounds. */
import { z } from 'zod';
import { BUCKET_NAME } from '../../base/bucket-name.ts';
import { CURSOR_LENGTH_MAX } from '../../base/cursor.ts';

/** S3's longest key. */
const KEY_BYTES_MAX = 1_024;
/** The longest id. Ids of SQS and of Tally are shorter. */
const ID_LENGTH_MAX = 255;
const LIMIT_MAX = 1_000;

/** The message for a missing value or one of the wrong type. */
export function must(message: string) {
  return { error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'must be given' : message) };
}

/** A body with these fields and no others. */
export function bodyOf<Fields extends z.core.$ZodShape>(fields: Fields) {
  return z.strictObject(fields, must('must be an object'));
}

export const yesNo = z.boolean(must('must be true or false'));

/** One of these texts. */
export function oneOf<const Values extends readonly string[]>(values: Values) {
  return z.enum(values, must(`must be one of ${values.join(', ')}`));
}

/** Text of at most `lengthMax` characters, counted as JSON Schema counts them (code points). */
export function textOf(lengthMax: number, lengthMin = 0) {
  const bounds = { ...(lengthMin > 0 && { minLength: lengthMin }), maxLength: lengthMax };
  return z
    .string(must('must be text'))
    .refine((text) => text.length >= lengthMin, 'must not be empty')
    .refine((text) => text.length <= lengthMax || Array.from(text).length <= lengthMax, `must have at most ${lengthMax} characters`)
    .meta(bounds);
}

/** The name of a bucket. */
export const bucketName = z
  .string(must('must be the name of a bucket'))
  .regex(BUCKET_NAME, 'must be the name of a bucket: 3 to 255 letters, digits, dots, hyphens and underscores')
  .describe('The name of the bucket.');

/** A key or the beginning of one. JSON Schema cannot express a limit in bytes. */
function keyText(lengthMin: 0 | 1) {
  return z
    .string(must('must be text'))
    .refine((text) => text.length >= lengthMin, 'must not be empty')
    .refine((text) => new TextEncoder().encode(text).length <= KEY_BYTES_MAX, `must have at most ${KEY_BYTES_MAX} bytes in UTF-8`)
    .meta({ ...(lengthMin > 0 && { minLength: lengthMin }), maxLength: KEY_BYTES_MAX });
}

/** A key of an object. */
export const objectKey = keyText(1).meta({ description: "The object's key, 1 to 1,024 bytes in UTF-8." });
/** The beginning of keys; empty: all keys. */
export const keyPrefix = keyText(0).meta({ description: 'The beginning of the keys, at most 1,024 bytes in UTF-8.' });

/** An id of a job or a dead letter. */
export const id = textOf(ID_LENGTH_MAX, 1);

/** An e-mail address has at most 254 characters; user@host may have more. */
const EMAIL_LENGTH_MAX = 512;

/** An e-mail address, or user@host. */
export const emailText = textOf(EMAIL_LENGTH_MAX, 1);

/** The most items of one page. */
export const limit = z
  .int(must('must be a whole number from 1 to 1000'))
  .min(1, 'must be at least 1')
  .max(LIMIT_MAX, `must be at most ${LIMIT_MAX}`)
  .default(100)
  .describe('The most items per page.');

/** The position at which the previous page ended. */
export const cursor = z
  .string(must('must be text'))
  .regex(/^[A-Za-z0-9_-]+$/, 'must be the `next` of an earlier page')
  .max(CURSOR_LENGTH_MAX, 'must be the `next` of an earlier page')
  .describe('The `next` of the previous page; absent for the first page.');

/** The page of a list. */
export const paging = { limit, cursor: cursor.exactOptional() };

/** A parameter that may be given several times. */
export function repeated<Item extends z.ZodType<string>>(item: Item, countMax: number) {
  return z.union([item, z.array(item).max(countMax, `at most ${countMax} times`)]);
}

/** A switch of a query: `true` or `false`. */
export const flag = z.enum(['true', 'false'], must('must be true or false'));

/** One page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item).readonly(),
    next: z.string().optional().describe('The cursor of the next page; absent on the last page.'),
  });
}

/** A time: ISO 8601 in UTC with milliseconds. */
export const time = z
  .string()
  .regex(/^(?:\d{4}|[+-]\d{6})-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' });

/** Any text of this form is a moment: Date.parse takes 31 days in every month. */
const MOMENT = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{3})?Z)?$/;
const MOMENT_MISTAKE = 'must be a day (2026-11-21) or a time in UTC (2026-11-21T08:00:00Z)';
/** A day or a time in UTC. */
export const moment = z.string(must(MOMENT_MISTAKE)).regex(MOMENT, MOMENT_MISTAKE);

/** Converts a time to its form in the API. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Converts a time that may be absent. */
export function timeOfMaybe(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : timeOf(ms);
}

/** A count of things. */
export const count = z.int().min(0);

/** The errors with which any AWS request for a bucket may fail. */
export const AWS_REFUSALS = ['connect.denied', 'connect.unavailable', 'connect.credentials'] as const;
