/** Records of gaps and of jobs, as they are right after they were made. */
import type { GapRecord } from '../../../src/domain/gaps/gap.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';

/** An open gap of the bucket photos that was seen, told and opened at this moment, once. */
export function gapSeenAt(atMs: number, { kind = 'bulk-delete', ...more }: Partial<GapRecord> = {}): GapRecord {
  const times = { firstSeenMs: atMs, lastSeenMs: atMs, openedAtMs: atMs, toldAtMs: atMs, count: 1 };
  return { id: `gap:photos:${kind}`, bucket: 'photos', kind, reason: 'DeleteObjects', state: 'open', ...times, ...more };
}

/** A job that re-indexes the whole of photos for a gap. */
export function jobMadeAt(createdAtMs: number, more: Partial<JobRecord> = {}): JobRecord {
  const facts = { bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap', state: 'running' } as const;
  return { id: 'job-1', ...facts, createdAtMs, ...more };
}
