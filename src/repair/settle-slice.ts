/**
 * Settles the compared keys of one slice:
 *
 *   missing, not enriched ──────────────────────► listing write, unread
 *   stored documents read (realtime) ─► agree │ listing write │ HEAD ─► agrees │ tombstone (reserved) or live write
 *     ▲                                              │                                      │
 *     └───── refused: the store holds something newer, or the same clock ◄──────────────────┘
 *
 * A report reads and sends HEADs, but writes nothing. A provisional write stores `settled: false`, and the sweep of unsettled documents
 * checks it again, so nothing need be remembered here.
 */
import type { ObjectDocument, PresentState, ObjectState } from '../ordering/document.ts';
import { FaultError, jobAnswerOf, type Fault, type FaultCode } from '../base/fault.ts';
import { compareStored, type ComparedKey, type Comparison } from '../ordering/agreement.ts';
import type { DifferenceKind } from '../records/comparison.ts';
import { clockOfListing, decideListed, decideSeen, rewrittenDocument, withListedClass, type ListedDecision } from './decide.rules.ts';
import type { ObservedWrite } from '../ordering/observation.ts';
import type { WriteRequest } from '../observing/bulk-writer.ts';
import type { WriteAnswer, ObjectIndex } from '../store/store.ts';
import type { Clock } from '../process/clock.ts';
import type { QuestionProof } from './question-proof.ts';
import type { WriteAll } from './background-writer.ts';
import {
  fillsEnrichment,
  fillsIn,
  lackingOf,
  needOfTags,
  readsTags,
  writesFromHead,
  type Head,
  type HeadAnswer,
  type Wishes,
} from './heads.ts';

/** How one compared key ended. */
export interface Ending {
  readonly key: string;
  /** `gone`: neither side has the key any more. */
  readonly kind: DifferenceKind | 'equal' | 'gone';
  readonly fields: readonly string[];
  /** Whether the bucket's listing has the key. */
  readonly isListed: boolean;
  /** What the document lacks of its bucket's enrichment. */
  readonly unenriched?: readonly string[];
  /** When the missing or outdated object was changed, if it shows that. */
  readonly changedAtMs?: number;
  /** `held`: the deletion limit does not allow the tombstone. `refused`: the index will never take the document. */
  readonly effect?: 'document' | 'tombstone' | 'held' | 'refused';
  /** Why the index refused the document. */
  readonly reason?: string;
}

/** How its keys ended. `expired`: answers became too old to be written (rule 9), so that the page must be listed again. */
export type SliceEnd = readonly Ending[] | 'expired';

/** A key whose HEAD S3 refuses. */
export interface DeniedKey {
  readonly key: string;
  readonly fault: Fault;
}

/** Resolves with whether the job goes on without these keys of a slice. Throws the store's fault. */
export type LeaveKeys = (denied: readonly DeniedKey[]) => Promise<boolean>;

export interface SliceWork extends Wishes {
  /** In key order. */
  readonly comparedKeys: readonly ComparedKey[];
  /** The time of the listing page (D). */
  readonly observedAtMs: number;
  readonly expiresAtMs: number;
  /** Whether missing objects may be written without reading what is stored: not if this turn or the last may have just written them, so that they do not count twice. */
  readonly writesUnread: boolean;
  readonly tombstones: Tombstones;
  readonly leave: LeaveKeys;
  /** Called for each HEAD. */
  readonly headRequested: () => void;
  /** Called with endings as soon as the store has accepted their writes, whatever happens to the slice. */
  readonly written: (endings: readonly Ending[]) => void;
}

/** The job's allowance of tombstones. */
export interface Tombstones {
  /** Resolves with how many of `count` tombstones may be written; the deletion limit holds the others back. Throws if the job is not comparing, and the store's fault. */
  reserve(count: number): Promise<number>;
  /** Takes back tombstones that were granted but not written. */
  giveBack(count: number): void;
  /** Whether the deletion limit is used up, so that it holds all further tombstones back. */
  isUsedUp(): boolean;
}

export type SettleSlice = (work: SliceWork, signal: AbortSignal) => Promise<SliceEnd>;

/**
 * If a key's write is refused in this many rounds, the live path is writing the key right now, each time with something newer than was
 * last read here. The key counts as in flight, and is left to the live path.
 */
const ROUNDS_MAX = 5;

/**
 * How long a report waits for events that are still on their way, once for each slice with a difference. Events usually arrive within
 * seconds. No field shows how old a difference is: a delete leaves no time, a multipart upload's LastModified is that of its beginning,
 * and a version that becomes current again keeps its old one.
 */
const LIVE_LAG_MS = 5_000;

/** A write that a compared key requires, and how the key ends if the store accepts it. */
interface PlannedWrite {
  readonly comparedKey: ComparedKey;
  readonly ending: Ending;
  readonly request: WriteRequest;
}

/** The writes that the job's deletion limit allows. */
interface Allowed {
  readonly planned: readonly PlannedWrite[];
  readonly held: readonly Ending[];
}

/** What a compared key requires: nothing more, or a write. `denied`: only a HEAD could tell, and S3 refuses it. */
type Plan = { readonly end: Ending } | { readonly write: PlannedWrite } | Denial;

interface Denial {
  readonly denied: Fault;
  readonly comparedKey: ComparedKey;
}

/** A compared key about which a HEAD decides. `found`: what the listing alone showed. `agreed`: how it ends if the tags agree too. */
interface HeadPlan {
  readonly head: ReadFinding;
  readonly found?: Ending;
  readonly agreed?: Ending;
}

type Agreeing = Extract<ListedDecision, { readonly kind: 'equal' | 'incomplete' }>;

/** Creates the function that settles slices. It throws the first fault that keeps a compared key from ending. */
export function createSettleSlice({
  objects,
  writeAll,
  head,
  clock,
  questionProof = () => undefined,
}: {
  readonly objects: ObjectIndex;
  readonly writeAll: WriteAll;
  readonly head: Head;
  readonly clock: Clock;
  readonly questionProof?: QuestionProof | undefined;
}): SettleSlice {
  return async function settleSlice(work, signal) {
    const endings = work.comparedKeys.filter((comparedKey) => !needsPlan(comparedKey, work)).map(endingAsFound);
    let open: readonly ComparedKey[] = work.comparedKeys.filter((comparedKey) => needsPlan(comparedKey, work));
    let isExpired = false;
    for (let round = 1; open.length > 0 && round <= ROUNDS_MAX; round += 1) {
      // refused keys are always read
      const current = round === 1 ? work : { ...work, writesUnread: false };
      const plans = work.mode === 'report' ? await patientPlansOf(open, current, signal) : await plansOf(open, current, signal);
      const { planned, ended, denied } = sorted(plans);
      const refusal = await refusalOf(denied, work);
      const allowed = await allowedOf(planned, work);
      const answered = await write(allowed.planned, work, signal);
      if (answered.isListingExpired) return 'expired';
      // not before the others are written, because they would be kept from it again and again
      if (refusal !== undefined) throw refusal;
      endings.push(...allowed.held, ...ended, ...answered.endings, ...denied.map(({ comparedKey }) => endingAsFound(comparedKey)));
      open = answered.refused;
      isExpired = answered.isHeadExpired;
    }
    if (open.length > 0 && isExpired) return 'expired';
    endings.push(...open.map((comparedKey) => endingOf(comparedKey, 'in_flight')));
    for (const atMs of changesIn(endings)) questionProof(work.bucket, atMs);
    return endings;
  };

  /** Plans each compared key, in order, by its stored document, without HEADs. Keys that may be written unread are not read. */
  async function firstPlansOf(
    comparedKeys: readonly ComparedKey[],
    work: SliceWork,
    signal: AbortSignal,
  ): Promise<readonly (Plan | HeadPlan)[]> {
    const keys = comparedKeys.filter((comparedKey) => !isUnread(comparedKey, work)).map(({ key }) => key);
    const documents = keys.length === 0 ? [] : await objects.getMany(work.bucket.bucket, keys, signal);
    const stored = documents.values();
    return comparedKeys.map((comparedKey) =>
      isUnread(comparedKey, work) ? planUnread(comparedKey, work) : planOf({ comparedKey, stored: stored.next().value }, work),
    );
  }

  /** Plans each compared key by its stored document, and by a HEAD where needed. */
  async function plansOf(comparedKeys: readonly ComparedKey[], work: SliceWork, signal: AbortSignal): Promise<readonly Plan[]> {
    const plans = await firstPlansOf(comparedKeys, work, signal);
    // only for keys that need a HEAD, because a promise for each compared key would cost more than its plan
    const heads = await Promise.all(plans.filter((plan) => 'head' in plan).map((plan) => planByHead(plan, work, signal)));
    return plans.map((plan) => ('head' in plan ? heads.shift() : plan)).filter((plan) => plan !== undefined);
  }

  /** Plans of a report. A recent change is not drift while its event may still be on its way, so every difference is read twice. */
  async function patientPlansOf(comparedKeys: readonly ComparedKey[], work: SliceWork, signal: AbortSignal): Promise<readonly Plan[]> {
    const plans = await firstPlansOf(comparedKeys, work, signal);
    const differing = comparedKeys.filter((_, index) => isDrift(plans[index]));
    if (differing.length > 0) await clock.sleep(LIVE_LAG_MS, signal);
    const again = [...(await plansOf(differing, work, signal))];
    return plans.flatMap((plan) => {
      const last = isDrift(plan) ? again.shift() : plan;
      return last === undefined || 'head' in last ? [] : [last];
    });
  }

  function planOf(at: ReadFinding, work: SliceWork): Plan | HeadPlan {
    const { comparedKey, stored } = at;
    const decision = decideListed(comparedKey.state, stored, clockOfListing(work.observedAtMs));
    switch (decision.kind) {
      case 'gone':
        return { end: endingOf(comparedKey, 'gone') };
      case 'equal':
      case 'incomplete':
        return planAgreeing(at, decision, work);
      case 'missing':
      case 'stale': {
        const ending = endingOf(comparedKey, decision.kind, decision.fields);
        return writesFromHead(work) ? { head: at, found: ending } : planByListing(at, work, { ending });
      }
      case 'phantom':
        // a HEAD would be pointless, and there may be millions of phantoms
        return work.mode === 'apply' && work.tombstones.isUsedUp()
          ? { end: { ...endingOf(comparedKey, 'phantom'), effect: 'held' } }
          : { head: at };
      case 'in_flight':
        return work.mode === 'report' ? { end: endingOf(comparedKey, 'in_flight', decision.fields) } : { head: at };
    }
  }

  function planAgreeing(at: ReadFinding, { kind, fields, isInexact, isNewer }: Agreeing, work: SliceWork): Plan | HeadPlan {
    const unenriched = lackingOf(work, at.stored);
    const ending = { ...endingOf(at.comparedKey, kind, fields), ...(unenriched.length > 0 && { unenriched }) };
    if (readsTags(work) || (fillsEnrichment(work) && unenriched.length > 0)) return { head: at, agreed: ending };
    const isWanted = isInexact || (work.fill && kind === 'incomplete');
    return isWanted && !isNewer ? planByListing(at, work, { ending }) : { end: ending };
  }

  /**
   * The write of an object for which the scan shows no document. The store accepts it over a tombstone, or a document written since the
   * scan, only if that has a lower clock (rule 6). An equal or higher clock refuses it, and the key is then read.
   */
  function planUnread(comparedKey: ComparedKey, work: SliceWork): Plan {
    return planByListing({ comparedKey, stored: undefined }, work, { ending: endingOf(comparedKey, 'missing'), equalClock: 'refuse' });
  }

  function planByListing(read: ReadFinding, work: SliceWork, { ending, equalClock = 'accept' }: ListedWish): Plan {
    const { state } = read.comparedKey;
    return work.mode === 'report' || state === undefined
      ? { end: ending }
      : { write: writeOfListing(read, { work, state, ending, equalClock, nowMs: clock.nowMs() }) };
  }

  /** Confirms a phantom, or reads an object whose document is at least as new as the listing or contains more than a listing does. */
  async function planByHead({ head: read, found, agreed }: HeadPlan, work: SliceWork, signal: AbortSignal): Promise<Plan> {
    const { comparedKey, stored } = read;
    const request = { bucket: work.bucket, key: comparedKey.key, tags: needOfTags(work), onRequest: work.headRequested };
    const answer = await answerOrDenial(head(request, signal));
    if ('denied' in answer) return { ...answer, comparedKey };
    const seen = withListedClass(answer, comparedKey.state);
    const isFilled = fillsIn(work, seen.state, stored);
    const ofTags = tagsEnding(comparedKey, compareStored(seen.state, stored), { work, isFilled });
    const decision = decideSeen(seen.state, stored, seen.observedAtMs, ofTags !== undefined || isFilled);
    if (decision.kind === 'agrees') return { end: agreedEnding(read, seen.state, { agreed, work }) };
    const ending = found ?? ofTags ?? (isFilled ? agreed : undefined) ?? endingOfSeen(comparedKey, seen.state);
    if (work.mode === 'report') return { end: ending };
    return { write: writeOfHead(read, { work, seen, plan: decision.plan, ending, nowMs: clock.nowMs() }) };
  }

  async function write(planned: readonly PlannedWrite[], { tombstones, written }: SliceWork, signal: AbortSignal): Promise<Written> {
    const requests = planned.map(({ request }) => request);
    const answers = await writeAll(requests, signal);
    const accepted = planned.filter((_, index) => answers[index]?.kind === 'written');
    written(accepted.map(({ ending }) => ending));
    const result = writtenOf(planned, answers);
    // not reached after a fault, because the store may have applied what it did not answer
    tombstones.giveBack(planned.filter(isTombstone).length - accepted.filter(isTombstone).length);
    return result;
  }
}

/** The fault of the denied keys, unless the job goes on without them. */
async function refusalOf(denied: readonly Denial[], { leave }: SliceWork): Promise<FaultError | undefined> {
  const [first] = denied;
  if (first === undefined || (await leave(denied.map(({ comparedKey: { key }, denied: fault }) => ({ key, fault }))))) return undefined;
  return new FaultError(first.denied.code, first.denied.reason);
}

/** Reserves the tombstones among the writes. Resolves with the allowed writes, and with the endings of those held back. */
async function allowedOf(planned: readonly PlannedWrite[], { tombstones }: SliceWork): Promise<Allowed> {
  const wanted = planned.filter(isTombstone);
  if (wanted.length === 0) return { planned, held: [] };
  const granted = await tombstones.reserve(wanted.length);
  if (granted === wanted.length) return { planned, held: [] };
  const held = new Set(wanted.slice(granted));
  return {
    planned: planned.filter((each) => !held.has(each)),
    held: [...held].map(({ ending }) => ({ ...ending, effect: 'held' })),
  };
}

/** Whether the write deletes a document, if the store accepts it. */
function isTombstone({ ending }: PlannedWrite): boolean {
  return ending.effect === 'tombstone';
}

/** Returns a denial as an answer, because one denied object must not keep the others of its slice from being written. Throws any other fault. */
async function answerOrDenial(head: ReturnType<Head>): Promise<HeadAnswer | { readonly denied: Fault }> {
  try {
    return await head;
  } catch (error) {
    if (!(error instanceof FaultError) || jobAnswerOf(error.code) !== 'skip') throw error;
    return { denied: { code: error.code, reason: error.reason } };
  }
}

/** The writes, the endings and the denials among the plans. A loop, because flatMap() takes longer for each of a first index's keys than its plan. */
function sorted(plans: readonly Plan[]) {
  const planned: PlannedWrite[] = [];
  const ended: Ending[] = [];
  const denied: Denial[] = [];
  for (const plan of plans) {
    if ('write' in plan) planned.push(plan.write);
    else if ('end' in plan) ended.push(plan.end);
    else denied.push(plan);
  }
  return { planned, ended, denied };
}

/** How the writes ended. Throws the first fault that is not about a single document. */
function writtenOf(planned: readonly PlannedWrite[], answers: readonly WriteAnswer[]): Written {
  const endings: Ending[] = [];
  for (const [index, { ending }] of planned.entries()) {
    const answer = answers[index];
    const fault = faultIn(answer);
    if (fault !== undefined && fault.code !== REJECTED) throw new FaultError(fault.code, fault.reason);
    if (answer?.kind === 'written') endings.push(ending);
    else if (fault !== undefined) endings.push({ ...ending, effect: 'refused', reason: fault.reason });
  }
  const refused = planned.filter((_, index) => answers[index]?.kind !== 'written' && answers[index]?.kind !== 'fault');
  const isExpired = (source: 'listing' | 'check'): boolean =>
    planned.some(({ request }, index) => request.document.source === source && answers[index]?.kind === 'expired');
  return {
    endings,
    refused: refused.map(({ comparedKey }) => comparedKey),
    isListingExpired: isExpired('listing'),
    isHeadExpired: isExpired('check'),
  };
}

/** The fault of one document that its index will never take. It must not keep the bucket's other keys from being compared. */
const REJECTED: FaultCode = 'index.rejected';

function faultIn(answer: WriteAnswer | undefined): Fault | undefined {
  return answer?.kind === 'fault' ? answer.fault : undefined;
}

interface Written {
  readonly endings: readonly Ending[];
  /** Keys to be planned again, because the store holds something newer, or S3's answer became too old to be written. */
  readonly refused: readonly ComparedKey[];
  /** The listing page is too old to be written from. */
  readonly isListingExpired: boolean;
  readonly isHeadExpired: boolean;
}

/** Whether the compared key is written without reading what is stored, because a listing has everything that a missing object's document will contain. */
function isUnread({ kind }: ComparedKey, work: SliceWork): boolean {
  return work.writesUnread && kind === 'missing' && work.mode === 'apply' && !writesFromHead(work);
}

interface ReadFinding {
  readonly comparedKey: ComparedKey;
  readonly stored: ObjectDocument | undefined;
}

/** How a compared key ends if its write from the listing is accepted, and whether the write is accepted at an equal clock. */
interface ListedWish {
  readonly ending: Ending;
  readonly equalClock?: WriteRequest['equalClock'];
}

interface ListedFacts extends Required<ListedWish> {
  readonly work: SliceWork;
  readonly state: PresentState;
  readonly nowMs: number;
}

function writeOfListing({ comparedKey, stored }: ReadFinding, { work, state, ending, equalClock, nowMs }: ListedFacts): PlannedWrite {
  const { observedAtMs, expiresAtMs } = work;
  const { bucket } = work.bucket;
  const clock = clockOfListing(observedAtMs);
  const { key } = comparedKey;
  const document = rewrittenDocument({ bucket, key, state, stored, clock, settled: true, source: 'listing', observedAtMs, nowMs });
  return { comparedKey, request: { document, equalClock, expiresAtMs }, ending: { ...ending, effect: 'document' } };
}

interface SeenFacts {
  readonly work: SliceWork;
  readonly seen: HeadAnswer;
  readonly plan: ObservedWrite;
  readonly ending: Ending;
  readonly nowMs: number;
}

function writeOfHead({ comparedKey, stored }: ReadFinding, { work, seen, plan, ending, nowMs }: SeenFacts): PlannedWrite {
  const { clock, settled, equalClock } = plan;
  const at = { bucket: work.bucket.bucket, key: comparedKey.key, clock, observedAtMs: seen.observedAtMs, nowMs };
  const document = rewrittenDocument({ ...at, state: seen.state, stored, settled, source: 'check' });
  const effect = seen.state.present ? 'document' : 'tombstone';
  return {
    comparedKey,
    request: { document, equalClock, expiresAtMs: seen.expiresAtMs },
    ending: { ...filledIn(ending, document, work), effect },
  };
}

/** How a compared key ends if its HEAD agrees with its document. If S3 refuses its tags, they may still differ. */
function agreedEnding(
  { comparedKey }: ReadFinding,
  seen: ObjectState,
  { agreed, work }: { readonly agreed: Ending | undefined; readonly work: SliceWork },
): Ending {
  if (agreed === undefined) return endingOf(comparedKey, comparedKey.state === undefined ? 'gone' : 'in_flight');
  const areTagsRefused = readsTags(work) && seen.present && seen.tags === undefined;
  return areTagsRefused ? { ...agreed, unenriched: ['tags'] } : agreed;
}

/** The ending without the enrichment that the write fills in. */
function filledIn({ unenriched, ...ending }: Ending, document: ObjectDocument, work: SliceWork): Ending {
  const lacking = unenriched === undefined ? [] : lackingOf(work, document);
  return lacking.length > 0 ? { ...ending, unenriched: lacking } : ending;
}

/** Whether a report has found a difference. For a phantom, only a HEAD can confirm it. */
function isDrift(plan: Plan | HeadPlan | undefined): boolean {
  if (plan === undefined || 'write' in plan) return false;
  return !('end' in plan) || plan.end.kind === 'missing' || plan.end.kind === 'stale';
}

/** Whether a compared key needs a plan. A document that only lacks fields, or has an inexact LastModified, does only if it would be written. */
function needsPlan({ kind, isInexact, unenriched }: ComparedKey, work: SliceWork): boolean {
  switch (kind) {
    case 'missing':
    case 'phantom':
    case 'stale':
      return true;
    case 'equal':
    case 'incomplete':
      if (readsTags(work) || (unenriched !== undefined && fillsEnrichment(work))) return true;
      return work.mode === 'apply' && (isInexact || (work.fill && kind === 'incomplete'));
  }
}

/** The ending of a compared key about which nothing more is read. */
function endingAsFound(comparedKey: ComparedKey): Ending {
  const { unenriched } = comparedKey;
  return unenriched === undefined ? endingOf(comparedKey, comparedKey.kind) : { ...endingOf(comparedKey, comparedKey.kind), unenriched };
}

/** The ending of a compared key that turned out to be of this kind. */
function endingOf({ key, fields, state }: ComparedKey, kind: Ending['kind'], decided: readonly string[] = fields): Ending {
  const changedAtMs = changeOf(state, kind, decided);
  return { key, kind, fields: decided, isListed: state !== undefined, ...(changedAtMs !== undefined && { changedAtMs }) };
}

/** When the objects changed whose change the index lacked. Documents that the index refuses show nothing. */
function changesIn(endings: readonly Ending[]): readonly number[] {
  return endings.flatMap(({ changedAtMs, effect }) => (changedAtMs === undefined || effect === 'refused' ? [] : [changedAtMs]));
}

/** When the object changed, if its LastModified shows that: a multipart upload's is that of its beginning, and a storage class changes without it. */
function changeOf(state: PresentState | undefined, kind: Ending['kind'], fields: readonly string[]): number | undefined {
  const isChanged = kind === 'missing' || (kind === 'stale' && fields.includes('etag'));
  return isChanged && !MULTIPART.test(state?.etag ?? '') ? state?.lastModifiedMs : undefined;
}

const MULTIPART = /^"?[0-9a-f]{32}-\d+"?$/;

/** The ending of a key about which S3 and the stored document differ. */
function endingOfSeen(comparedKey: ComparedKey, seen: ObjectState): Ending {
  return endingOf(comparedKey, comparedKey.state === undefined && !seen.present ? 'phantom' : 'in_flight');
}

/**
 * How the compared key ends if its document's tags differ from the object's, or are lacking and not filled in; undefined if they agree or
 * were not asked for.
 */
function tagsEnding(
  comparedKey: ComparedKey,
  { kind, fields }: Comparison,
  { work, isFilled }: { readonly work: SliceWork; readonly isFilled: boolean },
): Ending | undefined {
  if (!readsTags(work) || !fields.includes('tags') || (isFilled && kind === 'incomplete')) return undefined;
  return endingOf(comparedKey, kind, ['tags']);
}
