/**
 * Observes keys in S3 for resolve and observe hints. All hints of a key that are in hand when the HEAD is sent share it (rule 11),
 * and share one write at the highest clock that they need; each hint gets its own verdict.
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
  /** Whether an event reports that the object is gone; the absence limit then does not apply. */
  readonly reportsDeletion?: boolean;
  /** Asks by LIST, because HEAD has failed several times for this object. */
  readonly byListing?: boolean;
  /** Called when it is the HEAD request's turn: whether it may still be sent, or a circuit that opened in the meantime holds it back. Absent: it may. */
  readonly mayBegin?: () => boolean;
}

export type ObserveAnswer =
  | { readonly kind: 'written' | 'superseded'; readonly verdict: Verdict }
  /** The index holds other content at the write's clock: a tie (rule 12). */
  | { readonly kind: 'equal'; readonly clock: number }
  | { readonly kind: 'expired' }
  /** A circuit held the observation back, and nothing was sent. */
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
  /** Aborted at the deadline of the stop, which ends observations. */
  readonly stopped: AbortSignal;
}

interface Member {
  readonly request: ObserveRequest;
  readonly answer: (answer: ObserveAnswer) => void;
}

/** Creates the observer. */
export function createObserver(dependencies: ObserverDependencies): Observe {
  const { storage, write, clock, telemetry, heads, circuits, enricher, absences, stopped } = dependencies;
  /** The groups whose HEAD was not sent yet, so that other hints of the key can still join. */
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
    // with a free place this runs at once, but the other records of the same batch must be able to join first
    await setImmediate();
    // no hint may join any more, because the HEAD must be sent after every hint that it serves was received
    joinable.delete(id);
    heads.report();
    const first = members[0]?.request;
    if (first === undefined) return;
    // otherwise all that waited for their turn when a circuit opened would be sent one by one, and hang in the held set for hours
    if (!members.some(({ request }) => request.mayBegin?.() ?? true)) return answerAll(members, { kind: 'blocked' });
    // the answer's life begins before the request: a suspended process cannot know how long the answer lay unread
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const byListing = members.some(({ request }) => request.byListing === true);
    const seen = await headWithLimit({ ...first, byListing }, members);
    if ('fault' in seen) return answerAll(members, { kind: 'fault', fault: seen.fault });
    const { state } = await enricher.ofObservation({ bucket: first.bucket, key: first.key, state: seen.state, expiresAtMs });
    // the write does not need a place in the HEAD queue
    void writeSeen(members, { ...seen, state }, expiresAtMs).catch((error: unknown) =>
      answerAll(members, { kind: 'fault', fault: faultOf(error) }),
    );
  }

  /** Sends the HEAD; if the object is absent and the absence limit required the bucket to show an object first, sends it once more. */
  async function headWithLimit(request: ObserveRequest, members: readonly Member[]): Promise<ObservedState | { readonly fault: Fault }> {
    const { bucket, key } = request;
    const sentAtMs = clock.monotonicMs();
    const seen = await head(request);
    if ('fault' in seen || members.some((member) => member.request.reportsDeletion === true)) return seen;
    if (seen.state.present) {
      absences.countPresent(bucket.bucket);
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
  /** Aborted at the deadline of the stop, which ends observations. */
  readonly stopped: AbortSignal;
  /** The load of the live path; absent if the observations serve something else. */
  readonly load?: Pick<LiveLoad, 'heads'>;
}

export interface Observing {
  readonly observe: Observe;
  readonly enricher: Enricher;
  /** Writes a document with what the enricher added, or without it if the index refuses that. */
  readonly writeEnriched: WriteDocument;
}

/** Wires up the parts that read single objects from S3 and write the answers. They share one bounded queue of requests. */
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
 * The absence limit bounds deletions that no event reports. A store that has lost its disk, or another store at the same address,
 * answers that every object is gone. If unusually many observations find nothing, the bucket must show an object before more
 * absences are believed:
 *
 *   few  ─► believed
 *   many ─► the index has no live document of the key ─► believed: nothing can be lost
 *           the bucket showed an object just before the HEAD was sent ─► believed
 *           otherwise it is asked for one ─┬─ it shows one ─► the HEAD is repeated
 *                                          └─ it shows none ─► bucket.unproven
 *
 * Deletions that an event reports are neither counted nor limited.
 */

/** How many absences of a bucket are believed in a minute. If they are wrong, a re-index restores this many documents in a second. */
const ABSENT_MAX = 100;
const WINDOW_MS = 60_000;
/** From this many absences on, it is also unusual if they are more than half of the observations. Fewer may be chance, and not worth a request. */
const HALF_FROM = 10;
/** How long before a HEAD the bucket may have shown an object: as long as HeadBucket may confirm it (ordering rule 5). */
const PROOF_AGE_MAX_MS = 5_000;
/** How many documents are searched for a key that was not just found absent: twice as many as may be absent in a minute. */
const CANDIDATES_MAX = 2 * ABSENT_MAX;
/** How many absent keys are remembered. If there are more, a key that is gone may be tried, and then a listing decides. */
const KEYS_MAX = 1_000;
/** Far more buckets than any worker has. */
const BUCKETS_MAX = 10_000;

/** An observation that found nothing, without an event that reported the deletion. `sentAtMs`: when its HEAD was sent (monotonic). */
interface UnreportedAbsence {
  readonly bucket: BucketRecord;
  readonly key: string;
  readonly sentAtMs: number;
}

interface AbsenceLimit {
  /** Counts an observation that found its object. */
  countPresent(bucket: string): void;
  /** Counts the absence. `believed`: it may be written; `repeat`: observe the key again first. Throws `bucket.unproven`, and faults of S3 and of the store. */
  judge(absence: UnreportedAbsence): Promise<'believed' | 'repeat'>;
}

interface AbsenceLimitDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: Pick<ObjectStorage, 'readState' | 'firstKey'>;
  readonly index: { readonly objects: Pick<ObjectIndex, 'getMany'>; readonly scan: Pick<ObjectScan, 'scan'> };
  readonly stopped: AbortSignal;
}

/** When the bucket was last asked to show an object; `fault`: it showed none. */
interface Proof {
  readonly atMs: number;
  readonly fault?: FaultError;
}

/** What one bucket showed in the present minute, and when it was last asked to show an object. */
interface BucketMinute {
  sinceMs: number;
  absentKeys: Set<string>;
  observations: number;
  absent: number;
  proof?: Proof;
  /** The running request, which all waiting observations share. */
  proving?: Promise<Proof> | undefined;
}

/** Creates the limit. Each process has its own, which bounds what that process deletes. */
function createAbsenceLimit({ storage, index, clock, telemetry, stopped }: AbsenceLimitDependencies): AbsenceLimit {
  const buckets = new LRUCache<string, BucketMinute>({ max: BUCKETS_MAX, memoMethod: () => ({ ...emptyMinute(), sinceMs: -Infinity }) });

  function minuteOf(bucket: string): BucketMinute {
    const shown = buckets.memo(bucket);
    if (clock.monotonicMs() - shown.sinceMs >= WINDOW_MS) Object.assign(shown, emptyMinute(), { sinceMs: clock.monotonicMs() });
    return shown;
  }

  function count({ bucket, key }: UnreportedAbsence): BucketMinute {
    const shown = minuteOf(bucket.bucket);
    shown.observations += 1;
    shown.absent += 1;
    if (shown.absentKeys.size < KEYS_MAX) shown.absentKeys.add(key);
    return shown;
  }

  /** The bucket's last proof, if it is recent enough to count. */
  function recentProof({ proof }: BucketMinute): Proof | undefined {
    return proof !== undefined && clock.monotonicMs() - proof.atMs <= PROOF_AGE_MAX_MS ? proof : undefined;
  }

  async function isLive({ bucket, key }: UnreportedAbsence): Promise<boolean> {
    const [document] = await index.objects.getMany(bucket.bucket, [key], stopped);
    return document !== undefined && !document.deleted;
  }

  /** The key of a live document that was not just found absent: after the given key, which sweeps have not visited yet, or else before it. */
  async function keyThatMustExist(bucket: string, after: string): Promise<string | undefined> {
    const { absentKeys } = minuteOf(bucket);
    for (const from of [after, '']) {
      const documents = await index.scan.scan(bucket, { prefix: '', after: from, limit: CANDIDATES_MAX }, stopped);
      const found = documents.find(({ key }) => !absentKeys.has(key));
      if (found !== undefined) return found.key;
    }
    return undefined;
  }

  async function showsAnObject({ bucket, key }: UnreportedAbsence): Promise<boolean> {
    const known = await keyThatMustExist(bucket.bucket, key);
    if (known !== undefined && (await storage.readState(bucket, known, stopped)).state.present) return true;
    // that object may have just been deleted, with its event on the way
    return (await storage.firstKey(bucket, stopped)) !== undefined;
  }

  async function askBucket(absence: UnreportedAbsence): Promise<Proof> {
    const { bucket } = absence.bucket;
    if (await showsAnObject(absence)) return { atMs: clock.monotonicMs() };
    const reason = `many objects of ${bucket} are gone that no event reported as deleted, and the bucket shows no other object`;
    telemetry.requestFailed('delete documents whose objects are gone', new FaultError('bucket.unproven', reason));
    return { atMs: clock.monotonicMs(), fault: new FaultError('bucket.unproven', reason) };
  }

  async function prove(shown: BucketMinute, absence: UnreportedAbsence): Promise<Proof> {
    shown.proving ??= askBucket(absence).finally(() => {
      shown.proving = undefined;
    });
    shown.proof = await shown.proving;
    return shown.proof;
  }

  return {
    countPresent(bucket) {
      minuteOf(bucket).observations += 1;
    },
    async judge(absence) {
      const shown = count(absence);
      // once a bucket has shown no object, it must show one before even a few absences are believed again
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

function emptyMinute(): Pick<BucketMinute, 'absentKeys' | 'observations' | 'absent'> {
  return { absentKeys: new Set(), observations: 0, absent: 0 };
}

function isUnusual({ observations, absent }: BucketMinute): boolean {
  return absent > ABSENT_MAX || (absent >= HALF_FROM && absent > observations / 2);
}
