/** Reports open gaps, jobs, connections' states and each bucket's status for the metrics, and rereads each bucket's region and versioning once a day. */
import PQueue from 'p-queue';
import { jobSchema } from '../records/job.ts';
import type { ConnectBucket } from '../connect/connect.ts';
import { repeat } from '../process/async.ts';
import { listAllRecords } from '../store/stored.ts';
import type { Processes } from '../observing/processes.ts';
import { allGaps } from '../observing/gaps.ts';
import { statusesOf, listBuckets } from '../observing/buckets.ts';
import type { WithPorts } from '../store/store.ts';

/** As often as the queues. */
const METRICS_INTERVAL_MS = 15_000;
const BUCKETS_INTERVAL_MS = 600_000;
const BUCKET_CHECK_AGE_MS = 86_400_000;
/** Each check is two requests, which take 40 s if they hang: 300 hanging buckets are tried within a quarter of an hour. */
const CHECKS_AT_ONCE = 16;

interface StateWatchDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  /** Rereads a bucket's region and versioning. */
  readonly connect: Pick<ConnectBucket, 'refresh'>;
  readonly processes: Pick<Processes, 'troubles'>;
  readonly compareIntervalMs: number;
}

/** Starts the reports and the reads; they end when the signal is aborted. */
export function watchState(dependencies: StateWatchDependencies, signal: AbortSignal): void {
  const { state, clock, telemetry, connect, processes, compareIntervalMs } = dependencies;

  async function reportCounts(): Promise<void> {
    const gaps = await allGaps(state);
    telemetry.set('tally_gaps_open', gaps.length);
    const gapAgesMs = gaps.map(({ sinceMs }) => clock.nowMs() - sinceMs);
    telemetry.set('tally_gaps_oldest_age_seconds', Math.max(0, ...gapAgesMs) / 1_000);
    const buckets = await listBuckets(state);
    const paused = buckets.flatMap(({ connection }) => (connection?.state === 'paused' ? [connection] : []));
    const checks = buckets.flatMap(({ connection, connectionCheck }) => (connection?.state === 'paused' ? [] : (connectionCheck ?? [])));
    telemetry.setCounts('tally_connection_state', [...checks, ...paused.map(() => ({ state: 'paused' as const }))]);
    telemetry.set(
      'tally_notification_pause_age_seconds',
      Math.max(0, ...paused.map(({ changedAtMs }) => clock.nowMs() - changedAtMs)) / 1_000,
    );
    const nowMs = clock.nowMs();
    const statuses = statusesOf(buckets, { troubles: await processes.troubles(), gaps, nowMs, compareIntervalMs });
    telemetry.setCounts(
      'tally_buckets',
      statuses.map((status) => ({ status: status.state })),
    );
    const comparedAgesMs = buckets.map(({ lastComparedAtMs, createdAtMs }) => nowMs - (lastComparedAtMs ?? createdAtMs));
    telemetry.set('tally_compared_oldest_age_seconds', Math.max(0, ...comparedAgesMs) / 1_000);
    telemetry.setCounts('tally_jobs', await listAllRecords(state, 'job', jobSchema));
  }

  async function checkBuckets(): Promise<void> {
    const buckets = await listBuckets(state);
    const due = buckets.filter(({ checkedAtMs }) => clock.nowMs() - checkedAtMs > BUCKET_CHECK_AGE_MS);
    // hanging checks must not delay the others
    const turns = new PQueue({ concurrency: CHECKS_AT_ONCE });
    await turns.addAll(
      due.map(
        ({ bucket }) =>
          () =>
            checkBucket(bucket),
      ),
    );
  }

  /** Reads one bucket. A missing or denied bucket must not prevent the others' reads. */
  async function checkBucket(bucket: string): Promise<void> {
    try {
      await connect.refresh(bucket, signal);
    } catch (error) {
      signal.throwIfAborted();
      telemetry.requestFailed('check a bucket', error);
    }
  }

  repeat({ clock, telemetry }, { name: 'count gaps and jobs', intervalMs: METRICS_INTERVAL_MS, isAtOnce: true, signal }, reportCounts);
  repeat({ clock, telemetry }, { name: 'check the buckets', intervalMs: BUCKETS_INTERVAL_MS, signal }, checkBuckets);
}
