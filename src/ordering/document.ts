import { createHash } from 'node:crypto';
import { z } from 'zod';
import { cachingLatest } from '../base/latest.ts';
import { eventSources } from '../events/record.ts';
import { fold, wordsAndFold, wordsOf } from '../base/words.ts';

/** The clock of a moment in milliseconds: microseconds since the epoch, a document's external version. A clock is about 1.8e15, so it is a safe integer. */
export function clockOfMs(ms: number): number {
  return Math.max(0, Math.floor(ms * 1_000));
}

/** The moment of a clock, in milliseconds (with a fraction). */
export function msOfClock(clock: number): number {
  return clock / 1_000;
}

/** User metadata or tags, by name. This is not a z.record because that drops the name `__proto__`. */
export const textsSchema = z.custom<Readonly<Record<string, string>>>(
  (value) => typeof value === 'object' && value !== null && Object.values(value).every((text) => typeof text === 'string'),
);
type Texts = z.infer<typeof textsSchema>;

/** Where the content of a document comes from. */
const documentSources = [...eventSources, 'listing', 'check'] as const;
export type DocumentSource = (typeof documentSources)[number];

/** One key's state according to S3, or to an event that states the result. Unknown values are absent, never guessed. */
export type ObjectState = PresentState | AbsentState;

export interface PresentState {
  readonly present: true;
  readonly etag?: string;
  readonly sizeBytes?: number;
  readonly versionId?: string;
  readonly lastModifiedMs?: number;
  /** False if lastModifiedMs is an event's time instead of S3's own LastModified. */
  readonly lastModifiedExact?: boolean;
  readonly storageClass?: string;
  /** When a lifecycle rule will expire the object (`x-amz-expiration`). */
  readonly expiresAtMs?: number;
  readonly contentType?: string;
  /** Names without `x-amz-meta-`. Empty: the object has none. */
  readonly userMetadata?: Texts;
  /** Empty: the object has none. */
  readonly tags?: Texts;
}

interface AbsentState {
  readonly present: false;
}

/** The event that led to a write, for the document's event_name and event_time. */
export interface Cause {
  readonly eventName?: string;
  readonly eventTimeMs?: number;
}

const text = z.string().exactOptional();
const texts = textsSchema.meta({ type: 'object', additionalProperties: { type: 'string' } }).exactOptional();
const time = z.string().meta({ format: 'date-time' });

/** One key's document, as stores keep it and the control plane returns it. `name` and what follows, up to `expires_at`, are live documents' only. */
export const objectDocumentSchema = z
  .object({
    bucket: z.string().describe('The bucket.'),
    key: z.string().describe('The key.'),
    name: text.describe('The part of the key after the last slash.'),
    extension: text.describe('The extension of the name, in lower case and without the dot.'),
    size: z.number().exactOptional().describe('The size in bytes.'),
    etag: text.describe('The etag, without quotes.'),
    version_id: text.describe('The version ID, if S3 named one.'),
    last_modified: time.exactOptional().describe('When it was last modified.'),
    last_modified_exact: z.boolean().exactOptional().describe("False: last_modified is an event's time, not S3's LastModified."),
    storage_class: text.describe('The storage class.'),
    content_type: text.describe('The content type; enriched buckets only.'),
    user_metadata: texts.describe('User metadata by name, without x-amz-meta-; enriched buckets only.'),
    tags: texts.describe('Tags by name; buckets that are enriched with tags only.'),
    expires_at: time.exactOptional().describe('When a lifecycle rule will expire it.'),
    deleted: z.boolean().describe('True: a tombstone. Searches never find one.'),
    deleted_at: time.exactOptional().describe('When Tally saw that the object was gone; tombstones only.'),
    clock: z.number().describe('The clock of the last write, in microseconds since 1970.'),
    settled: z.boolean().describe('False: the answer is provisional, and Tally will check again.'),
    source: z.enum(documentSources).describe('What the last write came from.'),
    event_name: text.describe('The name of the event that led to the last write.'),
    event_time: time.exactOptional().describe('The time of that event.'),
    indexed_at: time.describe('When the document was written.'),
  })
  .meta({ id: 'StoredObject', description: 'What the index holds for one key. Fields that S3 did not report are absent.' });
export type ObjectDocument = Readonly<z.infer<typeof objectDocumentSchema>>;

/** The largest `_id` that OpenSearch accepts, in UTF-8 bytes; a longer one fails the whole bulk request. */
const ID_BYTES_MAX = 512;

/** The id of a key's document: `k:` + key if that fits into 512 bytes, otherwise `h:` + its SHA-256 in base64url. */
export function documentId(key: string): string {
  const plain = `k:${key}`;
  // a UTF-16 unit takes at most 3 UTF-8 bytes, so most keys are short enough without counting
  if (plain.length * 3 <= ID_BYTES_MAX || Buffer.byteLength(plain) <= ID_BYTES_MAX) return plain;
  return `h:${createHash('sha256').update(key).digest('base64url')}`;
}

export interface DocumentFacts {
  readonly bucket: string;
  readonly key: string;
  readonly state: ObjectState;
  readonly clock: number;
  readonly settled: boolean;
  readonly source: DocumentSource;
  readonly cause: Cause;
  /** When an absent key was observed or reported to be absent. */
  readonly stateAtMs: number;
  readonly nowMs: number;
}

type Writable<Document> = { -readonly [Field in keyof Document]: Document[Field] };

/** Builds the document for the key's state: a live document, or a tombstone without object fields. */
export function documentOf(facts: DocumentFacts): ObjectDocument {
  const { bucket, key, state, clock, settled, source, cause, nowMs } = facts;
  const document: Writable<ObjectDocument> = { bucket, key, deleted: !state.present, clock, settled, source, indexed_at: isoOfNow(nowMs) };
  if (cause.eventName !== undefined) document.event_name = cause.eventName;
  if (cause.eventTimeMs !== undefined) document.event_time = isoOfEvent(cause.eventTimeMs);
  if (state.present) addLiveFields(document, state);
  else document.deleted_at = isoOf(facts.stateAtMs);
  return document;
}

/** Adds the fields one by one, because spreading optional fields took a tenth of the memory that a re-index allocates. */
function addLiveFields(document: Writable<ObjectDocument>, state: PresentState): void {
  const { name, extension } = nameOf(document.key);
  document.name = name;
  if (extension !== undefined) document.extension = extension;
  if (state.sizeBytes !== undefined) document.size = state.sizeBytes;
  if (state.etag !== undefined) document.etag = state.etag;
  if (state.versionId !== undefined) document.version_id = state.versionId;
  if (state.lastModifiedMs !== undefined) {
    document.last_modified = isoOfEvent(state.lastModifiedMs);
    document.last_modified_exact = state.lastModifiedExact ?? true;
  }
  if (state.storageClass !== undefined) document.storage_class = state.storageClass;
  if (state.expiresAtMs !== undefined) document.expires_at = isoOf(state.expiresAtMs);
  addUserFields(document, state);
}

/** Adds the fields that the bucket's users can write freely. */
function addUserFields(document: Writable<ObjectDocument>, { contentType, userMetadata, tags }: PresentState): void {
  if (contentType !== undefined) document.content_type = contentType;
  if (userMetadata !== undefined) document.user_metadata = userMetadata;
  if (tags !== undefined) document.tags = tags;
}

/** Anything longer is part of the name, not a type. */
const EXTENSION_LENGTH_MAX = 32;

/** A key's last path segment (`dir/` for `dir/`), and its extension: 1–32 characters after the last dot, in lower case. */
export function nameOf(key: string): { readonly name: string; readonly extension?: string } {
  const path = key.endsWith('/') ? key.slice(0, -1) : key;
  const name = key.slice(path.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  const extension = name.slice(dot + 1).toLowerCase();
  if (dot <= 0 || extension === '' || extension.length > EXTENSION_LENGTH_MAX || extension.endsWith('/')) return { name };
  return { name, extension };
}

/**
 * Whether two documents describe the same content of the object (rule 12: two contents at an equal clock have no order). Fields that
 * enrichment or a HEAD adds to an event's do not count as a difference.
 */
export function sameContent(a: ObjectDocument, b: ObjectDocument): boolean {
  return a.deleted === b.deleted && a.etag === b.etag && a.size === b.size && a.version_id === b.version_id;
}

/** The words by which searches find the document, as both stores use them. */
export function documentWords(document: ObjectDocument): readonly string[] {
  return document.deleted ? [] : wordsOf(document.key);
}

/** Folders below this level have no field, so they are not counted separately. */
export const FOLDER_LEVELS = 8;
type FolderField = `d${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8}`;
const folderFields: readonly FolderField[] = ['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7', 'd8'];

/** Fields that searches read but answers do not contain. All follow from the key; tombstones have only `words` and `folded`. */
interface SearchFields extends Readonly<Partial<Record<FolderField, string>>> {
  readonly words: readonly string[];
  readonly folded: string;
  /** The name's last extension, and its last two together: `gz` and `tar.gz`. */
  readonly extensions?: readonly string[];
}

/** The search fields of a document. */
export function searchFieldsOf(document: ObjectDocument): SearchFields {
  const { key, deleted } = document;
  if (deleted) return { words: [], folded: fold(key) };
  const fields: Writable<SearchFields> = { ...wordsAndFold(key) };
  if (document.extension !== undefined) fields.extensions = extensionsOf(key, document.extension);
  let slash = key.indexOf('/');
  for (const field of folderFields) {
    if (slash < 0) break;
    fields[field] = key.slice(0, slash + 1);
    slash = key.indexOf('/', slash + 1);
  }
  return fields;
}

/** The extension of a key's name, and its last two together if they are an extension too. */
export function extensionsOf(key: string, extension: string): readonly string[] {
  // not by the extension's length, which lower-casing may change
  const last = key.lastIndexOf('.');
  const dot = key.lastIndexOf('.', last - 1);
  const second = key.slice(dot + 1, last);
  // a leading dot does not begin an extension
  const isPart = dot > 0 && key[dot - 1] !== '/' && second !== '' && second.length <= EXTENSION_LENGTH_MAX && !second.includes('/');
  return isPart ? [extension, `${second.toLowerCase()}.${extension}`] : [extension];
}

const DAY_MS = 86_400_000;
/** The days of thirty years. When there are more, the cache is cleared. */
const DAYS_MAX = 11_000;
/** The texts of days up to the `T`, by their number. */
const dayTexts = new Map<number, string>();
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
/** The parts of a text after the day, prepared because each concatenation to a text of more than twelve characters costs V8 an object. */
const minuteTexts = Array.from({ length: 1_440 }, (_, minute) => `${twoDigits[Math.floor(minute / 60)]}:${twoDigits[minute % 60]}:`);
const secondTexts = twoDigits.map((seconds) => `${seconds}.`);
const millisecondTexts = Array.from({ length: 1_000 }, (_, number) => `${String(number).padStart(3, '0')}Z`);

/** Returns the same as Date's toISOString, and throws likewise, in a fifth of the time: a first index needs one for each object. */
export function isoOf(ms: number): string {
  const whole = Math.trunc(ms);
  const day = Math.floor(whole / DAY_MS);
  const left = whole - day * DAY_MS;
  const minute = minuteTexts[Math.floor(left / 60_000)];
  const second = secondTexts[Math.floor(left / 1_000) % 60];
  return `${dayTexts.get(day) ?? dayText(day)}${minute}${second}${millisecondTexts[left % 1_000]}`;
}

function dayText(day: number): string {
  const whole = new Date(day * DAY_MS).toISOString();
  if (dayTexts.size >= DAYS_MAX) dayTexts.clear();
  const dayOnly = whole.slice(0, whole.indexOf('T') + 1);
  dayTexts.set(day, dayOnly);
  return dayOnly;
}

// the event's time is often the object's time too, and many documents are made within the same millisecond
const isoOfEvent = cachingLatest(isoOf);
const isoOfNow = cachingLatest(isoOf);
