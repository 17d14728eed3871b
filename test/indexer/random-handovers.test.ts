/**
 * Random interleavings of workers that hand records over, reconciles that close gaps, crashes and wrong clocks. Whatever the order, a
 * record that was acknowledged has an open gap that a reconcile will close, or a reconcile has run that began after its change.
 */
import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterLook, markSchema, type DirtyMark } from '../../src/records/dirty.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { JobRecord } from '../../src/records/job.ts';
import { createHandover, type HandedOverRecord, type Handover } from '../../src/indexer/handover.ts';
import type { StateStore } from '../../src/store/store.ts';
import { listAllRecords, parseEntry, refs, updateRecord } from '../../src/store/stored.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { beginOrderNow } from '../support/worlds/begin-order.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const BUCKET = 'photos';
const DAY_MS = 86_400_000;
const WORKERS = 3;

/** A record that a worker was allowed to acknowledge. */
interface Acknowledged {
  readonly change: HandedOverRecord['change'];
  readonly key: string | undefined;
  /** When S3 made the change, by S3's clock. */
  readonly changedAtMs: number;
}

interface Reconcile {
  readonly beginOrder: number;
  /** By S3's clock. */
  readonly beganAtMs: number;
  readonly prefix: string;
  readonly tags: boolean;
}

const handoverOf = fc.record({
  worker: fc.nat({ max: WORKERS - 1 }),
  change: fc.constantFrom('delete' as const, 'tags' as const, 'other' as const),
  key: fc.option(fc.constantFrom('a', 'ab', 'b'), { nil: undefined, freq: 4 }),
  /** How long before it is handed over the change was made, and how long after the change the message was sent. */
  agoMs: fc.constantFrom(0, 900, 30_000, 700_000, DAY_MS),
  sentAfterMs: fc.constantFrom(0, 1_500, 120_000),
  eventTime: fc.constantFrom('whole second' as const, 'absent' as const, 'far ahead' as const, 'long ago' as const),
});

type Step =
  | { readonly kind: 'handOver'; readonly handOver: typeof handoverOf extends fc.Arbitrary<infer Drawn> ? Drawn : never }
  | { readonly kind: 'wait'; readonly forMs: number }
  | { readonly kind: 'reconcile begins'; readonly prefix: string; readonly tags: boolean }
  | { readonly kind: 'reconcile ends' }
  | { readonly kind: 'crash'; readonly worker: number }
  | { readonly kind: 'store fails'; readonly puts: number };

const stepOf: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('handOver' as const), handOver: handoverOf }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), forMs: fc.constantFrom(1, 400, 5_000, 12_000, 90_000) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('reconcile begins' as const), prefix: fc.constantFrom('', 'a'), tags: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: 'reconcile ends' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), worker: fc.nat({ max: WORKERS - 1 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('store fails' as const), puts: fc.constantFrom(1, 2) }) },
);

interface Clocks {
  /** How wrong the clock of each worker is. */
  readonly skewsMs: readonly number[];
  /** The clock of SQS against that of S3. */
  readonly sqsSkewMs: number;
}

const clocksOf = fc.record({
  skewsMs: fc.array(fc.constantFrom(0, -3_000, 4_000, -DAY_MS, 3_600_000), { minLength: WORKERS, maxLength: WORKERS }),
  sqsSkewMs: fc.integer({ min: -900, max: 900 }),
});

async function createWorld({ skewsMs, sqsSkewMs }: Clocks) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  await updateRecord(state, refs.bucket(BUCKET), () => ({ ...bucketRecord, bucket: BUCKET }));
  const acknowledged: Acknowledged[] = [];
  let running: Reconcile[] = [];
  const ended: Reconcile[] = [];
  let failingPuts = 0;
  let workers = skewsMs.map(startWorker);

  function startWorker(skewMs: number): { readonly handover: Handover; readonly crash: () => void } {
    const dead = new AbortController();
    const own = { ...clock, nowMs: () => clock.nowMs() + skewMs };
    const handover = createHandover({
      state: leftAt(dead.signal),
      clock: own,
      telemetry: createFakeTelemetry(),
      permission: { isPermitted: true },
    });
    return { handover, crash: () => dead.abort(new Error('crashed')) };
  }

  /** The store as a worker sees it until it crashes: a put may be its last act, whose answer it never gets. */
  function leftAt(dead: AbortSignal): StateStore {
    const never = new Promise<never>(() => {});
    return {
      ...state,
      get: (...args) => (dead.aborted ? never : state.get(...args)),
      put: async (...args) => {
        if (dead.aborted) return never;
        failingPuts -= 1;
        if (failingPuts >= 0) throw new FaultError('index.unreachable', 'gone');
        const answer = await state.put(...args);
        await setImmediate();
        return dead.aborted ? never : answer;
      },
    };
  }

  function handOver({ worker, change, key, agoMs, sentAfterMs, eventTime }: Extract<Step, { kind: 'handOver' }>['handOver']): void {
    const changedAtMs = clock.nowMs() - agoMs;
    const eventTimes = {
      'whole second': Math.floor(changedAtMs / 1_000) * 1_000,
      absent: undefined,
      'far ahead': changedAtMs + DAY_MS,
      'long ago': changedAtMs - DAY_MS,
    };
    const sentAtMs = changedAtMs + sentAfterMs + sqsSkewMs;
    const record = { bucket: BUCKET, change, sentAtMs, eventTimeMs: eventTimes[eventTime], reason: 's3.unavailable' };
    workers[worker]?.handover.handOver({ ...record, ...(key !== undefined && { key }) }).then(
      () => acknowledged.push({ change, key, changedAtMs }),
      () => undefined,
    );
  }

  /** The first LIST page is older than now by the time that the request took, and states whole seconds. */
  async function begin(prefix: string, tags: boolean): Promise<void> {
    const beginOrder = await beginOrderNow(state, BUCKET, clock.nowMs());
    running.push({ beginOrder, beganAtMs: Math.floor((clock.nowMs() - 200) / 1_000) * 1_000, prefix, tags });
  }

  async function end(): Promise<void> {
    const [first, ...rest] = running;
    if (first === undefined) return;
    running = rest;
    ended.push(first);
    const { beganAtMs: coversBeforeMs, beginOrder, prefix, tags } = first;
    const facts = { id: 'job-1', bucket: BUCKET, mode: 'apply', requestedBy: 'gap', state: 'done', createdAtMs: 0 } as const;
    const job: JobRecord = { ...facts, prefix, coversBeforeMs, beginOrder, ...(tags && { tags }) };
    for (const { id } of await gaps()) {
      const entry = await state.get(id);
      if (entry === undefined) continue;
      const look = { named: undefined, latest: job, nowMs: clock.nowMs(), repaired: undefined };
      if ('closedBy' in afterLook(parseEntry(entry, markSchema), look)) await state.remove(id, entry.version);
    }
  }

  const gaps = () => listAllRecords(state, 'gap', markSchema);

  async function take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'handOver':
        return handOver(step.handOver);
      case 'wait':
        return clock.advance(step.forMs);
      case 'reconcile begins':
        return begin(step.prefix, step.tags);
      case 'reconcile ends':
        return end();
      case 'crash':
        workers[step.worker]?.crash();
        workers = workers.map((worker, number) => (number === step.worker ? startWorker(skewsMs[number] ?? 0) : worker));
        return;
      case 'store fails':
        failingPuts = step.puts;
    }
  }

  return { clock, acknowledged, ended, gaps, take, begin, end };
}

function isRepaired({ change, key, changedAtMs }: Acknowledged, ended: readonly Reconcile[]): boolean {
  return ended.some(
    ({ beganAtMs, prefix, tags }) => beganAtMs > changedAtMs && (key ?? '').startsWith(prefix) && (change !== 'tags' || tags),
  );
}

function isWaiting({ change, key, changedAtMs }: Acknowledged, marks: readonly DirtyMark[]): boolean {
  // a mark of deletions alone has no limit, so it must not stand for another change
  const isOf = ({ prefix, lastSeenMs, readTags, deletes }: DirtyMark): boolean =>
    prefix === key &&
    lastSeenMs >= changedAtMs &&
    (change !== 'tags' || readTags === true) &&
    (change === 'delete' || deletes === 'limited');
  return marks.some(isOf);
}

describe('a record that was handed over', () => {
  it('is waited for by an open gap, or was covered by a reconcile that began after its change: in every history', async () => {
    let acknowledgedInAll = 0;
    let repairedEarly = 0;
    await fc.assert(
      fc.asyncProperty(clocksOf, fc.array(stepOf, { minLength: 5, maxLength: 40 }), async (clocks, steps) => {
        const world = await createWorld(clocks);
        for (const step of steps) {
          await world.take(step);
          await world.clock.advance(0);
          const gaps = await world.gaps();
          for (const each of world.acknowledged)
            expect(isWaiting(each, gaps) || isRepaired(each, world.ended), JSON.stringify(each)).toBe(true);
        }
        acknowledgedInAll += world.acknowledged.length;
        repairedEarly += world.acknowledged.filter((each) => isRepaired(each, world.ended)).length;
        // the outage ends: a reconcile that begins after all that was seen closes everything
        await world.clock.advance(3 * DAY_MS);
        await world.begin('', true);
        while ((await world.gaps()).length > 0) await world.end();
        expect(world.acknowledged.filter((each) => !isRepaired(each, world.ended))).toEqual([]);
      }),
      { numRuns: 150 },
    );
    // the histories are not trivial
    expect(acknowledgedInAll).toBeGreaterThan(150);
    expect(repairedEarly).toBeGreaterThan(10);
  }, 60_000);
});
