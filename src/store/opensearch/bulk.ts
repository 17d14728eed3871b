/**
 * Writes documents by bulk requests: builds their lines, sends them, and reads the answer to each item. One action that
 * OpenSearch cannot parse makes a whole request fail, so such an action must not be built here: ids come from documentId(), the
 * lines are serialised here, and a clock that is not a valid version is refused before it is sent.
 */
import { z } from 'zod';
import { documentId, searchFieldsOf } from '../../ordering/document.ts';
import { cachingLatest } from '../../base/latest.ts';
import type { Clock } from '../../process/clock.ts';
import { FaultError, type FaultCode } from '../../base/fault.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../store.ts';
import type { OpenSearchClient } from './client.ts';
import { itemFault, parseAnswer, requestFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './setup.ts';
import { wildcardText } from './search.ts';

interface BulkWriteDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Creates the write of documents, as the port describes it. */
export function createBulkWrite({ client, names, clock }: BulkWriteDependencies): ObjectIndex['write'] {
  const judgeRejections = createRejectionJudge(clock);

  return async function writeDocuments(writes, signal) {
    signal?.throwIfAborted();
    const prepared = writes.map((write) => bulkAction(write, names));
    const actions = prepared.filter((action) => 'write' in action);
    const sentNow = await sendActions(client, actions, signal);
    await noteNeverHeld(client, sentNow.created, signal);
    const answers = judgeRejections(actions, sentNow.answers);
    if (actions.length === writes.length) return answers;
    const sent = answers.values();
    return prepared.map((action) => ('write' in action ? (sent.next().value ?? unanswered) : action));
  };
}

const unanswered = faultAnswer('internal.unexpected', 'the answer contains no result for this write');

function faultAnswer(code: FaultCode, reason: string): IndexWriteAnswer & { readonly kind: 'fault' } {
  return { kind: 'fault', fault: { code, reason } };
}

const QUERY = {
  require_alias: true,
  /** An index without its primary shard delays the answer by at most this time. */
  timeout: '5s',
  filter_path: 'items.*.status,items.*.result,items.*.error.type,items.*.error.reason',
};

interface Sent {
  readonly answers: readonly IndexWriteAnswer[];
  /** The tombstones for whose keys the index held nothing. */
  readonly created: readonly BulkAction[];
}

/**
 * Marks tombstones whose keys the index never held, so that the feed leaves them out. That takes a second write, since only the answer
 * to the first one tells, and OpenSearch has no condition beside an external version. So it is made only of exact events' tombstones:
 * an observation's clock may be that of another one in the same second, whose document the note would replace. A second tombstone
 * of such a key is not told apart, and neither is one whose note fails: followers then delete what they don't have.
 */
async function noteNeverHeld(client: OpenSearchClient, tombstones: readonly BulkAction[], signal?: AbortSignal): Promise<void> {
  if (tombstones.length === 0) return;
  const lines = tombstones.map((action) => linesOf({ ...action, neverHeld: true })).join('');
  await client.send({ method: 'POST', path: '/_bulk', query: QUERY, lines }, signal).catch(() => undefined);
}

/** Sends actions as one request. */
async function sendActions(client: OpenSearchClient, actions: readonly BulkAction[], signal?: AbortSignal): Promise<Sent> {
  if (actions.length === 0) return NOTHING_SENT;
  const lines = actions.map(linesOf).join('');
  // a repeat at the same clock is accepted, or answered `equal` with the content that is stored
  const answer = await client.send({ method: 'POST', path: '/_bulk', repeatable: true, query: QUERY, lines }, signal);
  if (answer.status === 200) return { answers: bulkVerdicts(actions, answer.body), created: createdTombstones(actions, answer.body) };
  const fault = requestFault(answer);
  // too large for the server, or it cannot parse the request, which should be impossible
  const isRefused = answer.status === 413 || answer.status === 400;
  if (!isRefused) throw fault;
  if (actions.length > 1) throw new FaultError('index.rejected', fault.reason);
  const isTooLarge = answer.status === 413;
  const refused = isTooLarge
    ? faultAnswer('index.rejected', '413: the document is larger than the server accepts')
    : faultAnswer('internal.unexpected', fault.reason);
  return { answers: [refused], created: [] };
}

// ── the lines of a request, and the answer to each item ────────────────────────────────────────────────────────────

/** A write that can be sent. Its lines are built when it is sent, so that they are not kept in memory until the answer. */
export interface BulkAction {
  readonly write: IndexWrite;
  readonly alias: string;
  readonly id: string;
  /** For a tombstone: the index held nothing under the key. */
  readonly neverHeld?: true;
}

const NOTHING_SENT: Sent = { answers: [], created: [] };

/** The action of a write, or the fault if the write cannot be sent. */
export function bulkAction(write: IndexWrite, names: IndexNames): BulkAction | (IndexWriteAnswer & { readonly kind: 'fault' }) {
  const { document } = write;
  if (!Number.isSafeInteger(document.clock) || document.clock < 0) {
    return faultAnswer('index.rejected', `clock ${document.clock} is not a whole number of microseconds`);
  }
  return { write, alias: names.objectsAlias(document.bucket), id: documentId(document.key) };
}

/** The action line and the document line of an action, each with a newline. */
export function linesOf({ write: { document, equalClock }, alias, id, neverHeld }: BulkAction): string {
  const action = `${actionBegin(alias)}${JSON.stringify(id)}${actionEnds[neverHeld === true ? 'accept' : equalClock](document.clock)}`;
  // a copy of the document with its search fields would cost as much as the rest of the line
  const fields = searchFieldsOf(document);
  const known = neverHeld === true ? { ...fields, never_held: true } : fields;
  const searched = known.folded.includes('\0') ? { ...known, folded: wildcardText(known.folded) } : known;
  return `${action}\n${JSON.stringify(document).slice(0, -1)},${JSON.stringify(searched).slice(1)}\n`;
}

/** The parts of an action line around its id. Consecutive documents often share them: those of one listing page have one clock. */
const actionBegin = cachingLatest((alias: string) => `{"index":{"_index":"${alias}","_id":`);
const actionEnds = {
  accept: cachingLatest((clock: number) => `,"version":${clock},"version_type":"external_gte"}}`),
  refuse: cachingLatest((clock: number) => `,"version":${clock},"version_type":"external"}}`),
} satisfies Record<IndexWrite['equalClock'], unknown>;

const itemSchema = z.object({
  index: z.object({ status: z.number(), result: z.string().optional(), error: storeErrorSchema.optional() }),
});
const answerSchema = z.object({ items: z.array(itemSchema) });

/** Reads the answer (HTTP 200) to a request with these actions, in their order. Throws `index.unreachable` if it has an unexpected shape. */
export function bulkVerdicts(actions: readonly BulkAction[], body: unknown): readonly IndexWriteAnswer[] {
  // checking the schema takes as long as parsing the JSON
  if (sayWritten(body, actions.length)) return actions.map(() => WRITTEN);
  const { items } = parseAnswer(answerSchema, body);
  if (items.length !== actions.length) parseAnswer(z.array(z.unknown()).length(actions.length), items);
  return items.map((item, at) => verdictOf(actions[at], item));
}

function verdictOf(action: BulkAction | undefined, { index: { status, result, error } }: z.infer<typeof itemSchema>): IndexWriteAnswer {
  // a pipeline with a drop processor answers 200 with the result `noop`, without any error
  if (result === 'created' || result === 'updated') return WRITTEN;
  if (action !== undefined && error?.type === 'version_conflict_engine_exception') return conflictVerdict(action.write, error.reason ?? '');
  return { kind: 'fault', fault: itemFault(status, error ?? { type: `result ${result ?? 'missing'}`, reason: 'the write had no effect' }) };
}

const WRITTEN: IndexWriteAnswer = { kind: 'written' };

function createdTombstones(actions: readonly BulkAction[], body: unknown): readonly BulkAction[] {
  const isExactDelete = ({ write: { document, equalClock } }: BulkAction): boolean => document.deleted && equalClock === 'refuse';
  // few requests have any
  if (!actions.some(isExactDelete)) return [];
  const { items } = parseAnswer(answerSchema, body);
  const isAlone = ({ alias, id }: BulkAction): boolean => actions.filter((other) => other.alias === alias && other.id === id).length === 1;
  // what the request writes of the key afterwards may have the same clock
  return actions.filter((action, at) => isExactDelete(action) && items[at]?.index.result === 'created' && isAlone(action));
}

/** Whether the answer has this many items and each was written, as in almost all answers. Any other answer is checked by the schema. */
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

function conflictVerdict({ document, equalClock }: IndexWrite, reason: string): IndexWriteAnswer {
  // external_gte refuses lower clocks only
  if (equalClock === 'accept') return { kind: 'superseded' };
  const current = CURRENT_VERSION.exec(reason)?.[1];
  // where the reason does not tell, the writer reads what is stored
  return { kind: current === undefined || Number(current) === document.clock ? 'equal' : 'superseded' };
}

// ── whether a refused document is at fault, or its index ───────────────────────────────────────────────────────────

/** How long an accepted document shows that its index accepts documents. */
const ACCEPTING_MS = 60_000;
/** Documents that may be refused in a row while the index counts as accepting: after a change for the worse no more than these are dead-lettered. */
const REFUSED_IN_A_ROW_MAX = 3;

/**
 * Creates the judge of the verdicts of each request. A pipeline or a foreign mapping can make an index refuse every document
 * with the errors of a bad document, so an error about a document counts only while its index accepts others. It turns `index.rejected` into `bucket.index-misconfigured` where
 * nothing shows that the index accepts other documents: none in this request, and none within a minute or more than three
 * refused since. It remembers one entry per index.
 */
export function createRejectionJudge(clock: Pick<Clock, 'monotonicMs'>) {
  const witnesses = new Map<string, { acceptedAtMs: number; refusedSince: number }>();

  function isAccepting(alias: string, nowMs: number): boolean {
    const witness = witnesses.get(alias);
    if (witness === undefined || nowMs - witness.acceptedAtMs >= ACCEPTING_MS) return false;
    return witness.refusedSince <= REFUSED_IN_A_ROW_MAX;
  }

  return function judge(actions: readonly BulkAction[], verdicts: readonly IndexWriteAnswer[]): readonly IndexWriteAnswer[] {
    const nowMs = clock.monotonicMs();
    const acceptedIn = acceptedAliases(actions, verdicts);
    for (const alias of acceptedIn) witnesses.set(alias, { acceptedAtMs: nowMs, refusedSince: 0 });
    if (!verdicts.some(isRejection)) return verdicts;
    return verdicts.map((verdict, at) => {
      const alias = actions[at]?.alias ?? '';
      if (!isRejection(verdict) || acceptedIn.has(alias)) return verdict;
      const witness = witnesses.get(alias);
      if (witness !== undefined) witness.refusedSince += 1;
      return isAccepting(alias, nowMs) ? verdict : faultAnswer('bucket.index-misconfigured', verdict.fault.reason);
    });
  };
}

/** A loop, because almost all requests concern one index, and this runs for each document. */
function acceptedAliases(actions: readonly BulkAction[], verdicts: readonly IndexWriteAnswer[]): ReadonlySet<string> {
  const aliases = new Set<string>();
  let last: string | undefined;
  for (const [at, { alias }] of actions.entries()) {
    if (alias === last || verdicts[at]?.kind !== 'written') continue;
    aliases.add(alias);
    last = alias;
  }
  return aliases;
}

function isRejection(answer: IndexWriteAnswer): answer is Extract<IndexWriteAnswer, { readonly kind: 'fault' }> {
  return answer.kind === 'fault' && answer.fault.code === 'index.rejected';
}
