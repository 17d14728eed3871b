/**
 * Whether the bucket and the index agree about a key: drift, re-index, explain and the reading of tags all ask here. The second half
 * compares a listing and a scan side by side. The functions are pure, and cheap for keys that agree.
 */
import type { ObjectDocument, ObjectState, PresentState } from './document.ts';
import { compareKeys } from '../base/key-order.ts';
import type { EnrichMode } from '../records/bucket.ts';
import { lackingEnrichment, type EnrichmentField } from './enrichment.ts';
import { PLAUSIBLE_MS } from './constants.ts';

/**
 * The compared fields, by the document's names. A listing has all but the tags, which jobs read. Version id, content type and metadata
 * are not compared: no listing has them, so a re-index could neither find nor correct the difference that explain reports.
 */
const comparedFields = ['etag', 'size', 'storage_class', 'last_modified', 'tags'] as const;
export type ComparedField = (typeof comparedFields)[number];

export type ComparedDocument = Pick<ObjectDocument, ComparedField | 'last_modified_exact'>;

export interface Comparison {
  /**
   * `equal`: both have the same object, or neither has one. `incomplete`: equal except for fields that the document lacks,
   * which does not count as drift. The others are differences.
   */
  readonly kind: 'equal' | 'incomplete' | 'stale' | 'missing' | 'phantom';
  /** The fields that differ (`stale`) or that the document lacks (`incomplete`). */
  readonly fields: readonly ComparedField[];
  /** Whether the document's last_modified is only an event's time while the state has S3's LastModified. */
  readonly isInexact: boolean;
}

/** S3's LastModified has whole seconds, in listings and HEAD; some compatible stores' listings add milliseconds. */
const SECOND_MS = 1_000;
/**
 * How far an event's time may be from LastModified: 2 s because both are rounded to seconds, and W for two of S3's clocks, as in the
 * ordering rules (−4…+9 s were measured). It can be generous, because it only decides whether the difference counts as drift; the
 * true value is written in any case.
 */
const EVENT_TIME_TOLERANCE_MS = 2_000 + PLAUSIBLE_MS;

const NO_FIELDS: readonly ComparedField[] = [];
const NEITHER: Comparison = { kind: 'equal', fields: NO_FIELDS, isInexact: false };
const MISSING: Comparison = { kind: 'missing', fields: NO_FIELDS, isInexact: false };
const PHANTOM: Comparison = { kind: 'phantom', fields: NO_FIELDS, isInexact: false };

/**
 * Compares S3's state of a key with its live document; either is undefined if there is none. A field that only S3
 * states makes the document incomplete; one that only the document has is no difference.
 */
export function compareObject(state: PresentState | undefined, document: ComparedDocument | undefined): Comparison {
  if (state === undefined) return document === undefined ? NEITHER : PHANTOM;
  if (document === undefined) return MISSING;
  const isInexact = hasEventTime(document) && state.lastModifiedMs !== undefined;
  const differing: ComparedField[] = [];
  const lacking: ComparedField[] = [];
  for (const field of comparedFields) {
    const verdict = verdicts[field](state, document);
    if (verdict === 'differs') differing.push(field);
    else if (verdict === 'lacks') lacking.push(field);
  }
  if (differing.length > 0) return { kind: 'stale', fields: differing, isInexact };
  return { kind: lacking.length > 0 ? 'incomplete' : 'equal', fields: lacking, isInexact };
}

/** Compares S3's state of a key with its stored document, which may be a tombstone. */
export function compareStored(state: ObjectState, stored: (ComparedDocument & Pick<ObjectDocument, 'deleted'>) | undefined): Comparison {
  return compareObject(state.present ? state : undefined, stored?.deleted === true ? undefined : stored);
}

/** Whether a comparison found no difference. */
export function isAgreement({ kind }: Pick<Comparison, 'kind'>): boolean {
  return kind === 'equal' || kind === 'incomplete';
}

type FieldVerdict = 'same' | 'lacks' | 'differs';

const verdicts: Readonly<Record<ComparedField, (state: PresentState, document: ComparedDocument) => FieldVerdict>> = {
  etag: (state, document) => verdictOf(state.etag, document.etag, sameEtag),
  size: (state, document) => verdictOf(state.sizeBytes, document.size, Object.is),
  storage_class: (state, document) => verdictOf(state.storageClass, document.storage_class, Object.is),
  last_modified: (state, document) =>
    verdictOf(state.lastModifiedMs, document.last_modified, hasEventTime(document) ? nearTime : sameSecond),
  tags: (state, document) => verdictOf(state.tags, document.tags, sameTexts),
};

function verdictOf<Stated, Stored>(
  stated: Stated | undefined,
  stored: Stored | undefined,
  isSame: (stated: Stated, stored: Stored) => boolean,
): FieldVerdict {
  if (stated === undefined) return 'same';
  if (stored === undefined) return 'lacks';
  return isSame(stated, stored) ? 'same' : 'differs';
}

/** Whether the document has an event's time instead of LastModified. */
function hasEventTime({ last_modified_exact: isExact }: ComparedDocument): boolean {
  return isExact === false;
}

/** Compares etags without quotes (plain or as XML entities), because those belong to the header. */
function sameEtag(a: string, b: string): boolean {
  return a === b || plainEtag(a) === plainEtag(b);
}

function plainEtag(etag: string): string {
  return etag.replaceAll('&quot;', '').replaceAll('"', '');
}

function sameSecond(statedMs: number, stored: string): boolean {
  return Math.floor(statedMs / SECOND_MS) === Math.floor(Date.parse(stored) / SECOND_MS);
}

function nearTime(statedMs: number, stored: string): boolean {
  return Math.abs(statedMs - Date.parse(stored)) <= EVENT_TIME_TOLERANCE_MS;
}

function sameTexts(stated: Readonly<Record<string, string>>, stored: Readonly<Record<string, string>>): boolean {
  const [read, known] = [Object.entries(stated), new Map(Object.entries(stored))];
  return read.length === known.size && read.every(([name, value]) => known.get(name) === value);
}

// ── side by side ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Listed {
  readonly key: string;
  readonly state: PresentState;
}

interface Scanned extends ComparedDocument, Pick<ObjectDocument, EnrichmentField> {
  readonly key: string;
}

/** A key about which the sides differ, or whose document needs the true LastModified or enrichment, or whose tags will be read. */
export interface ComparedKey extends Comparison {
  readonly key: string;
  /** Absent if the listing lacks the key. */
  readonly state?: PresentState;
  /** What the document lacks of its bucket's enrichment; absent if it lacks nothing, or is stale. */
  readonly unenriched?: readonly EnrichmentField[];
}

export interface Sides {
  /** In key order, without repeats; read from `listedFrom` on. */
  readonly listed: readonly Listed[];
  readonly listedFrom: number;
  /** In key order, without repeats; read from `documentsFrom` on. */
  readonly documents: readonly Scanned[];
  readonly documentsFrom: number;
  /** Whether these are the last documents. */
  readonly isDocumentsEnd: boolean;
  /** The listing is known up to and including this key; undefined: to the end. Keys beyond it are not compared. */
  readonly through: string | undefined;
  /** Whether to return keys about which both sides agree too, because their tags, which no listing has, may differ. */
  readonly findsEqual: boolean;
  /** How the bucket's documents are enriched. */
  readonly enrich: EnrichMode;
  /** The slice ends after this many compared keys that need a HEAD (`needsHead`). */
  readonly headsMax: number;
  readonly needsHead: (comparedKey: ComparedKey) => boolean;
}

export interface Slice {
  /** Where the next slice continues: indexes into `listed` and `documents`. */
  readonly listedTo: number;
  readonly documentsTo: number;
  /** The last key that was compared, on either side; undefined if none was. */
  readonly lastKey: string | undefined;
  /** Whether every key up to `through` was compared; if not, more documents are needed, or headsMax was reached. */
  readonly isWhole: boolean;
  /** In key order. */
  readonly comparedKeys: readonly ComparedKey[];
}

/** Compares both sides in the order of UTF-8 bytes, as far as both are known. */
export function compareSides(sides: Sides): Slice {
  const ends: Position = { listedAt: endWithin(sides.listed, sides.through), documentsAt: endWithin(sides.documents, sides.through) };
  const comparedKeys: ComparedKey[] = [];
  let at: Position = { listedAt: sides.listedFrom, documentsAt: sides.documentsFrom };
  let lastKey: string | undefined;
  let heads = 0;
  let pair = pairAt(sides, at, ends);
  for (; typeof pair === 'object' && heads < sides.headsMax; pair = pairAt(sides, at, ends)) {
    const comparedKey = comparedKeyOf(pair, sides);
    if (comparedKey !== undefined) comparedKeys.push(comparedKey);
    if (comparedKey !== undefined && sides.needsHead(comparedKey)) heads += 1;
    lastKey = pair.key;
    at = pair.next;
  }
  const isWhole = pair === 'end' || (lastKey !== undefined && lastKey === sides.through);
  return { listedTo: at.listedAt, documentsTo: at.documentsAt, lastKey, isWhole, comparedKeys };
}

interface Position {
  readonly listedAt: number;
  readonly documentsAt: number;
}

/** The next key with its entry on each side; at least one side has it. */
interface Pair {
  readonly key: string;
  readonly listed: Listed | undefined;
  readonly document: Scanned | undefined;
  readonly next: Position;
}

/** The next pair. `end`: no key is left up to `through`. `documents`: more documents are needed to know which key is next. */
function pairAt(sides: Sides, { listedAt, documentsAt }: Position, ends: Position): Pair | 'end' | 'documents' {
  const scanned = sides.documents[documentsAt];
  if (scanned === undefined && !sides.isDocumentsEnd) return 'documents';
  const listed = listedAt < ends.listedAt ? sides.listed[listedAt] : undefined;
  const document = documentsAt < ends.documentsAt ? scanned : undefined;
  const order = orderOf(listed, document);
  if (order === undefined) return 'end';
  const next = { listedAt: listedAt + Number(order <= 0), documentsAt: documentsAt + Number(order >= 0) };
  return pairOf(order <= 0 ? listed : undefined, order >= 0 ? document : undefined, next);
}

function pairOf(listed: Listed | undefined, document: Scanned | undefined, next: Position): Pair {
  return { key: (listed ?? document)?.key ?? '', listed, document, next };
}

/** Negative: the listing's key comes first. Positive: the document's key comes first. Undefined: neither side has a key. */
function orderOf(listed: Listed | undefined, document: Scanned | undefined): number | undefined {
  if (listed === undefined) return document === undefined ? undefined : 1;
  return document === undefined ? -1 : compareKeys(listed.key, document.key);
}

/** Where the keys beyond `through` begin, by binary search: comparing each key with it would take as long as comparing the sides. */
function endWithin(side: readonly { readonly key: string }[], through: string | undefined): number {
  if (through === undefined) return side.length;
  let [from, to] = [0, side.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (compareKeys(side[middle]?.key ?? '', through) > 0) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The compared key for a pair; undefined if both sides agree, the document needs nothing, and equal keys are not asked for. */
function comparedKeyOf({ key, listed, document }: Pair, { findsEqual, enrich }: Sides): ComparedKey | undefined {
  const comparison = compareObject(listed?.state, document);
  const unenriched = document !== undefined && isAgreement(comparison) ? lackingEnrichment(enrich, document) : [];
  if (comparison.kind === 'equal' && !comparison.isInexact && unenriched.length === 0 && !findsEqual) return undefined;
  const found = { key, ...(listed !== undefined && { state: listed.state }), ...comparison };
  return unenriched.length > 0 ? { ...found, unenriched } : found;
}
