/**
 * How what each process knows about itself reaches every bucket's status in every process: as a small record per process, stored
 * every 15 s. For its own part, a process uses what it knows at present.
 *
 *   circuits, receiving, hidden messages ──► record of the process ──► troubles of every process ──► status, doctor, explain, metrics
 *
 * Machines' clocks differ, so a process measures by its own clock for how long another one's record has stayed the same.
 */
import { defined } from '../base/defined.ts';
import { mayBeFedBy, type BucketRecord } from '../records/bucket.ts';
import { type Fault, faults } from '../base/fault.ts';
import { processRecordSchema, SETTLED_MS, type Hidden, type ProcessRecord, type Trouble } from '../records/receiving.ts';
import type { WithPorts } from '../store/store.ts';
import type { QueueWatch } from './queue-watch.ts';
import { listAllRecords, refs, removeRecord, updateRecord } from '../store/stored.ts';
import type { Circuits } from './circuits.ts';
import { createLastLook, OK, type CheckSource } from './readiness.ts';

/** How often a process stores what it knows. */
export const PROCESS_STORED_MS = 15_000;
/** If a process's record stays the same for this long, the process has ended or cannot store. */
const LIFE_MS = 60_000;
/** How long messages may wait in a queue that no process receives from: restarting or replacing a process takes some time. */
const UNRECEIVED_MS = 60_000;
/** A failed receive may be chance, so it is reported only after this time; a missing queue is reported at once. */
const FAILING_MS = 15_000;
/** When to remove the records of killed processes: by then none of their messages is hidden. */
const KEPT_MS = 86_400_000;

const NOT_RECEIVED = 'queue.not-received';

/** What this process's role ingest knows about itself. */
export interface Receiving {
  /** Why nothing is received from the queue, and for how long; undefined while messages are received. */
  readonly notReceiving: (queueUrl: string) => { readonly fault: Fault; readonly forMs: number } | undefined;
  /** The messages that were put back because they could not be served, and that still wait. */
  readonly hidden: () => readonly Hidden[];
}

/** This process. */
export interface Self {
  readonly worker: string;
  readonly circuits: Pick<Circuits, 'all'>;
  readonly queueWatch: Pick<QueueWatch, 'messagesIn' | 'faultOf'>;
  readonly bucketQueueUrls: readonly string[];
  /** Absent if the process does not have the role ingest. */
  readonly receiving?: Receiving | undefined;
}

export interface Processes {
  /** Introduces this process. Until then only what others have stored is known. */
  introduce(self: Self): void;
  /** Stores what this process knows; call it repeatedly. Throws the store's fault. */
  readonly store: () => Promise<void>;
  /** Stores that this process ends, and what it leaves hidden. Throws the store's fault. */
  readonly end: () => Promise<void>;
  /** What keeps events from the index, as far as any process knows. Throws the store's fault. */
  readonly troubles: () => Promise<readonly Trouble[]>;
  /** Whether messages wait in a queue that no process receives from. */
  readonly check: CheckSource['check'];
}

/** When another process's record was last seen to change, by this process's monotonic clock. */
interface Sight {
  readonly seenAtMs: number;
  readonly sinceMs: number;
}

export function createProcesses({ state, clock }: WithPorts<'state' | 'clock'>): Processes {
  let self: Self | undefined;
  const sights = new Map<string, Sight>();
  /** When a process was last known to receive from a queue, and since when messages wait there, by the monotonic clock. */
  const receivedMs = new Map<string, number>();
  const waitingMs = new Map<string, number>();
  let unreceived: readonly Trouble[] = [];
  const lastLook = createLastLook(clock, 'the bucket queues');

  /** For how long the record has stayed the same. A record seen for the first time is taken at its word, unless it comes from the future. */
  function ageMs({ worker, seenAtMs }: ProcessRecord): number {
    const nowMs = clock.monotonicMs();
    const before = sights.get(worker);
    if (before?.seenAtMs === seenAtMs) return nowMs - before.sinceMs;
    const sinceMs = before === undefined ? nowMs - Math.max(0, clock.nowMs() - seenAtMs) : nowMs;
    sights.set(worker, { seenAtMs, sinceMs });
    return nowMs - sinceMs;
  }

  async function others(): Promise<readonly ProcessRecord[]> {
    const all = await listAllRecords(state, 'process', processRecordSchema);
    const names = new Set(all.map(({ worker }) => worker));
    for (const worker of sights.keys()) if (!names.has(worker)) sights.delete(worker);
    return all.filter(({ worker }) => worker !== self?.worker);
  }

  /** What this process knows. Without the role ingest no events wait in it, but it still reports that the index store fails if no other process receives. */
  function ownRecords(fresh: readonly ProcessRecord[]): readonly ProcessRecord[] {
    if (self === undefined) return [];
    const { worker, circuits, receiving, bucketQueueUrls } = self;
    const isAlone = !fresh.some((each) => each.receives.length > 0);
    const open = circuits
      .all()
      .filter(({ level }) => receiving !== undefined || (level === 'cluster' && isAlone))
      .map(({ level, name, key, sinceMs, fault: { code, reason } }) => ({ level, name, code, reason, sinceMs, ...defined({ key }) }));
    const receives = receiving === undefined ? [] : bucketQueueUrls.filter((url) => receiving.notReceiving(url) === undefined);
    return [
      {
        worker,
        seenAtMs: clock.nowMs(),
        receives,
        troubles: [...open, ...queueTroubles(self, receives)],
        hidden: [...(receiving?.hidden() ?? [])],
      },
    ];
  }

  function queueTroubles({ bucketQueueUrls, receiving, queueWatch }: Self, receives: readonly string[]): readonly Trouble[] {
    return bucketQueueUrls.flatMap((url) => {
      const failing = receiving?.notReceiving(url);
      const missing = queueWatch.faultOf(url);
      const isSure = missing?.code === 'queue.missing' && !receives.includes(url);
      const fault = isSure ? missing : failing !== undefined && failing.forMs >= FAILING_MS ? failing.fault : undefined;
      if (fault === undefined) return unreceived.filter(({ name }) => name === url);
      return [troubleOf(url, fault, failing?.forMs ?? 0)];
    });
  }

  function troubleOf(url: string, { code, reason }: Pick<Trouble, 'code' | 'reason'>, forMs: number): Trouble {
    const otherQueues = self?.bucketQueueUrls.filter((each) => each !== url) ?? [];
    return { level: 'queue', name: url, code, reason, sinceMs: clock.nowMs() - forMs, otherQueues };
  }

  /** The queues in which messages wait while no process receives. Time during which the store does not answer does not count. */
  function notReceived(receiving: ReadonlyMap<string, number>): readonly Trouble[] {
    if (self === undefined) return [];
    const { bucketQueueUrls, queueWatch } = self;
    const nowMs = clock.monotonicMs();
    return bucketQueueUrls.flatMap((url) => {
      // messages in flight count too: a process that has ended received them
      const count = queueWatch.messagesIn(url);
      if (count === 0) waitingMs.delete(url);
      else if (!waitingMs.has(url)) waitingMs.set(url, nowMs);
      const lastMs = receiving.get(url) ?? receivedMs.get(url) ?? nowMs;
      receivedMs.set(url, lastMs);
      const forMs = nowMs - Math.max(lastMs, waitingMs.get(url) ?? nowMs);
      if (forMs <= UNRECEIVED_MS) return [];
      return [troubleOf(url, { code: NOT_RECEIVED, reason: unreceivedText(count, forMs) }, forMs)];
    });
  }

  async function readKnown() {
    const stored = await others();
    const fresh = stored.filter((each) => ageMs(each) < LIFE_MS);
    const mine = ownRecords(fresh);
    const all = [...mine, ...fresh];
    /** When a process was last seen to receive from each queue, by the monotonic clock. */
    const receiving = new Map<string, number>();
    for (const each of all) {
      const atMs = clock.monotonicMs() - (fresh.includes(each) ? ageMs(each) : 0);
      for (const url of each.receives) receiving.set(url, Math.max(atMs, receiving.get(url) ?? -Infinity));
    }
    const troubles = all.flatMap((each) => each.troubles).filter(({ level, name }) => level !== 'queue' || !receiving.has(name));
    const hidden = [...mine.map((each) => hiddenIn(each, 0)), ...stored.map((each) => hiddenIn(each, ageMs(each)))].flat();
    return { stored, fresh, receiving, troubles: [...troubles, ...hidden] };
  }

  /** What the process has hidden, by its record of this age, even if the process has ended. */
  function hiddenIn({ hidden }: ProcessRecord, recordMs: number): readonly Trouble[] {
    return hidden
      .filter(({ leftMs }) => recordMs < leftMs + SETTLED_MS)
      .map(({ bucket, code, sinceMs, leftMs }) => {
        const untilMs = clock.nowMs() + Math.max(0, leftMs - recordMs);
        const reason = `Tally has put messages back into the queue, and receives them again by ${new Date(untilMs).toISOString()}`;
        return { level: 'hidden', name: bucket, code, reason, sinceMs };
      });
  }

  return {
    introduce(named) {
      self = named;
    },
    async store() {
      let records;
      try {
        records = await readKnown();
      } catch (error) {
        receivedMs.clear();
        throw error;
      }
      unreceived = notReceived(records.receiving);
      for (const record of ownRecords(records.fresh)) await updateRecord(state, refs.process(record.worker), () => record, 'soon');
      for (const each of records.stored) if (ageMs(each) > KEPT_MS) await removeRecord(state, refs.process(each.worker).id);
      // while a queue cannot be read, it is unknown how much waits in it
      if (self?.bucketQueueUrls.every((url) => self?.queueWatch.faultOf(url) === undefined) === true) lastLook.looked();
    },
    async end() {
      for (const record of ownRecords([]))
        await updateRecord(state, refs.process(record.worker), () => ({ ...record, receives: [], troubles: [] }), 'soon');
    },
    troubles: async () => (await readKnown()).troubles,
    check() {
      if (unreceived.length === 0) return lastLook.unknown() ?? OK;
      const detail = unreceived.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
      return { status: 'warning', code: NOT_RECEIVED, detail, advice: faults[NOT_RECEIVED].advice };
    },
  };
}

function unreceivedText(count: number, forMs: number): string {
  const minutes = Math.floor(forMs / 60_000);
  const wait = count === 1 ? '1 message waits' : `${count} messages wait`;
  return `${wait} in the bucket queue, and no process has received for ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`;
}

/** How long a trouble may take from the process that has it to the check, by two clocks. */
const TOLD_MS = 120_000;

/** The troubles of this bucket: what its events wait for, and what keeps its documents from being enriched. */
export function troublesOf(
  troubles: readonly Trouble[],
  record: BucketRecord,
  nowMs: number,
): { readonly waitsFor: Trouble | undefined; readonly unread: Trouble | undefined } {
  const { bucket, enrich, connectionCheck: check } = record;
  // a later check by the watch counts more
  const unread = troubles.find(
    (each) => each.level === 'enrichment' && each.name === bucket && each.sinceMs > (check?.atMs ?? 0) - TOLD_MS,
  );
  return { waitsFor: waitOf(troubles, record, nowMs), unread: enrich === 'none' ? undefined : unread };
}

/** What this bucket's events wait for, the most telling trouble first; hidden messages last, because what hid them may be over. */
function waitOf(troubles: readonly Trouble[], record: BucketRecord, nowMs: number): Trouble | undefined {
  const named = (level: Trouble['level'], name: string): Trouble | undefined =>
    troubles.filter((each) => each.level === level && each.name === name).toSorted((a, b) => a.sinceMs - b.sinceMs)[0];
  return (
    troubles.find((each) => isMissingQueueOf(each, record, nowMs)) ??
    named('index', record.bucket) ??
    named('cluster', '') ??
    troubles.find((each) => isQueueOf(each, record, nowMs)) ??
    named('endpoint', record.region) ??
    named('bucket', record.bucket) ??
    named('hidden', record.bucket)
  );
}

function isMissingQueueOf(trouble: Trouble, record: BucketRecord, nowMs: number): boolean {
  return trouble.code === 'queue.missing' && isQueueOf(trouble, record, nowMs);
}

function isQueueOf({ level, name, otherQueues: others = [] }: Trouble, record: BucketRecord, nowMs: number): boolean {
  return level === 'queue' && mayBeFedBy(record, { queueUrls: [name], others, nowMs });
}
