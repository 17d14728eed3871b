/** Dead letters: the original body, unchanged, and three message attributes with the fault, its reason and its context. */
import { z } from 'zod';
import type { Fault } from '../base/fault.ts';

/** One SQS message attribute. */
interface Attribute {
  readonly dataType: string;
  readonly stringValue?: string;
  readonly binaryValue?: Uint8Array;
}
type Attributes = Readonly<Record<string, Attribute>>;

/** SQS accepts at most ten attributes per message. */
const ATTRIBUTES_MAX = 10;
/** SQS's own limit for a message: body and attributes (names, types and values) together. A queue may have a lower one. */
export const MESSAGE_BYTES_MAX = 1_048_576;
/** Enough for a sentence as the reason. */
const REASON_BYTES_MAX = 256;
/** How many positions a letter names: those of all 20,000 records that fit into a body would take 100 kB. */
export const POSITIONS_MAX = 100;

const FAULT = 'tally-fault';
const REASON = 'tally-reason';
const CONTEXT = 'tally-context';
const OURS: ReadonlySet<string> = new Set([FAULT, REASON, CONTEXT]);

/** What Tally knew about the message when it sent the dead letter. */
interface LetterContext {
  /** The URL of the queue that the message was received from. */
  readonly queue: string;
  readonly messageId: string;
  /** ISO 8601. */
  readonly firstReceived: string;
  /** The positions, from 0, of the first 100 records that failed; empty if the body as a whole failed. */
  readonly records: readonly number[];
}

export interface LetterFacts {
  readonly body: string;
  /** The attributes of the received message. */
  readonly attributes: Attributes;
  readonly fault: Fault;
  readonly context: LetterContext;
}

/**
 * The attributes of a letter: Tally's three, and the first seven of the message's own, sorted by name. If body and attributes
 * together would exceed `bytesMax`, only the fault; if even that would, none.
 */
export function deadLetterAttributes(facts: LetterFacts, bytesMax = MESSAGE_BYTES_MAX): Attributes {
  const own = Object.entries(ownAttributes(facts.attributes)).sort(([a], [b]) => (a < b ? -1 : 1));
  const fault = { [FAULT]: text(facts.fault.code) };
  const all = {
    ...Object.fromEntries(own.slice(0, ATTRIBUTES_MAX - OURS.size)),
    ...fault,
    [REASON]: text(letterReason(facts.fault)),
    [CONTEXT]: text(JSON.stringify(facts.context)),
  };
  const roomBytes = bytesMax - Buffer.byteLength(facts.body);
  return [all, fault].find((attributes) => attributesSizeBytes(attributes) <= roomBytes) ?? {};
}

/** A fault's reason as the value of an attribute: printable ASCII, at most 256 bytes, never empty (SQS refuses empty values). */
export function letterReason(fault: Fault): string {
  const printable = fault.reason.replaceAll(/[^\x20-\x7e]/gu, '?').slice(0, REASON_BYTES_MAX);
  return printable.trim() === '' ? fault.code : printable;
}

/** A message's attributes without Tally's: a replay sends these back to the bucket queue. */
export function ownAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => !OURS.has(name)));
}

/** The contents of Tally's attributes. All are absent if SQS itself moved the letter, or if it was sent without attributes. */
export interface LetterNotes {
  readonly fault?: string;
  readonly reason?: string;
  readonly context?: LetterNotesContext;
}
type LetterNotesContext = z.infer<typeof foreignContextSchema>;

/** Tally's own texts have at most 256 characters, and its context has at most 100 positions. */
const TEXT_LENGTH_MAX = 1_024;
/** Several times the queue, the message ID, the time and the positions of Tally's own context. */
const CONTEXT_LENGTH_MAX = 4_096;

const foreignText = z.string().max(TEXT_LENGTH_MAX).optional().catch(undefined);
/** Fields that do not have Tally's format are left out. */
const foreignContextSchema = z.object({
  queue: foreignText,
  messageId: foreignText,
  firstReceived: foreignText,
  records: z
    .array(z.number())
    .transform((positions) => positions.slice(0, POSITIONS_MAX))
    .optional()
    .catch(undefined),
});

/**
 * Reads Tally's three attributes. It never throws, and returns little: others may send to the queue, and a letter of theirs must not
 * hide the rest. Whatever Tally would not write is left out.
 */
export function letterNotes(attributes: Attributes): LetterNotes {
  const fault = foreignText.parse(attributes[FAULT]?.stringValue);
  const reason = attributes[REASON]?.stringValue?.slice(0, TEXT_LENGTH_MAX);
  const context = contextOf(attributes[CONTEXT]?.stringValue);
  return { ...(fault !== undefined && { fault }), ...(reason !== undefined && { reason }), ...(context !== undefined && { context }) };
}

function contextOf(json: string | undefined): LetterNotesContext | undefined {
  if (json === undefined || json.length > CONTEXT_LENGTH_MAX) return undefined;
  try {
    return foreignContextSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}

function text(stringValue: string): Attribute {
  return { dataType: 'String', stringValue };
}

/** Whether Tally sent the letter, and so has already stored its gap. A sender who forges the attribute hides only that sender's own message. */
export function isTallys(attributes: Attributes): boolean {
  return attributes[FAULT] !== undefined;
}

const WORD = /[\w.-]+/g;

/**
 * Which of these buckets the body names, in time proportional to its length. The body is not parsed, because that may crash the process.
 * In every envelope except base64 a name stays a separate word; a body with base64 counts as naming none.
 */
export function bucketsNamedIn(body: string, buckets: ReadonlySet<string>): readonly string[] {
  if (body.includes('data_base64')) return [];
  const named = new Set<string>();
  for (const [word] of body.matchAll(WORD)) if (buckets.has(word)) named.add(word);
  return [...named];
}

function attributesSizeBytes(attributes: Attributes): number {
  return Object.entries(attributes)
    .map(
      ([name, { dataType, stringValue, binaryValue }]) =>
        Buffer.byteLength(name) + Buffer.byteLength(dataType) + Buffer.byteLength(stringValue ?? '') + (binaryValue?.byteLength ?? 0),
    )
    .reduce((sum, sizeBytes) => sum + sizeBytes, 0);
}
