/**
 * A model of one bucket whose world changes at random: events get lost with and without a trace, parts in AWS break, deletions are
 * held back, reports are made, jobs fail; and of the process that receives: its index or the whole store takes nothing, S3 refuses
 * what enrichment reads, its queue is deleted, or it is killed. The product's own calendar, watch, gaps, records of processes and
 * statuses run on it, and another process tells the status; a job that is done copies the bucket to the index. Whatever has
 * happened, the status is never `ok` over a difference.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketRecordSchema } from '../../src/records/bucket.ts';
import type { BucketStatus } from '../../src/records/bucket-status.ts';
import { noCounts } from '../../src/records/comparison.ts';
import { jobSchema, type JobRecord } from '../../src/records/job.ts';
import type { Finding, Severity } from '../../src/connect/finding.rules.ts';
import { createLastEvents } from '../../src/indexer/arrivals.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { createHiddenMessages } from '../../src/indexer/waiting.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { FaultError, type Fault } from '../../src/base/fault.ts';
import { createBucketStatuses } from '../../src/observing/buckets.ts';
import { createCloseGaps } from '../../src/repair/close-gaps.ts';
import { visitCompare } from '../../src/repair/sweeps.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { keepHeld, noteArrivals, openNeverCompared, createGapReports } from '../../src/observing/gaps.ts';
import { changes } from '../../src/events/record.ts';
import { createCheckConnection, visitConnection } from '../../src/connect/watch.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { noteCompared } from '../../src/repair/job-ends.ts';
import { isLong } from '../support/breadth.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { reindexRequest } from '../support/requests.ts';
import { beginOrderNow } from '../support/worlds/begin-order.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const BUCKET = 'photos';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_MS = 7 * 24 * HOUR_MS;
const KEYS = ['a/1', 'a/2', 'b/1', 'b/2'] as const;
const never = new AbortController().signal;

type Step =
  | { readonly kind: 'put' | 'delete'; readonly key: string; readonly event: 'arrives' | 'lost' | 'reported' }
  | { readonly kind: 'wiring'; readonly severity: Severity | 'ok' }
  | { readonly kind: 'report' | 'reindex'; readonly prefix: '' | 'a/' }
  | { readonly kind: 'job'; readonly ends: 'done' | 'failed' | 'cancelled' }
  | { readonly kind: 'deletion-limit'; readonly isOn: boolean }
  | { readonly kind: 'process'; readonly fault: ProcessFault }
  | { readonly kind: 'pass'; readonly forMs: number };

/** What is the matter with the process that receives. */
const processFaults = ['none', 'index', 'store', 'queue', 'killed', 'enrichment'] as const;
type ProcessFault = (typeof processFaults)[number];

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), forMs: fc.constantFrom(MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 7 * HOUR_MS) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('job' as const),
      ends: fc.constantFrom('done' as const, 'done' as const, 'failed' as const, 'cancelled' as const),
    }),
  },
  fc.record({
    kind: fc.constantFrom('put' as const, 'delete' as const),
    key: fc.constantFrom(...KEYS),
    event: fc.constantFrom('arrives' as const, 'lost' as const, 'reported' as const),
  }),
  fc.record({ kind: fc.constant('wiring' as const), severity: fc.constantFrom('ok', 'broken', 'degraded', 'unknown') }),
  fc.record({ kind: fc.constantFrom('report' as const, 'reindex' as const), prefix: fc.constantFrom('' as const, 'a/' as const) }),
  fc.record({ kind: fc.constant('deletion-limit' as const), isOn: fc.boolean() }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('process' as const), fault: fc.constantFrom(...processFaults) }) },
);

const minute = { kind: 'pass', forMs: MINUTE_MS } as const;
const later = { kind: 'pass', forMs: 10 * MINUTE_MS } as const;
const done = { kind: 'job', ends: 'done' } as const;
const repaired = [minute, later, done, minute] as const;
/** A key that was lost, and whose removal was lost as well: it is nowhere. */
const vanished: Step[] = [
  { kind: 'put', key: 'a/1', event: 'reported' },
  later,
  { kind: 'delete', key: 'a/1', event: 'lost' },
  done,
  minute,
];

const arrives = { kind: 'put', key: 'a/1', event: 'arrives' } as const;
/** A worker is killed that has put its messages back, and then every process is suspended. */
const suspended: Step[] = [{ kind: 'process', fault: 'index' }, arrives, { kind: 'process', fault: 'killed' }, later];
/** An event while this is the matter, and then no longer. */
const ofFaults = processFaults.map((fault): [boolean, Step[]] => [
  true,
  [{ kind: 'process', fault }, arrives, minute, later, { ...arrives, key: 'b/1' }, { kind: 'process', fault: 'none' }, minute, done],
]);

async function createWorld() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const jobs = createReindexJobs({ state, clock, telemetry });
  const gaps = createGapReports({ state, clock, telemetry });
  const parts = { state, clock, telemetry };
  const startJob: Parameters<typeof createCloseGaps>[0]['startJob'] = (wanted, signal) => jobs.start(wanted, signal);
  const closeGaps = createCloseGaps({ ...parts, startJob, askToRepair: async () => ({ atMs: clock.nowMs() }) });
  let fault: ProcessFault = 'none';
  // one for all of them: in weeks of virtual time the cluster is asked half a million times
  const blockedStore = new FaultError('index.blocked', 'blocked');
  const probeCluster = async (): Promise<void> => {
    if (fault === 'store') throw blockedStore;
  };
  const circuits = createTestCircuits({ clock, telemetry, probeCluster });
  const hiddenMessages = createHiddenMessages(clock);
  /** The messages of the queue, each with the time from which it is visible. */
  const queue = new Map<string, { readonly key: string; fromMs: number }>();
  const noQueue: Fault = { code: 'queue.missing', reason: 'the queue does not exist' };
  const begin = (worker: string, receives: boolean) => {
    const processes = createProcesses({ state, clock });
    const faultOf = (): Fault | undefined => (fault === 'queue' ? noQueue : undefined);
    const notReceiving = () => (fault === 'queue' ? { fault: noQueue, forMs: 0 } : undefined);
    processes.introduce({
      worker,
      circuits: receives ? circuits : createTestCircuits({ clock, telemetry }),
      // those in flight too
      queueWatch: { messagesIn: () => queue.size, faultOf },
      bucketQueueUrls: ['http://queue'],
      receiving: receives ? { notReceiving, hidden: () => hiddenMessages.byBucket() } : undefined,
    });
    return processes;
  };
  const [worker, processes] = [begin('worker', true), begin('http', false)];
  const statuses = createBucketStatuses({ state, clock, processes, compareIntervalMs: WEEK_MS });
  const lastEvents = createLastEvents({ state, clock });
  let findings: readonly Finding[] = [];
  const checkConnection = createCheckConnection({
    state,
    gaps,
    clock,
    telemetry,
    connections: {
      diagnose: async () => ({
        findings: found(),
        passesBoth: true,
        ...(fault === 'enrichment' ? { refused: { key: 'a/1', reason: 'no' } } : { isReadable: true }),
      }),
    },
  });
  const connections = { removeEarlier: async () => undefined, probe: async () => undefined };
  const watching = { state, clock, telemetry, processes, connections, checkConnection };
  const [inBucket, inIndex] = [new Map<string, number>(), new Map<string, number>()];
  let version = 0;
  let isHeldBack = false;
  /** Changes of keys that the product knows to be missing: each is one that was reported, or that a report found. */
  const known = new Set<string>();

  function found(): readonly Finding[] {
    const part = { what: 'a part is not right', why: '', fix: '', blocks: false };
    if (fault === 'queue') return [{ ...part, code: 'connect.queue-missing', severity: 'broken' }];
    if (fault === 'enrichment') return [...findings, { ...part, code: 'connect.not-enriched', severity: 'degraded' }];
    return findings;
  }

  const fresh = { ...bucketRecord, bucket: BUCKET, enrich: 'tags', createdAtMs: clock.nowMs() };
  const first = { bucket: BUCKET, seenAtMs: clock.nowMs(), order: 0, isHeld: false, enrich: 'none' } as const;
  await openNeverCompared({ state, clock }, first, 'before');
  await updateRecord(state, refs.bucket(BUCKET), () => bucketRecordSchema.parse(fresh));

  const differing = (prefix = ''): readonly string[] =>
    [...new Set([...inBucket.keys(), ...inIndex.keys()])].filter((key) => key.startsWith(prefix) && inBucket.get(key) !== inIndex.get(key));

  function copy(key: string): void {
    const state_ = inBucket.get(key);
    if (state_ === undefined) inIndex.delete(key);
    else inIndex.set(key, state_);
    known.delete(key);
  }

  /** The job compares everything now. Its deletion limit may hold each deletion back. */
  async function finish(job: JobRecord): Promise<void> {
    const keys = differing(job.prefix);
    const phantoms = keys.filter((key) => !inBucket.has(key));
    const held = job.mode === 'apply' && isHeldBack ? phantoms : [];
    const nowMs = clock.nowMs();
    const beginOrder = await beginOrderNow(state, BUCKET, nowMs);
    await keepHeld(state, { ...job, coversBeforeMs: nowMs, beginOrder }, { held: held.length, isWhole: true, nowMs });
    const [missing, stale] = [
      keys.filter((key) => !inIndex.has(key)).length,
      keys.filter((key) => inBucket.has(key) && inIndex.has(key)).length,
    ];
    const counts = { ...noCounts, missing, stale, phantom: phantoms.length, held: held.length };
    if (job.mode === 'apply') for (const key of keys.filter((each) => !held.includes(each))) copy(key);
    else for (const key of keys) known.add(key);
    const covers = job.mode === 'apply' ? { coversBeforeMs: clock.nowMs(), beginOrder } : {};
    await clock.advance(1_000);
    await noteCompared(state, { ...job, ...covers }, { atMs: clock.nowMs(), counts });
    await set(job, { ...covers, state: 'done', counts, finishedAtMs: clock.nowMs() });
  }

  async function set({ id }: JobRecord, more: Partial<JobRecord>): Promise<void> {
    await updateRecord(state, refs.job(id), (current) => current && { ...current, ...more });
  }

  async function endJobs(ends: 'done' | 'failed' | 'cancelled'): Promise<void> {
    for (const job of await listAllRecords(state, 'job', jobSchema)) {
      if (job.state !== 'queued') continue;
      // it waits until index and S3 answer
      if (ends === 'done' && (fault === 'index' || fault === 'store' || fault === 'enrichment')) continue;
      if (ends === 'done') await finish(job);
      else await set(job, { state: ends });
    }
  }

  /** The worker handles what is visible: as it is in S3 by then, or it hides the message again. */
  function receive(): void {
    if (fault === 'killed' || fault === 'queue' || fault === 'store') return;
    for (const [id, message] of queue) {
      if (message.fromMs > clock.monotonicMs()) continue;
      if (fault === 'index') {
        const blocked: Fault = { code: 'bucket.index-blocked', reason: 'blocked' };
        circuits.indexFailed(BUCKET, blocked, { sentAtMs: clock.monotonicMs(), isWhole: true });
        message.fromMs = clock.monotonicMs() + 300_000;
        hiddenMessages.hidden(id, [BUCKET], { fault: blocked, delayS: 300 });
        continue;
      }
      copy(message.key);
      // without its tags, until a job reads them
      if (fault === 'enrichment' && inBucket.has(message.key)) {
        inIndex.set(message.key, -version);
        known.add(message.key);
        circuits.enrichmentRefused(BUCKET, message.key, { code: 'object.denied', reason: 'no' });
      }
      circuits.accepted(BUCKET);
      hiddenMessages.settled(id);
      queue.delete(id);
    }
  }

  /** The processes run for so long, and store what they know. */
  async function run(forMs: number): Promise<void> {
    for (let ms = 0; ms < forMs; ms += 15_000) {
      await clock.advance(15_000);
      receive();
      if (fault !== 'killed' && fault !== 'store') await worker.store();
      await processes.store();
    }
  }

  /** What a process cannot tell any longer is known within a minute, and that nobody receives a minute later. */
  async function beginFault(next: ProcessFault): Promise<void> {
    fault = next;
    if (next === 'store') circuits.clusterFailed({ code: 'index.blocked', reason: 'blocked' });
    if (next === 'queue') queue.clear();
    await run(105_000);
    await calendar();
  }

  async function calendar(): Promise<void> {
    await lastEvents.store();
    const record = await readRecord(state, refs.bucket(BUCKET));
    if (record !== undefined) {
      // S3's test event arrives by parts that are in order
      if (found().every(({ severity }) => severity === 'degraded')) await noteArrivals({ state, clock }, record, ['created', 'removed']);
      await visitConnection(watching, record, never);
      await visitCompare({ ...parts, startJob, intervalMs: WEEK_MS }, record, never);
    }
    await closeGaps(never);
  }

  async function change({ kind, key, event }: Extract<Step, { readonly kind: 'put' | 'delete' }>): Promise<void> {
    version += 1;
    if (kind === 'put') inBucket.set(key, version);
    else inBucket.delete(key);
    // a key that nobody has any longer is no difference, whatever was known of it
    if (!differing().includes(key)) known.delete(key);
    if (event === 'arrives' && fault === 'queue') known.add(key);
    else if (event === 'arrives') {
      queue.set(`${version}`, { key, fromMs: clock.monotonicMs() });
      known.add(key);
      await run(105_000);
      lastEvents.seen(
        { bucket: BUCKET, dialect: 'native', change: changes.created },
        { queueUrl: 'http://queue', sentAtMs: clock.nowMs() },
      );
    }
    if (event !== 'reported') return;
    if (differing().includes(key)) known.add(key);
    const told = gaps.report({ bucket: BUCKET, kind: 'loss', reason: 'a dead letter', seenAtMs: clock.nowMs() });
    await clock.advance(1_000);
    await told;
  }

  async function request(step: Extract<Step, { readonly kind: 'report' | 'reindex' }>): Promise<void> {
    const mode = step.kind === 'report' ? 'report' : 'apply';
    // another job may occupy the bucket
    await jobs.request(reindexRequest({ bucket: BUCKET, prefix: step.prefix, mode }), 'person').catch(() => undefined);
  }

  async function pass(forMs: number, everyMs: number): Promise<void> {
    for (let ms = 0; ms < forMs; ms += everyMs) {
      await clock.advance(everyMs);
      await run(15_000);
      await calendar();
      await endJobs('done');
    }
  }

  return {
    differing,
    known,
    pass,
    wire: (severity: Severity | 'ok') => {
      const finding = { code: 'connect.found', what: 'a part is not right', why: '', fix: '', blocks: false };
      findings = severity === 'ok' ? [] : [{ ...finding, severity }];
    },
    deletions: (isOn: boolean) => {
      isHeldBack = isOn;
    },
    async status(): Promise<BucketStatus> {
      const record = await readRecord(state, refs.bucket(BUCKET));
      if (record === undefined) throw new Error('the bucket is not connected');
      return statuses.of(record, 'everything');
    },
    async play(step: Step): Promise<void> {
      switch (step.kind) {
        case 'put':
        case 'delete':
          return change(step);
        case 'wiring':
          return this.wire(step.severity);
        case 'report':
        case 'reindex':
          return request(step);
        case 'job':
          return endJobs(step.ends);
        case 'deletion-limit':
          return this.deletions(step.isOn);
        case 'pass':
          await clock.advance(step.forMs);
          await run(15_000);
          return calendar();
        case 'process':
          return beginFault(step.fault);
      }
    },
  };
}

describe('the status of a bucket in a world that changes', () => {
  it('is never ok over a difference that is known, nor over any once all is quiet, and is ok again once all is mended', async () => {
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(steps, { maxLength: 25 }), async (isWell, story) => {
        const world = await createWorld();
        for (const step of isWell ? [...repaired, ...story] : story) {
          await world.play(step);
          const { state } = await world.status();
          if (world.known.size > 0) expect(state).not.toBe('ok');
        }
        // the scheduled compare finds what was lost without a trace
        await world.pass(3 * WEEK_MS, 6 * HOUR_MS);
        if (world.differing().length > 0) expect((await world.status()).state).not.toBe('ok');
        world.wire('ok');
        world.deletions(false);
        await world.play({ kind: 'process', fault: 'none' });
        await world.pass(2 * WEEK_MS, 6 * HOUR_MS);
        expect(world.differing()).toEqual([]);
        expect((await world.status()).sentence).toMatch(/^No known difference; compared/);
      }),
      { numRuns: isLong ? 100 : 40, examples: [[false, vanished], [true, suspended], ...ofFaults] },
    );
  });

  it.each<[BucketStatus['state'], readonly Step[]]>([
    ['ok', repaired],
    ['events_unproven', [{ kind: 'wiring', severity: 'broken' }, ...repaired]],
    ['never_compared', [minute]],
    ['gap_open', [...repaired, { kind: 'put', key: 'a/1', event: 'reported' }]],
    ['differs', [...repaired, { kind: 'put', key: 'a/1', event: 'lost' }, { kind: 'report', prefix: 'a/' }, done]],
    ['events_lost', [...repaired, { kind: 'wiring', severity: 'broken' }, { kind: 'pass', forMs: 7 * HOUR_MS }]],
    [
      'deletions_held',
      [
        ...repaired,
        { kind: 'put', key: 'a/1', event: 'arrives' },
        { kind: 'deletion-limit', isOn: true },
        { kind: 'delete', key: 'a/1', event: 'reported' },
        ...repaired,
      ],
    ],
    ['waiting', [...repaired, { kind: 'process', fault: 'index' }, arrives]],
    ['waiting', [...repaired, { kind: 'process', fault: 'store' }, arrives]],
    ['waiting', [...repaired, { kind: 'process', fault: 'killed' }, arrives]],
    ['waiting', [...repaired, { kind: 'process', fault: 'index' }, arrives, { kind: 'process', fault: 'none' }]],
    ['events_lost', [...repaired, { kind: 'process', fault: 'queue' }]],
    ['events_unproven', [...repaired, { kind: 'process', fault: 'queue' }, arrives, { kind: 'process', fault: 'none' }]],
    ['differs', [...repaired, { kind: 'process', fault: 'enrichment' }, arrives]],
    ['gap_open', [...repaired, { kind: 'process', fault: 'enrichment' }, arrives, minute, { kind: 'process', fault: 'none' }]],
    ['degraded', [...repaired, { kind: 'wiring', severity: 'degraded' }, { kind: 'pass', forMs: 7 * HOUR_MS }]],
  ])('is %s after a story of its kind', async (state, story) => {
    const world = await createWorld();
    for (const step of story) await world.play(step);
    expect((await world.status()).state).toBe(state);
  });
});
