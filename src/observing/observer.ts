/**
 * Observes keys in S3 for resolve and observe hints. All hints of a key that are there when the HEAD is sent share it (rule
 * 11) and share one write at the highest clock that they need; each hint gets its own verdict.
 *
 *   hint ──► head-queue.ts (the buckets in turn) ──► HEAD ──► enricher.ts ──► bulk-writer.ts ──► verdict
 *                    ▲                                                           │
 *                    └── circuits.ts: what does not answer is not tried ◄────────┘
 *
 * The data path and the calendar observe in the same way, so that one set of decisions holds for both.
 */
import { setImmediate } from 'node:timers/promises';
import type { BucketRecord } from '../records/bucket.ts';
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';
import { documentOf, type Cause, type DocumentSource } from '../ordering/document.ts';
import { faultOf, type Fault, FaultError } from '../base/fault.ts';
import type { ObserveHint, ResolveHint } from '../ordering/hint.ts';
import { planObservedWrite, type Verdict } from '../ordering/observation.ts';
import type { WriteDocument } from './bulk-writer.ts';
import { createEnricher, withPlainFallback, type Enricher } from './enricher.ts';
import { createHeadQueue, reportHead, type HeadQueue, type HeadResult } from './head-queue.ts';
import type { ObjectStorage, ObservedState } from '../aws/storage.ts';
import type { Circuits } from './circuits.ts';
import type { Store, WithPorts, ObjectIndex, ObjectScan } from '../store/store.ts';
import type { LiveLoad } from './live-load.ts';
import { LRUCache } from 'lru-cache';

export interface ObserveRequest {
  readonly bucket: BucketRecord;
  readonly key: string;
  readonly hint: ResolveHint | ObserveHint;
  readonly cause: Cause;
  readonly source: DocumentSource;
  /** Whether an event reports that the object is gone: then its absence is not limited. */
  readonly reportsDeletion?: boolean;
  /** Asks by LIST, because HEAD has failed several times for this object. */
  readonly byListing?: boolean;
  /** Asked when the turn of the HEAD request has come: whether it may still be sent, or a circuit that opened meanwhile holds it back. Absent: it may. */
  readonly mayBegin?: () => boolean;
}

export type ObserveAnswer =
  | { readonly kind: 'written' | 'superseded'; readonly verdict: Verdict }
  /** The index holds other content at the clock of the write: a tie (rule 12). */
  | { readonly kind: 'equal'; readonly clock: number }
  | { readonly kind: 'expired' }
  /** The observation may not begin any more, and nothing was sent. */
  | { readonly kind: 'blocked' }
  | { readonly kind: 'fault'; readonly fault: Fault };

export type Observe = (request: ObserveRequest) => Promise<ObserveAnswer>;

interface ObserverDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: ObjectStorage;
  readonly write: WriteDocument;
  readonly heads: HeadQueue;
  readonly circuits: Pick<Circuits, 'storageAnswered'>;
  readonly enricher: Pick<Enricher, 'ofObservation'>;
  readonly absences: AbsenceLimit;
  /** Aborted at the deadline of the stop; observations end then. */
  readonly stopped: AbortSignal;
}

interface Member {
  readonly request: ObserveRequest;
  readonly answer: (answer: ObserveAnswer) => void;
}

/** Creates the observer. */
export function createObserver(dependencies: ObserverDependencies): Observe {
  const { storage, write, clock, telemetry, heads, circuits, enricher, absences, stopped } = dependencies;
  /** The groups whose HEAD was not sent yet: other hints of the key can still join them. */
  const joinable = new Map<string, Member[]>();

  function observe(request: ObserveRequest): Promise<ObserveAnswer> {
    return new Promise((resolve) => {
      const id = `${request.bucket.bucket}/${request.key}`;
      const member = { request, answer: resolve };
      const group = joinable.get(id);
      if (group !== undefined) {
        group.push(member);
        return;
      }
      const members: Member[] = [member];
      joinable.set(id, members);
      void heads
        .run(request.bucket, () => observeKey(id, members))
        .catch(() => {
          joinable.delete(id);
          answerAll(members, { kind: 'blocked' });
        });
    });
  }

  async function observeKey(id: string, members: readonly Member[]): Promise<void> {
    // with a free slot this starts at once: the other records of the same batch must be able to join first
    await setImmediate();
    // from now on no hint may join, because the HEAD must be sent after every hint that it serves was received
    joinable.delete(id);
    heads.report();
    const first = members[0]?.request;
    if (first === undefined) return;
    // else all that waited for their turn when a circuit opened would be sent one after another, and hang for hours in the held set
    if (!members.some(({ request }) => request.mayBegin?.() ?? true)) return answerAll(members, { kind: 'blocked' });
    // the life of the answer begins before the request: a process that was stopped cannot know how long the answer was unread
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const byListing = members.some(({ request }) => request.byListing === true);
    const seen = await headWithLimit({ ...first, byListing }, members);
    if ('fault' in seen) return answerAll(members, { kind: 'fault', fault: seen.fault });
    const { state } = await enricher.ofObservation({ bucket: first.bucket, key: first.key, state: seen.state, expiresAtMs });
    // the write does not keep a slot of the HEAD queue
    void writeSeen(members, { ...seen, state }, expiresAtMs).catch((error: unknown) =>
      answerAll(members, { kind: 'fault', fault: faultOf(error) }),
    );
  }

  /** The HEAD, and its absence once more if the absence limit wants the bucket to show an object before it. */
  async function headWithLimit(request: ObserveRequest, members: readonly Member[]): Promise<ObservedState | { readonly fault: Fault }> {
    const { bucket, key } = request;
    const sentAtMs = clock.monotonicMs();
    const seen = await head(request);
    if ('fault' in seen || members.some((member) => member.request.reportsDeletion === true)) return seen;
    if (seen.state.present) {
      absences.found(bucket.bucket);
      return seen;
    }
    try {
      return (await absences.judge({ bucket, key, sentAtMs })) === 'believed' ? seen : await head(request);
    } catch (error) {
      return { fault: faultOf(error) };
    }
  }

  async function head({
    bucket: { bucket, region, account },
    key,
    byListing = false,
  }: ObserveRequest): Promise<ObservedState | { readonly fault: Fault }> {
    const startedMs = clock.monotonicMs();
    const sent = (result: HeadResult): void => reportHead(telemetry, clock.monotonicMs() - startedMs, result);
    try {
      const seen = await storage.readState({ bucket, region, account }, key, stopped, { byListing });
      sent(seen.state.present ? 'present' : 'absent');
      circuits.storageAnswered({ bucket, region }, { key, sentAtMs: startedMs });
      return seen;
    } catch (error) {
      const fault = faultOf(error);
      sent(fault.code);
      if (!stopped.aborted) circuits.storageAnswered({ bucket, region }, { key, sentAtMs: startedMs, fault });
      return { fault };
    }
  }

  async function writeSeen(members: readonly Member[], seen: ObservedState, expiresAtMs: number): Promise<void> {
    const plan = planObservedWrite(
      members.map((member) => member.request.hint),
      seen.observedAtMs,
    );
    const { bucket, key, cause, source } = (members[plan.leader] ?? members[0])?.request ?? {};
    if (bucket === undefined || key === undefined || cause === undefined || source === undefined) return;
    const facts = { bucket: bucket.bucket, key, state: seen.state, source, cause, stateAtMs: seen.observedAtMs, nowMs: clock.nowMs() };
    const document = documentOf({ ...facts, clock: plan.clock, settled: plan.settled });
    const answer = await write({ document, equalClock: plan.equalClock, expiresAtMs });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        members.forEach((member, index) => member.answer({ kind: answer.kind, verdict: plan.verdicts[index] ?? { final: true } }));
        return;
      case 'equal':
        return answerAll(members, { kind: 'equal', clock: plan.clock });
      case 'expired':
      case 'fault':
        return answerAll(members, answer);
    }
  }

  function answerAll(members: readonly Member[], answer: ObserveAnswer): void {
    for (const member of members) member.answer(answer);
  }

  return observe;
}

// ── the parts joined ───────────────────────────────────────────────────────────────────────────────────────────────

interface ObservingDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: ObjectStorage;
  readonly index: Pick<Store, 'objects' | 'scan'>;
  readonly write: WriteDocument;
  readonly circuits: Circuits;
  /** How many HEADs and enrichment requests may run at the same time. */
  readonly concurrency: number;
  /** Aborted at the deadline of the stop; observations end then. */
  readonly stopped: AbortSignal;
  /** The load of the live path; absent: the observations serve something else. */
  readonly load?: Pick<LiveLoad, 'heads'>;
}

export interface Observing {
  readonly observe: Observe;
  readonly enricher: Enricher;
  /** Writes a document with what the enricher added, or without it if the index refuses that. */
  readonly writeEnriched: WriteDocument;
}

/** Joins the parts that read single objects from S3 and write the answers. They share one bounded queue of requests. */
export function createObserving(dependencies: ObservingDependencies): Observing {
  const { storage, index, write, clock, telemetry, circuits, concurrency, stopped, load } = dependencies;
  const heads = createHeadQueue({ concurrency, clock, load, isFailing: circuits.isFailing, isRegionFailing: circuits.isRegionFailing });
  const shared = { storage, heads, stopped, clock, telemetry, circuits };
  const enricher = createEnricher(shared);
  const absences = createAbsenceLimit({ ...shared, index });
  const writeEnriched = withPlainFallback(write, telemetry);
  return { enricher, writeEnriched, observe: createObserver({ ...shared, write: writeEnriched, enricher, absences }) };
}

/**
 * The absence limit bounds deletions that no event reports. A store that has lost its disk, or another store at the same
 * address, answers for every object that it is gone. When unusually many observations find nothing, the bucket must show an
 * object before more is believed:
 *
 *   few  ─► believed
 *   many ─► the index has no live document of the key ─► believed: nothing can be lost
 *           the bucket showed an object just before the HEAD was sent ─► believed
 *           else it gets a request for one ─┬─ it shows one ─► the HEAD is repeated
 *                                           └─ it shows none ─► bucket.unproven
 *
 * A deletion that an event reports is neither counted nor limited.
 */

/** Absences of one bucket in one minute. A re-index restores this many documents in a second, if they should prove to be wrong. */
const ABSENT_MAX = 100;
const WINDOW_MS = 60_000;
/** From this many absences on, more than half of the observations is unusual too. Fewer may be chance, and a request for each would cost more than they do. */
const HALF_FROM = 10;
/** How long before a HEAD the bucket may have shown an object: as long as HeadBucket may confirm it (ordering rule 5). */
const PROOF_AGE_MAX_MS = 5_000;
/** Documents among which a key is looked for that was not absent just now: twice as many as are usual in a minute. */
const CANDIDATES = 2 * ABSENT_MAX;
/** Keys that are remembered as absent. With more, a key may be tried that is gone, and then a listing decides. */
const KEYS_MAX = 1_000;
/** Far more buckets than any worker has. */
const BUCKETS_MAX = 10_000;

/** An observation that found nothing, and that no event announced. `sentAtMs`: when its HEAD was sent (monotonic). */
interface UnreportedAbsence {
  readonly bucket: BucketRecord;
  readonly key: string;
  readonly sentAtMs: number;
}

interface AbsenceLimit {
  /** Counts an observation that found its object. */
  found(bucket: string): void;
  /** Counts the absence. Resolves with whether it may be written, or the key must be observed again first. Throws `bucket.unproven`, and faults of S3 and of the store. */
  judge(absence: UnreportedAbsence): Promise<'believed' | 'repeat'>;
}

interface AbsenceLimitDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: Pick<ObjectStorage, 'readState' | 'firstKey'>;
  readonly index: { readonly objects: Pick<ObjectIndex, 'getMany'>; readonly scan: Pick<ObjectScan, 'scan'> };
  readonly stopped: AbortSignal;
}

/** When the bucket last answered a request for an object; `fault`: it showed none. */
interface Proof {
  readonly atMs: number;
  readonly fault?: FaultError;
}

/** What one bucket showed: since the beginning of the present minute, and when it was last asked for an object. */
interface Shown {
  sinceMs: number;
  absentKeys: Set<string>;
  observations: number;
  absent: number;
  proof?: Proof;
  /** The request that runs, for all observations that wait. */
  proving?: Promise<Proof> | undefined;
}

/** Creates the limit. Each process has its own: what one of them writes is bounded. */
function createAbsenceLimit({ storage, index, clock, telemetry, stopped }: AbsenceLimitDependencies): AbsenceLimit {
  const buckets = new LRUCache<string, Shown>({ max: BUCKETS_MAX, memoMethod: () => ({ ...noneShown(), sinceMs: -Infinity }) });

  function shownBy(bucket: string): Shown {
    const shown = buckets.memo(bucket);
    if (clock.monotonicMs() - shown.sinceMs >= WINDOW_MS) Object.assign(shown, noneShown(), { sinceMs: clock.monotonicMs() });
    return shown;
  }

  function count({ bucket, key }: UnreportedAbsence): Shown {
    const shown = shownBy(bucket.bucket);
    shown.observations += 1;
    shown.absent += 1;
    if (shown.absentKeys.size < KEYS_MAX) shown.absentKeys.add(key);
    return shown;
  }

  /** What the bucket answered last, if that was just now. */
  function recentProof({ proof }: Shown): Proof | undefined {
    return proof !== undefined && clock.monotonicMs() - proof.atMs <= PROOF_AGE_MAX_MS ? proof : undefined;
  }

  async function isLive({ bucket, key }: UnreportedAbsence): Promise<boolean> {
    const [document] = await index.objects.getMany(bucket.bucket, [key], stopped);
    return document !== undefined && !document.deleted;
  }

  /** A live document whose object was not absent just now: after the key, where a sweep has not been yet, else before it. */
  async function keyThatMustExist(bucket: string, after: string): Promise<string | undefined> {
    const { absentKeys } = shownBy(bucket);
    for (const from of [after, '']) {
      const documents = await index.scan.scan(bucket, { prefix: '', after: from, limit: CANDIDATES }, stopped);
      const found = documents.find(({ key }) => !absentKeys.has(key));
      if (found !== undefined) return found.key;
    }
    return undefined;
  }

  async function showsAnObject({ bucket, key }: UnreportedAbsence): Promise<boolean> {
    const known = await keyThatMustExist(bucket.bucket, key);
    if (known !== undefined && (await storage.readState(bucket, known, stopped)).state.present) return true;
    // it may have been deleted just now, with its event on the way
    return (await storage.firstKey(bucket, stopped)) !== undefined;
  }

  async function askBucket(absence: UnreportedAbsence): Promise<Proof> {
    const { bucket } = absence.bucket;
    if (await showsAnObject(absence)) return { atMs: clock.monotonicMs() };
    const reason = `many objects of ${bucket} are gone that no event reported as deleted, and the bucket shows no other object`;
    telemetry.requestFailed('delete documents whose objects are gone', new FaultError('bucket.unproven', reason));
    return { atMs: clock.monotonicMs(), fault: new FaultError('bucket.unproven', reason) };
  }

  async function prove(shown: Shown, absence: UnreportedAbsence): Promise<Proof> {
    shown.proving ??= askBucket(absence).finally(() => {
      shown.proving = undefined;
    });
    shown.proof = await shown.proving;
    return shown.proof;
  }

  return {
    found(bucket) {
      shownBy(bucket).observations += 1;
    },
    async judge(absence) {
      const shown = count(absence);
      // a bucket that showed no object has to show one before even a few absences are believed again
      const isHeldBack = isUnusual(shown) || shown.proof?.fault !== undefined;
      if (!isHeldBack || !(await isLive(absence))) return 'believed';
      const last = recentProof(shown);
      if (last !== undefined && last.fault === undefined && last.atMs <= absence.sentAtMs) return 'believed';
      const { fault } = last ?? (await prove(shown, absence));
      if (fault !== undefined) throw fault;
      return 'repeat';
    },
  };
}

function noneShown(): Pick<Shown, 'absentKeys' | 'observations' | 'absent'> {
  return { absentKeys: new Set(), observations: 0, absent: 0 };
}

function isUnusual({ observations, absent }: Shown): boolean {
  return absent > ABSENT_MAX || (absent >= HALF_FROM && absent > observations / 2);
}
