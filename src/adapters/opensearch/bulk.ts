/**
 * Bulk requests of documents: their lines, and what each item's answer means. One action that OpenSearch cannot parse
 * fails a whole request, so such an action cannot be built here: ids come from documentId(), the lines are serialised
 * by us, and a clock that is no version is refused before it is sent.
 */
import { z } from 'zod';
import { documentId, documentWords } from '../../domain/documents/document.ts';
import type { IndexWrite, IndexWriteAnswer } from '../../pipeline/ports/object-index.ts';
import { itemFault, parseAnswer, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';

/** A write that can be sent. Its lines are made when it is, so that none is kept until the answer. */
export interface BulkAction {
  readonly write: IndexWrite;
  readonly alias: string;
  readonly id: string;
}

/** `undecided`: refused for its clock, and the answer does not say whether the stored one is equal or higher. */
export type BulkVerdict = IndexWriteAnswer | { readonly kind: 'undecided' };

/** The action of a write, or why it cannot be one. */
export function bulkAction(write: IndexWrite, names: IndexNames): BulkAction | (IndexWriteAnswer & { readonly kind: 'fault' }) {
  const { document } = write;
  if (!Number.isSafeInteger(document.clock) || document.clock < 0) {
    return { kind: 'fault', code: 'index.rejected', reason: `clock ${document.clock} is not a whole number of microseconds` };
  }
  return { write, alias: names.objectsAlias(document.bucket), id: documentId(document.key) };
}

/** Its action line and its document line, each with its newline. */
export function linesOf({ write: { document, equalClock }, alias, id }: BulkAction): string {
  const versionType = equalClock === 'accept' ? 'external_gte' : 'external';
  const action = `{"index":{"_index":"${alias}","_id":${JSON.stringify(id)},"version":${document.clock},"version_type":"${versionType}"}}`;
  return `${action}\n${JSON.stringify({ ...document, words: documentWords(document) })}\n`;
}

const answerSchema = z.object({ errors: z.boolean(), items: z.array(z.unknown()) });
const itemSchema = z.object({ index: z.object({ status: z.number(), error: storeErrorSchema.optional() }) });

/** Reads the answer (HTTP 200) to a request of these actions, in order. Throws `index.unreachable` when it is not one. */
export function bulkVerdicts(actions: readonly BulkAction[], body: unknown): readonly BulkVerdict[] {
  const { errors, items } = parseAnswer(answerSchema, body);
  if (items.length !== actions.length) parseAnswer(z.array(z.unknown()).length(actions.length), items);
  // the usual answer: nothing to look at a thousand times
  if (!errors) return actions.map(() => ({ kind: 'written' }));
  return actions.map(({ write }, at) => verdictOf(write, items[at]));
}

function verdictOf(write: IndexWrite, item: unknown): BulkVerdict {
  const { status, error } = parseAnswer(itemSchema, item).index;
  if (error === undefined && status < 300) return { kind: 'written' };
  if (error?.type === 'version_conflict_engine_exception') return conflictVerdict(write, error.reason ?? '');
  return { kind: 'fault', ...itemFault(status, error ?? { type: 'no_error' }) };
}

/** Read from the end: the reason begins with the id, and a key may say anything. */
const CURRENT_VERSION = /current version \[(\d+)\] is higher (?:or equal to|than) the one provided \[\d+\]$/;

function conflictVerdict({ document, equalClock }: IndexWrite, reason: string): BulkVerdict {
  // external_gte refuses lower clocks only
  if (equalClock === 'accept') return { kind: 'stale' };
  const current = CURRENT_VERSION.exec(reason)?.[1];
  return current === undefined ? { kind: 'undecided' } : clockVerdict(Number(current), document.clock);
}

/** What a refusal means when the store holds `stored`. */
export function clockVerdict(stored: number, clock: number): IndexWriteAnswer {
  return { kind: stored === clock ? 'equal' : 'stale' };
}
