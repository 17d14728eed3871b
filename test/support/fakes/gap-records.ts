/** Records of gaps and of jobs, as they are right after they were made. */
import { markId, type DirtyMark } from '../../../src/records/dirty.ts';
import type { JobRecord } from '../../../src/records/job.ts';

/** The mark of the bucket photos, or of this key of it, that was seen and reported at this moment, once. */
export function markSeenAt(atMs: number, more: Partial<DirtyMark> = {}): DirtyMark {
  const times = { sinceMs: atMs, lastSeenMs: atMs, firstReportedAtMs: atMs, reportedAtMs: atMs, order: 0 };
  const reasons: DirtyMark['reasons'] = [{ kind: 'loss', count: 1, lastMs: atMs, example: 'lost' }];
  return { id: markId('photos', more.prefix), bucket: 'photos', ...times, reasons, deletes: 'limited', failures: 0, ...more };
}

/** A job that re-indexes the whole of photos for a gap. */
export function jobMadeAt(createdAtMs: number, more: Partial<JobRecord> = {}): JobRecord {
  const facts = { bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap', state: 'running' } as const;
  return { id: 'job-1', ...facts, createdAtMs, ...more };
}
