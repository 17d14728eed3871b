/** Explains one key: reads it from the index and from S3, and compares the two. */
import { statusView } from '../registry/contract/buckets.ts';
import { storageViewOf, type Explanation } from '../registry/contract/objects.ts';
import { readsKey, type Readable } from '../store/readable.rules.ts';
import type { BucketRecord } from '../records/bucket.ts';
import { explanationOf, type StorageAnswer, type Verdict } from './explanation.rules.ts';
import { FaultError } from '../base/fault.ts';
import { requireReadable, type BucketStatuses } from '../observing/buckets.ts';
import { printable } from '../base/texts.ts';
import { RequestError } from '../base/request-error.ts';
import type { ObjectIndex, StateStore } from '../store/store.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import type { Clock } from '../process/clock.ts';
import { gapsOf, markDirty } from '../observing/gaps.ts';
import type { DirtyMark } from '../records/dirty.ts';
import { lastBeginOf } from '../records/job.ts';

interface ExplainDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
  readonly statuses: Pick<BucketStatuses, 'of'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** How much of a key an error repeats. */
const SHOWN_MAX = 1_024;

function isAbsent(answer: StorageAnswer): boolean {
  return 'state' in answer && !answer.state.present;
}

/** The same answer for a key that may not be read and for one that never existed. */
function notFound(bucket: string, key: string): RequestError {
  return new RequestError('object.not-found', `${bucket} has no object ${printable(key, SHOWN_MAX)} that you may read`);
}

/** Explains the key to this caller. A fault of S3 is part of the answer. Throws the index's faults and `bucket.not-connected`. */
export async function explain(
  { state, objects, storage, statuses, clock }: ExplainDependencies,
  { bucket, key, readable }: { readonly bucket: string; readonly key: string; readonly readable: Readable },
  signal?: AbortSignal,
): Promise<Explanation> {
  const record = await requireReadable(state, { bucket, readable }, signal);
  // before anything is read: a slower answer would show that something exists
  if (!readsKey(readable, bucket, key)) throw notFound(bucket, key);
  const [[document], answer, status] = await Promise.all([
    objects.getMany(bucket, [key], signal),
    stateOf(storage, record, key, signal),
    statuses.of(record, readable, signal),
  ]);
  if (readable !== 'everything' && document === undefined && isAbsent(answer)) throw notFound(bucket, key);
  const { agrees, sentence, lost } = explanationOf({ bucket: record, status, document, storage: answer });
  const isNoted = lost !== undefined && (await noteLost({ state, clock }, record, { key, lost }, signal));
  return {
    bucket,
    key,
    ...(document !== undefined && { index: document }),
    storage: storageViewOf(answer),
    agrees,
    sentence: isNoted ? `${sentence} Tally has opened a gap, which a re-index closes.` : sentence,
    bucket_status: statusView(isNoted ? await statuses.of(record, readable, signal) : status, bucket),
  };
}

/** From this many open gaps of keys on, the bucket's own stands for more: each has a job of a minute, and they follow one another. */
const KEY_GAPS_MAX = 10;

interface Lost {
  readonly key: string;
  readonly lost: NonNullable<Verdict['lost']>;
}

/**
 * Opens the key's gap for a difference, so that the status says so and Tally repairs it; with many such gaps, the bucket's own. An open
 * gap of the key or of the bucket suffices if its job has not begun yet: a job that has may have passed the key. Resolves with whether
 * the gap was stored; the explanation is given in any case.
 */
async function noteLost(
  ports: Pick<ExplainDependencies, 'state' | 'clock'>,
  record: BucketRecord,
  { key, lost }: Lost,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { bucket } = record;
  const suffices = ({ order }: DirtyMark): boolean => order >= lastBeginOf(record);
  const atMs = ports.clock.nowMs();
  const report = { bucket, kind: 'loss', reason: 'explain found an object that differs', seenAtMs: atMs } as const;
  let isKnown = false;
  const unless = (current: DirtyMark | undefined): boolean => (isKnown = current !== undefined && suffices(current));
  try {
    const open = await gapsOf(ports.state, bucket, signal);
    if (open.some((mark) => mark.prefix === undefined && suffices(mark))) return false;
    const differences = { atMs, prefix: key, missing: 0, stale: 0, phantom: 0, [lost]: 1 };
    // readers of other parts see the bucket's gap, which therefore does not say what it was found by
    const ofKeyOrBucket = open.length < KEY_GAPS_MAX ? { ...report, key, differences } : report;
    return (await markDirty(ports, ofKeyOrBucket, unless)) !== undefined && !isKnown;
  } catch (error) {
    if (error instanceof FaultError) return false;
    throw error;
  }
}

async function stateOf(storage: ObjectStorage, record: BucketRecord, key: string, signal: AbortSignal | undefined): Promise<StorageAnswer> {
  try {
    return await storage.readState(record, key, signal);
  } catch (error) {
    if (error instanceof FaultError) return { fault: { code: error.code, reason: error.reason } };
    throw error;
  }
}
