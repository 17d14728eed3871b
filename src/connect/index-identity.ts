/**
 * Notices that a bucket's index was replaced: recreated, restored from a snapshot, or its alias moved. The bucket's record names the
 * index that was compared last. A gap is always stored before the record names a new index, so even after a crash no index that lacks
 * documents goes unnoticed.
 */
import type { GapReports } from '../observing/gaps.ts';
import type { ObjectIndex, WithPorts } from '../store/store.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { listBuckets } from '../observing/buckets.ts';

interface IdentityDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: Pick<ObjectIndex, 'identities'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/** What a record names if there is no index. */
const MISSING = 'missing';

/** What a new record should name. Throws the store's fault. */
export async function indexIdOf({ objects }: Pick<IdentityDependencies, 'objects'>, bucket: string, signal?: AbortSignal): Promise<string> {
  const [id] = await objects.identities([bucket], signal);
  return id ?? MISSING;
}

/** Compares a bucket's index with the one in its record. If they differ, opens a gap and then stores the new one. Throws the store's fault. */
export async function noteIndex(dependencies: IdentityDependencies, bucket: string, signal?: AbortSignal): Promise<void> {
  const { state, gaps, clock } = dependencies;
  // the record first: if the bucket is connected again in between, its record names the newer index
  const record = await readRecord(state, refs.bucket(bucket), signal);
  if (record === undefined) return;
  const indexId = await indexIdOf(dependencies, bucket, signal);
  if (record.indexId === indexId) return;
  const nowMs = clock.nowMs();
  const became = indexId === MISSING ? 'was found missing' : 'was found replaced, so it may lack documents,';
  const reason = `the index of the bucket ${became} at ${new Date(nowMs).toISOString()}`;
  await gaps.report({ bucket, kind: 'index', reason, seenAtMs: nowMs }, signal);
  await updateRecord(state, refs.bucket(bucket), (current) =>
    current?.indexId === record.indexId ? current && { ...current, indexId } : current,
  );
}

/** Compares all buckets' indices with one request to the store. Throws the store's fault. */
export async function watchIndices(dependencies: IdentityDependencies, signal: AbortSignal): Promise<void> {
  const { state, objects } = dependencies;
  const records = await listBuckets(state);
  if (records.length === 0) return;
  const found = await objects.identities(
    records.map(({ bucket }) => bucket),
    signal,
  );
  const changed = records.filter(({ indexId }, at) => indexId !== (found[at] ?? MISSING));
  for (const { bucket } of changed) await noteIndex(dependencies, bucket, signal);
}
