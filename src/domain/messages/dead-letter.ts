/** Dead letters: the original body, untouched, and what Tally knows about why in three message attributes. */
import { z } from 'zod';
import type { Fault } from '../fault.ts';

/** One SQS message attribute. */
interface Attribute {
  readonly dataType: string;
  readonly stringValue?: string;
  readonly binaryValue?: Uint8Array;
}
type Attributes = Readonly<Record<string, Attribute>>;

/** SQS takes ten attributes a message. */
const ATTRIBUTES_MAX = 10;
/** SQS: body and attributes (names, types and values) of a message together. */
const MESSAGE_BYTES_MAX = 1_048_576;
/** Enough for a sentence; the log and the state record hold no more either. */
const REASON_BYTES_MAX = 256;

const FAULT = 'tally-fault';
const REASON = 'tally-reason';
const CONTEXT = 'tally-context';
const OURS: ReadonlySet<string> = new Set([FAULT, REASON, CONTEXT]);

/** What Tally knew of a message when it gave it up. */
const letterContextSchema = z.object({
  /** The URL of the queue that it was received from. */
  queue: z.string(),
  messageId: z.string(),
  /** ISO 8601. */
  firstReceived: z.string(),
  /** The positions, from 0, of the records that failed; empty when the body as a whole did. */
  records: z.array(z.number()),
});
type LetterContext = z.infer<typeof letterContextSchema>;

/** What is kept apart of a letter that had no room for its attributes, by the letter's own MessageId. */
export const deadLetterRecordSchema = z.object({
  messageId: z.string(),
  fault: z.string(),
  reason: z.string(),
  context: letterContextSchema,
});
export type DeadLetterRecord = z.infer<typeof deadLetterRecordSchema>;

export interface LetterFacts {
  readonly body: string;
  /** The message's own attributes, as received. */
  readonly attributes: Attributes;
  readonly fault: Fault;
  readonly context: LetterContext;
}

/**
 * The attributes that a letter carries: the message's own (as many as ten leave room for, by name) and Tally's three.
 * Undefined when body and attributes together would exceed 1 MiB: then the body must go alone.
 */
export function deadLetterAttributes(facts: LetterFacts): Attributes | undefined {
  const own = Object.entries(ownAttributes(facts.attributes)).sort(([a], [b]) => (a < b ? -1 : 1));
  const attributes = {
    ...Object.fromEntries(own.slice(0, ATTRIBUTES_MAX - OURS.size)),
    [FAULT]: text(facts.fault.code),
    [REASON]: text(letterReason(facts.fault)),
    [CONTEXT]: text(JSON.stringify(facts.context)),
  };
  return Buffer.byteLength(facts.body) + attributesSizeBytes(attributes) > MESSAGE_BYTES_MAX ? undefined : attributes;
}

/** A fault's reason as a letter carries it: printable ASCII, at most 256 bytes, never empty (SQS refuses an empty value). */
export function letterReason(fault: Fault): string {
  const printable = fault.reason.replaceAll(/[^\x20-\x7e]/gu, '?').slice(0, REASON_BYTES_MAX);
  return printable.trim() === '' ? fault.code : printable;
}

/** A message's attributes without Tally's: what travels back when a letter is replayed. */
export function ownAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => !OURS.has(name)));
}

/** What a letter's attributes say; all absent for a letter that SQS itself moved, or whose body went alone. */
export interface LetterNotes {
  readonly fault?: string;
  readonly reason?: string;
  readonly context?: Readonly<Record<string, unknown>>;
}

/** Reads the three attributes. Total: anybody may write to the queue, so what is not as ours is left out. */
export function letterNotes(attributes: Attributes): LetterNotes {
  const fault = attributes[FAULT]?.stringValue;
  const reason = attributes[REASON]?.stringValue;
  const context = contextOf(attributes[CONTEXT]?.stringValue);
  return { ...(fault !== undefined && { fault }), ...(reason !== undefined && { reason }), ...(context !== undefined && { context }) };
}

const anyContext = z.record(z.string(), z.unknown());

function contextOf(json: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (json === undefined) return undefined;
  try {
    return anyContext.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}

function text(stringValue: string): Attribute {
  return { dataType: 'String', stringValue };
}

function attributesSizeBytes(attributes: Attributes): number {
  return Object.entries(attributes)
    .map(
      ([name, { dataType, stringValue, binaryValue }]) =>
        Buffer.byteLength(name) + Buffer.byteLength(dataType) + Buffer.byteLength(stringValue ?? '') + (binaryValue?.byteLength ?? 0),
    )
    .reduce((sum, sizeBytes) => sum + sizeBytes, 0);
}
