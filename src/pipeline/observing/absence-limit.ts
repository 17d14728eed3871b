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
import { LRUCache } from 'lru-cache';
import type { BucketRecord } from '../../domain/bucket.ts';
import { FaultError } from '../../domain/fault.ts';
import type { ObjectIndex, ObjectScan } from '../ports/object-index.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { WithPorts } from '../ports/ports.ts';

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
export interface UnreportedAbsence {
  readonly bucket: BucketRecord;
  readonly key: string;
  readonly sentAtMs: number;
}

export interface AbsenceLimit {
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

/** What one bucket showed in the present minute. */
interface Minute {
  readonly sinceMs: number;
  readonly absentKeys: Set<string>;
  observations: number;
  absent: number;
}

/** When the bucket last answered a request for an object; `fault`: it showed none. */
interface Proof {
  readonly atMs: number;
  readonly fault?: FaultError;
}

/** Creates the limit. Each process has its own: what one of them writes is bounded. */
export function createAbsenceLimit({ storage, index, clock, telemetry, stopped }: AbsenceLimitDependencies): AbsenceLimit {
  const minutes = new LRUCache<string, Minute>({ max: BUCKETS_MAX });
  const proofs = new LRUCache<string, Proof>({ max: BUCKETS_MAX });
  const proving = new Map<string, Promise<Proof>>();

  function minuteOf(bucket: string): Minute {
    const current = minutes.get(bucket);
    const nowMs = clock.monotonicMs();
    if (current !== undefined && nowMs - current.sinceMs < WINDOW_MS) return current;
    const minute = { sinceMs: nowMs, absentKeys: new Set<string>(), observations: 0, absent: 0 };
    minutes.set(bucket, minute);
    return minute;
  }

  function count({ bucket, key }: UnreportedAbsence): Minute {
    const minute = minuteOf(bucket.bucket);
    minute.observations += 1;
    minute.absent += 1;
    if (minute.absentKeys.size < KEYS_MAX) minute.absentKeys.add(key);
    return minute;
  }

  async function isLive({ bucket, key }: UnreportedAbsence): Promise<boolean> {
    const [document] = await index.objects.getMany(bucket.bucket, [key], stopped);
    return document !== undefined && !document.deleted;
  }

  /** A live document whose object was not absent just now: after the key, where a sweep has not been yet, else before it. */
  async function keyThatMustExist(bucket: string, after: string): Promise<string | undefined> {
    const { absentKeys } = minuteOf(bucket);
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

  /** Asks the bucket once for all observations that wait. */
  function prove(absence: UnreportedAbsence): Promise<Proof> {
    const { bucket } = absence.bucket;
    const running = proving.get(bucket);
    if (running !== undefined) return running;
    const request = askBucket(absence)
      .then((proof) => {
        proofs.set(bucket, proof);
        return proof;
      })
      .finally(() => proving.delete(bucket));
    proving.set(bucket, request);
    return request;
  }

  function recentProof(bucket: string): Proof | undefined {
    const last = proofs.get(bucket);
    return last !== undefined && clock.monotonicMs() - last.atMs <= PROOF_AGE_MAX_MS ? last : undefined;
  }

  return {
    found(bucket) {
      minuteOf(bucket).observations += 1;
    },
    async judge(absence) {
      const minute = count(absence);
      const { bucket } = absence.bucket;
      // a bucket that showed no object has to show one before even a few absences are believed again
      const isHeldBack = isUnusual(minute) || proofs.get(bucket)?.fault !== undefined;
      if (!isHeldBack || !(await isLive(absence))) return 'believed';
      const last = recentProof(bucket);
      if (last !== undefined && last.fault === undefined && last.atMs <= absence.sentAtMs) return 'believed';
      const { fault } = last ?? (await prove(absence));
      if (fault !== undefined) throw fault;
      return 'repeat';
    },
  };
}

function isUnusual({ observations, absent }: Minute): boolean {
  return absent > ABSENT_MAX || (absent >= HALF_FROM && absent > observations / 2);
}
