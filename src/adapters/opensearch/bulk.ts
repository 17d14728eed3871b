/**
 * Builds the lines of bulk requests of documents, and reads the answer to each item. One action that OpenSearch cannot
 * parse makes a whole request fail, so such an action must not be built here: ids come from documentId(), the lines are
 * serialised here, and a clock that is not a valid version is refused before it is sent.
 */
import { z } from 'zod';
import { documentId, searchFieldsOf } from '../../domain/documents/document.ts';
import { cachingLatest } from '../../domain/latest.ts';
import type { IndexWrite, IndexWriteAnswer } from '../../pipeline/ports/object-index.ts';
import { itemFault, parseAnswer, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';

/** A write that can be sent. Its lines are built when it is sent, so that they are not kept in memory until the answer. */
export interface BulkAction {
  readonly write: IndexWrite;
  readonly alias: string;
  readonly id: string;
}

/** `undecided`: the write was refused because of its clock, and the answer does not show whether the stored clock is equal or higher. */
export type BulkVerdict = IndexWriteAnswer | { readonly kind: 'undecided' };

/** The action of a write, or the fault if the write cannot be sent. */
export function bulkAction(write: IndexWrite, names: IndexNames): BulkAction | (IndexWriteAnswer & { readonly kind: 'fault' }) {
  const { document } = write;
  if (!Number.isSafeInteger(document.clock) || document.clock < 0) {
    return { kind: 'fault', code: 'index.rejected', reason: `clock ${document.clock} is not a whole number of microseconds` };
  }
  return { write, alias: names.objectsAlias(document.bucket), id: documentId(document.key) };
}

/** The action line and the document line of an action, each with a newline. */
export function linesOf({ write: { document, equalClock }, alias, id }: BulkAction): string {
  const action = `${actionBegin(alias)}${JSON.stringify(id)}${actionEnds[equalClock](document.clock)}`;
  // a copy of the document with its search fields would cost as much as the rest of the line
  return `${action}\n${JSON.stringify(document).slice(0, -1)},${JSON.stringify(searchFieldsOf(document)).slice(1)}\n`;
}

/** The parts of an action line around its id. Many documents in a row have the same: those of one page of a listing have one clock. */
const actionBegin = cachingLatest((alias: string) => `{"index":{"_index":"${alias}","_id":`);
const actionEnds = {
  accept: cachingLatest((clock: number) => `,"version":${clock},"version_type":"external_gte"}}`),
  refuse: cachingLatest((clock: number) => `,"version":${clock},"version_type":"external"}}`),
} satisfies Record<IndexWrite['equalClock'], unknown>;

/** What {@link bulkVerdicts} reads of an answer. */
export const BULK_FILTER = 'items.*.status,items.*.result,items.*.error.type,items.*.error.reason';

const itemSchema = z.object({
  index: z.object({ status: z.number(), result: z.string().optional(), error: storeErrorSchema.optional() }),
});
const answerSchema = z.object({ items: z.array(itemSchema) });

/** Reads the answer (HTTP 200) to a request with these actions, in their order. Throws `index.unreachable` if it has an unexpected shape. */
export function bulkVerdicts(actions: readonly BulkAction[], body: unknown): readonly BulkVerdict[] {
  // the schema takes as long as reading the JSON
  if (sayWritten(body, actions.length)) return actions.map(() => WRITTEN);
  const { items } = parseAnswer(answerSchema, body);
  if (items.length !== actions.length) parseAnswer(z.array(z.unknown()).length(actions.length), items);
  return items.map((item, at) => verdictOf(actions[at], item));
}

function verdictOf(action: BulkAction | undefined, { index: { status, result, error } }: z.infer<typeof itemSchema>): BulkVerdict {
  // a pipeline with a drop processor answers 200 with the result `noop`, without any error
  if (result === 'created' || result === 'updated') return WRITTEN;
  if (action !== undefined && error?.type === 'version_conflict_engine_exception') return conflictVerdict(action.write, error.reason ?? '');
  return { kind: 'fault', ...itemFault(status, error ?? { type: `result ${result ?? 'missing'}`, reason: 'the write had no effect' }) };
}

const WRITTEN: BulkVerdict = { kind: 'written' };

/** Whether the answer has this many items, and each says that its document was written, as almost all do. Any other answer passes the schema. */
function sayWritten(body: unknown, count: number): boolean {
  if (!isRecord(body) || !Array.isArray(body['items']) || body['items'].length !== count) return false;
  return body['items'].every((item: unknown) => isRecord(item) && isWritten(item['index']));
}

function isWritten(index: unknown): boolean {
  return isRecord(index) && typeof index['status'] === 'number' && (index['result'] === 'created' || index['result'] === 'updated');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Matches the end of the reason, because it begins with the id, and a key can contain any text. */
const CURRENT_VERSION = /current version \[(\d+)\] is higher (?:or equal to|than) the one provided \[\d+\]$/;

function conflictVerdict({ document, equalClock }: IndexWrite, reason: string): BulkVerdict {
  // external_gte refuses lower clocks only
  if (equalClock === 'accept') return { kind: 'superseded' };
  const current = CURRENT_VERSION.exec(reason)?.[1];
  return current === undefined ? { kind: 'undecided' } : clockVerdict(Number(current), document.clock);
}

/** The answer to a refused write of `clock` if the store contains the clock `stored`. */
export function clockVerdict(stored: number, clock: number): IndexWriteAnswer {
  return { kind: stored === clock ? 'equal' : 'superseded' };
}
