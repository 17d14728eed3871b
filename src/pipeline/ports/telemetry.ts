/** Facts about what happens, for log lines and metrics. */
import type { EnrichResult, EnrichStep } from '../../domain/documents/enrichment.ts';
import type { Dialect } from '../../domain/events/record.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { GapKind, GapRecord } from '../../domain/gaps/gap.ts';
import type { OutcomeKind } from '../../domain/messages/outcome.ts';
import type { ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { JobMode, JobRecord } from '../../domain/reindex/job.ts';

export type SettlementKind = 'delete' | 'defer' | 'wait' | 'dead-letter' | 'give-back';

/** Facts about what happened; one adapter decides log line, counter and labels. Labels never hold keys or ids. */
export interface Telemetry extends ReindexTelemetry, CalendarTelemetry {
  recordEnded(fact: {
    /** `unknown`: the record could not even be told apart. */
    readonly dialect: Dialect | 'unknown';
    readonly outcome: OutcomeKind;
    readonly eventName: string;
    readonly fault?: FaultCode;
  }): void;
  /** Event time → its first write acknowledged, final or provisional. */
  eventLag(lagMs: number): void;
  unknownEvent(eventName: string): void;
  messageSettled(kind: SettlementKind): void;
  /** A message about the wiring was handled. */
  serviceMessage(kind: 'test-event' | 'subscription-confirmation' | 'unsubscribe-confirmation'): void;
  /** A dead letter was sent. The body is never logged. */
  deadLettered(fact: { readonly code: FaultCode; readonly reason: string; readonly messageId: string }): void;
  bulkSent(fact: {
    readonly actions: number;
    readonly sizeBytes: number;
    readonly durationMs: number;
    readonly result: 'ok' | FaultCode;
  }): void;
  bulkAnswered(kind: 'written' | 'stale' | 'equal' | 'expired' | 'fault', count: number): void;
  bulkQueue(fact: { readonly actionsQueued: number; readonly requestsInFlight: number }): void;
  headSent(fact: { readonly durationMs: number; readonly result: 'present' | 'absent' | FaultCode }): void;
  heads(fact: { readonly queued: number; readonly inFlight: number }): void;
  /** A live document was, or was not, enriched. */
  enriched(fact: EnrichFact): void;
  held(messages: number): void;
  queueDepth(
    queue: 'bucket' | 'work' | 'dead-letter',
    depth: { readonly visible: number; readonly inFlight: number; readonly delayed: number },
  ): void;
  oldestMessageAge(ageMs: number): void;
  gapsOpen(open: readonly { readonly bucket: string; readonly kind: string; readonly count: number }[]): void;
  jobs(states: Readonly<Record<string, number>>): void;
  /** A shared fault began or ended; said once each. */
  paused(code: FaultCode, reason: string): void;
  resumed(code: FaultCode, pausedMs: number): void;
  /** A bucket's records are parked, or go on. */
  bucketParked(bucket: string, code: FaultCode, reason: string): void;
  bucketResumed(bucket: string): void;
  /** Receiving is held back, by reason, or not; told first when receiving begins. */
  receiving(state: 'on' | 'held-full' | 'in-flight-cap' | 'paused' | 'no-bucket'): void;
  /** How many workers would drain the backlog in time. */
  workersWanted(workers: number): void;
  /** Whether this process can do the role now. */
  ready(role: 'ingest' | 'reindex' | 'http', isReady: boolean): void;
  requestFailed(operation: string, code: FaultCode, reason: string): void;
  bucketConnected(bucket: string, by: string): void;
  unconnected(bucket: string, count: number): void;
  gapSeen(bucket: string, kind: string, reason: string): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** How one step of enriching one live document went. */
export interface EnrichFact {
  readonly bucket: string;
  readonly enrich: EnrichStep;
  readonly result: EnrichResult;
  /** Of a fault: what happened. May hold the key. */
  readonly reason?: string;
}

/** What became of a task of a range: taken, or why not; `invalid` for what is no task. */
export const taskResults = ['taken', 'leased', 'done', 'stale', 'poisonous', 'invalid'] as const;

export type TaskResult = (typeof taskResults)[number];

/** Facts about re-index; labels never hold keys or ids. */
export interface ReindexTelemetry {
  reindexTask(result: TaskResult): void;
  /** A turn ended: `on`, more is to do; `lost`, somebody else has the range. */
  reindexTurn(fact: {
    readonly mode: JobMode;
    readonly counts: ReconcileCounts;
    readonly result: 'on' | 'done' | 'braked' | 'lost' | FaultCode;
    readonly durationMs: number;
  }): void;
  /** A range was split, or no place was found to split it at. */
  reindexSplit(isSplit: boolean): void;
  /** Ranges in this worker's hands now. */
  reindexRanges(running: number): void;
  jobEnded(job: JobRecord): void;
}

/** Work of the calendar that looks through buckets. */
export const sweeps = ['unsettled', 'lifecycle', 'tombstones', 'full'] as const;

export type Sweep = (typeof sweeps)[number];

/** Facts about what the index does for itself; labels never hold keys or ids. */
export interface CalendarTelemetry {
  /** Gaps as they are stored now, by kind and state; what is not named is none. */
  gapStates(counts: readonly { readonly kind: GapKind; readonly state: GapRecord['state']; readonly count: number }[]): void;
  gapClosed(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'jobId'>): void;
  /** A job did not close the gap, or could not begin. */
  gapStays(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'waits'>): void;
  /** A sweep ended for one bucket: so many objects looked at, or tombstones purged. */
  sweepEnded(fact: { readonly sweep: Sweep; readonly bucket: string; readonly result: 'ok' | FaultCode; readonly objects: number }): void;
}
