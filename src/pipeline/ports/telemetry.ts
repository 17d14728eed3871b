/** The facts that become log lines and metrics. One adapter decides line, counter and labels; labels never contain keys or ids. */
import type { ConnectionCheck, WatchedState } from '../../domain/bucket.ts';
import type { BucketState } from '../../domain/bucket-status.ts';
import type { EnrichResult, EnrichRequestKind } from '../../domain/enrichment.ts';
import type { Dialect } from '../../domain/events/record.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { GapKind, GapRecord } from '../../domain/gaps/gap.ts';
import type { AuditRecord } from '../../domain/identity/audit.ts';
import type { OutcomeKind } from '../../domain/messages/outcome.ts';
import type { ShownCounts } from '../../domain/reindex/counts.ts';
import type { JobMode, JobRecord, JobState } from '../../domain/reindex/job.ts';
import type { IndexWriteAnswer } from './object-index.ts';

/** What a circuit stands for: the index store, one index in it, S3 in one region, one bucket there, or the requests that enrich its documents. */
export type CircuitLevel = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'enrichment';

export type SettlementKind = 'delete' | 'defer' | 'wait' | 'dead-letter' | 'give-back';

/** Facts about a process and its data path. */
export interface Telemetry extends ReindexTelemetry, CalendarTelemetry {
  recordEnded(fact: {
    /** `unknown`: the record was so broken that its dialect could not be recognised. */
    readonly dialect: Dialect | 'unknown';
    readonly outcome: OutcomeKind;
    readonly eventName: string;
    readonly fault?: FaultCode;
  }): void;
  /** The time from the event to its first acknowledged write, final or provisional. */
  eventLag(lagMs: number): void;
  unknownEvent(eventName: string): void;
  messageSettled(kind: SettlementKind): void;
  /** A message about the wiring of the queue was received. */
  serviceMessage(kind: 'test-event' | 'subscription-confirmation' | 'unsubscribe-confirmation'): void;
  /** A dead letter was sent. Its body is never logged. */
  deadLettered(fact: { readonly code: FaultCode; readonly reason: string; readonly messageId: string }): void;
  bulkSent(fact: {
    readonly actions: number;
    readonly sizeBytes: number;
    readonly durationMs: number;
    readonly result: 'ok' | FaultCode;
  }): void;
  bulkAnswered(kind: BulkAnswerKind, count: number): void;
  bulkQueue(fact: { readonly actionsQueued: number; readonly requestsInFlight: number }): void;
  headSent(fact: { readonly durationMs: number; readonly result: 'present' | 'absent' | FaultCode }): void;
  heads(fact: { readonly queued: number; readonly inFlight: number }): void;
  /** One step of enriching a live document ended, well or not. */
  enriched(fact: EnrichFact): void;
  held(messages: number): void;
  queueDepth(
    queue: 'bucket' | 'dead-letter',
    depth: { readonly visible: number; readonly inFlight: number; readonly delayed: number },
  ): void;
  oldestMessageAge(ageMs: number): void;
  gapsOpen(open: readonly { readonly kind: GapKind; readonly count: number; readonly oldestAgeMs: number }[]): void;
  /** The state of each stored job. */
  jobs(states: readonly JobState[]): void;
  /** A circuit opened or closed. `name`: the bucket or the region; empty for the cluster. */
  circuitOpened(fact: { readonly level: CircuitLevel; readonly name: string; readonly code: FaultCode; readonly reason: string }): void;
  circuitClosed(fact: { readonly level: CircuitLevel; readonly name: string; readonly openMs: number }): void;
  /** A record became an open gap, because this fault kept it from being served for too long. */
  folded(code: FaultCode): void;
  /** Whether messages are received, or why not. Reported at the first receive and at each change. */
  receiving(state: 'on' | 'held-full' | 'in-flight-cap' | 'paused' | 'no-bucket'): void;
  /** How many workers would drain the backlog within the target. */
  workersWanted(workers: number): void;
  /** Whether this process can do the role now. */
  ready(role: 'ingest' | 'reindex' | 'http', isReady: boolean): void;
  requestFailed(operation: string, code: FaultCode, reason: string): void;
  /** An audit record. It is logged whatever the log level is: the log is the second copy of the audit. */
  audited(record: AuditRecord): void;
  bucketConnected(bucket: string, by: string): void;
  unconnected(bucket: string, count: number): void;
  gapSeen(bucket: string, kind: string, reason: string): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** The answer to a bulk write, or `expired`: it was too old to be sent. */
export type BulkAnswerKind = IndexWriteAnswer['kind'] | 'expired';

/** How one step of enriching one live document ended. */
export interface EnrichFact {
  readonly bucket: string;
  readonly enrich: EnrichRequestKind;
  readonly result: EnrichResult;
  /** The reason of a fault. It may contain the key. */
  readonly reason?: string;
}

/** Whether a range that was due was taken, or why not. `leased`: another worker was faster. `early`: it is done, or not due any more. `poisonous`: too many workers died with it. */
export const claimResults = ['taken', 'leased', 'early', 'poisonous'] as const;

export type ClaimResult = (typeof claimResults)[number];

/** Facts about re-index. */
export interface ReindexTelemetry {
  reindexClaim(result: ClaimResult): void;
  /** A turn ended. `on`: there is more to do; `lost`: another worker has the range. */
  reindexTurn(fact: {
    readonly mode: JobMode;
    readonly counts: ShownCounts;
    readonly result: 'on' | 'done' | 'braked' | 'lost' | FaultCode;
    readonly durationMs: number;
  }): void;
  /** A range was split, or no key was found at which it could be split. */
  reindexSplit(isSplit: boolean): void;
  /** How many ranges this worker runs now. */
  reindexRanges(running: number): void;
  jobEnded(job: JobRecord): void;
}

/** The jobs of the calendar that visit every bucket. */
export const sweeps = ['unsettled', 'lifecycle', 'tombstones', 'full', 'connections'] as const;

export type Sweep = (typeof sweeps)[number];

/** Facts about the calendar: gaps that are closed and sweeps that run. */
export interface CalendarTelemetry {
  /** How many gaps are stored now, by kind and state. A pair that is not named has none. */
  gapStates(counts: readonly { readonly kind: GapKind; readonly state: GapRecord['state']; readonly count: number }[]): void;
  /** What the watch found last of the connection of each bucket, and how long the oldest pause of a notification has lasted. */
  connections(states: readonly WatchedState[], oldestPauseMs: number): void;
  /** The state of each connected bucket, and how long ago the whole of the one was compared that was compared least recently. */
  buckets(states: readonly BucketState[], oldestComparedAgeMs: number): void;
  /** The watch found a connection in another state than before. */
  connectionSeen(fact: { readonly bucket: string; readonly state: WatchedState; readonly findings: ConnectionCheck['findings'] }): void;
  gapClosed(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'jobId'>): void;
  /** The gap stays open: its job did not close it, or could not begin. */
  gapStays(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'waits'>): void;
  /** A sweep of one bucket ended. `objects`: how many objects it read, or how many tombstones it purged. */
  sweepEnded(fact: { readonly sweep: Sweep; readonly bucket: string; readonly result: 'ok' | FaultCode; readonly objects: number }): void;
}
