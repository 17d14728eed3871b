/** Facts about re-index as metrics and log lines. */
import type { Logger } from 'pino';
import { faults } from '../../domain/fault.ts';
import type { ReindexTelemetry } from '../../pipeline/ports/telemetry.ts';
import { objectKinds } from './metrics-reindex.ts';
import type { Metrics } from './metrics.ts';

/** Creates the facts of re-index. */
export function reindexFacts({ log, metrics }: { readonly log: Logger; readonly metrics: Metrics }): ReindexTelemetry {
  return {
    reindexTask: (result) => metrics.count('tally_reindex_tasks_total', { result }),
    reindexTurn({ mode, counts, result, durationMs }) {
      metrics.count('tally_reindex_turns_total', { result });
      for (const [name, kind] of objectKinds) metrics.count('tally_reindex_objects_total', { mode, kind }, counts[name]);
      metrics.count('tally_reindex_writes_total', { kind: 'document' }, counts.written);
      metrics.count('tally_reindex_writes_total', { kind: 'tombstone' }, counts.tombstones);
      metrics.count('tally_reindex_requests_total', { request: 'list' }, counts.listRequests);
      metrics.count('tally_reindex_requests_total', { request: 'head' }, counts.headRequests);
      log.debug({ mode, result, durationMs: Math.round(durationMs), listed: counts.listed }, 'range turn ended');
    },
    reindexSplit: (isSplit) => metrics.count('tally_reindex_splits_total', { result: isSplit ? 'split' : 'none' }),
    reindexRanges: (running) => metrics.set('tally_reindex_ranges', running),
    jobEnded({ id, bucket, mode, requestedBy, state, counts, error }) {
      metrics.count('tally_jobs_ended_total', { state });
      const facts = { id, bucket, mode, requestedBy, state, counts };
      if (error === undefined) log.info(facts, 'job ended');
      else log.error({ ...facts, ...error, advice: faults[error.code].advice }, 'job ended');
    },
  };
}
