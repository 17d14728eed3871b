import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { markId, withClosed, type GapReport } from '../../src/records/dirty.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import { listGaps } from '../../src/registry/operations/lists.ts';
import { absorbUnconnected, createGapReports, createReportUnconnected } from '../../src/observing/gaps.ts';
import type { StateEntry, StateStore } from '../../src/store/store.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { racingState } from '../support/fakes/racing-state.ts';
import { createIngestWorld, syntheticRecord } from '../support/worlds/ingest.ts';

async function connect(state: StateStore, bucket: string): Promise<void> {
  await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket));
}

async function setUp(wrap: (state: StateStore) => StateStore = (state) => state) {
  const { state: plainState } = createMemoryStore();
  const puts: string[] = [];
  const noting = guarded(plainState, (_, [entry]) => puts.push((entry as StateEntry).id), ['put']);
  const state = wrap(noting);
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const gaps = createGapReports({ state, clock, telemetry });
  await connect(plainState, 'photos');
  const reportUnconnected = createReportUnconnected({ state, clock, telemetry, gaps });
  const list = (request: Parameters<typeof listGaps>[1]) => listGaps({ state: plainState, clock }, request);
  return { state: plainState, clock, telemetry, gaps, reportUnconnected, puts, list };
}

function report(change: Partial<GapReport> = {}): GapReport {
  return { bucket: 'photos', kind: 'bulk-delete', reason: 'DeleteObjects', seenAtMs: 100, ...change };
}

/** Whether the promise is still pending after all that can run now has run. */
const isPending = (promise: Promise<unknown>): Promise<boolean> => Promise.race([promise.then(() => false), setImmediate(true)]);

describe('gap reports', () => {
  it('are stored when they resolve', async () => {
    const world = await setUp();
    await world.gaps.report(report());
    expect((await world.list({ limit: 100 })).items).toEqual([
      {
        id: markId('photos'),
        bucket: 'photos',
        sinceMs: 100,
        lastSeenMs: 100,
        firstReportedAtMs: world.clock.nowMs(),
        reportedAtMs: world.clock.nowMs(),
        order: 0,
        reasons: [{ kind: 'bulk-delete', count: 1, lastMs: 100, example: 'DeleteObjects' }],
        deletes: 'announced',
        failures: 0,
      },
    ]);
    expect(world.telemetry.recorded('warnOnce')).toEqual([
      [expect.stringMatching(/^gap is open: /), markId('photos'), { bucket: 'photos', why: 'DeleteObjects' }],
    ]);
  });

  it('of one kind are summed up into one write a second, and resolve with it', async () => {
    const world = await setUp();
    await world.gaps.report(report({ seenAtMs: 500 }));
    const waiting = [400, 700, 600].map((seenAtMs) => world.gaps.report(report({ seenAtMs, reason: `at ${seenAtMs}` })));
    const other = world.gaps.report(report({ kind: 'loss' }));
    expect(await isPending(other)).toBe(false);
    expect(await isPending(Promise.race(waiting))).toBe(true);
    await world.clock.advance(1_000);
    await Promise.all(waiting);
    expect(world.puts).toEqual(Array.from({ length: 3 }, () => markId('photos')));
    expect((await world.list({ limit: 100 })).items[0]).toMatchObject({
      sinceMs: 100,
      lastSeenMs: 700,
      reasons: [
        { kind: 'bulk-delete', count: 4, example: 'at 600' },
        { kind: 'loss', count: 1 },
      ],
    });
  });

  it('of which one needs tags make a gap that needs them, whichever comes first', async () => {
    for (const reports of [
      [{ tags: true }, {}],
      [{}, { tags: true }],
    ] as const) {
      const world = await setUp();
      await world.gaps.report(report({ kind: 'handed-over' }));
      const both = reports.map((each) => world.gaps.report(report({ kind: 'handed-over', ...each })));
      await world.clock.advance(1_000);
      await Promise.all(both);
      expect((await world.list({ limit: 100 })).items).toMatchObject([{ readTags: true, reasons: [{ count: 3 }] }]);
    }
  });

  it('that arrive while a write is in flight join the next one', async () => {
    const holding = Promise.withResolvers<void>();
    const interfere = () => holding.promise;
    const world = await setUp((state) => racingState(state, { times: 1, matches: () => true, interfere }));
    const first = world.gaps.report(report());
    expect(await isPending(first)).toBe(true);
    const later = [world.gaps.report(report()), world.gaps.report(report())];
    holding.resolve();
    await first;
    expect((await world.list({ limit: 100 })).items).toMatchObject([{ reasons: [{ count: 1 }] }]);
    await world.clock.advance(1_000);
    await Promise.all(later);
    expect((await world.list({ limit: 100 })).items).toMatchObject([{ reasons: [{ count: 3 }] }]);
  });

  it('all fail when the write fails, and the next one writes again', async () => {
    const fault = new FaultError('index.unreachable', 'gone');
    const world = await setUp((state) => racingState(state, { times: 1, matches: () => true, interfere: () => Promise.reject(fault) }));
    const failing = [world.gaps.report(report()), world.gaps.report(report())];
    const answers = Promise.allSettled(failing);
    await world.clock.advance(1_000);
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });

  it('of a bucket that is not connected are dropped', async () => {
    const world = await setUp();
    await world.gaps.report(report({ bucket: 'elsewhere' }));
    expect((await world.list({ limit: 100 })).items).toEqual([]);
  });
});

describe('reports of unconnected names', () => {
  it('count every event in one write a second', async () => {
    const world = await setUp();
    await world.reportUnconnected('elsewhere', 500);
    const waiting = [700, 300].map((seenAtMs) => world.reportUnconnected('elsewhere', seenAtMs));
    await world.clock.advance(1_000);
    await Promise.all(waiting);
    const record = await readRecord(world.state, refs.unconnected('elsewhere'));
    expect(record).toEqual({ bucket: 'elsewhere', count: 3, firstSeenMs: 300, lastSeenMs: 700 });
    expect(world.puts).toHaveLength(2);
    expect(world.telemetry.values('tally_unconnected_records_total')).toEqual([1, 2]);
    const bucket = 'elsewhere';
    expect(world.telemetry.logged('events received for a bucket that is not connected')).toEqual([{ bucket }, { bucket }]);
  });

  it('keep at most 1,000 names, and go on counting those that are known', async () => {
    const world = await setUp();
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => world.reportUnconnected(`name-${index}`, 1)));
    await world.reportUnconnected('one-too-many', 1);
    expect(await world.state.count('unconnected')).toBe(1_000);
    expect(world.telemetry.recorded('warnOnce').at(-1)?.[1]).toBe('one-too-many');
    expect(world.telemetry.values('tally_unconnected_records_total')).toHaveLength(1_001);
    await world.clock.advance(1_000);
    await world.reportUnconnected('name-7', 2);
    expect(await readRecord(world.state, refs.unconnected('name-7'))).toMatchObject({ count: 2 });
    // Fix: nor is a bucket that was connected meanwhile
    await connect(world.state, 'docs');
    await world.reportUnconnected('docs', 1);
    expect((await world.list({ bucket: 'docs', limit: 100 })).items).toMatchObject([
      { reasons: [{ example: 'events arrived before the bucket was connected' }], lastSeenMs: world.clock.nowMs() },
    ]);
  });

  it('open a gap that is not older than the event, though this machine’s clock is slow', async () => {
    const world = await setUp();
    const sentAtMs = world.clock.nowMs() + 3_600_000;
    await world.reportUnconnected('docs', sentAtMs);
    await connect(world.state, 'docs');
    await absorbUnconnected(world, 'docs');
    await world.reportUnconnected('photos', sentAtMs);
    expect((await world.list({ limit: 100 })).items.map(({ lastSeenMs }) => lastSeenMs)).toEqual([sentAtMs, sentAtMs]);
  });
});

describe('the list of gaps', () => {
  async function filled() {
    const world = await setUp();
    for (const bucket of ['photos-2', 'photo']) await connect(world.state, bucket);
    for (const bucket of ['photos-2', 'photos', 'photo']) {
      await world.gaps.report(report({ bucket }));
      await world.gaps.report(report({ bucket, key: 'k' }));
      const nowMs = world.clock.nowMs();
      const both = [1, 2].reduce<ReturnType<typeof withClosed> | undefined>(
        (history, number) => withClosed(history, markSeenAt(number, { bucket }), { jobId: `job-${number}`, nowMs }),
        undefined,
      );
      await updateRecord(world.state, refs.gapHistory(bucket), () => both ?? { bucket, closed: [] });
    }
    return world;
  }
  const named = (gap: { readonly bucket: string; readonly prefix?: string | undefined; readonly jobId?: string | undefined }) =>
    `${gap.bucket} ${gap.prefix ?? ''}${gap.jobId ?? ''}`;

  it('filters by bucket and by state', async () => {
    const { list, clock } = await filled();
    expect((await list({ limit: 100 })).items).toHaveLength(6);
    expect((await list({ bucket: 'photos', limit: 100 })).items.map(named)).toEqual(['photos ', 'photos k']);
    expect((await list({ state: 'closed', limit: 100 })).items).toHaveLength(6);
    expect((await list({ bucket: 'photos', state: 'closed', limit: 100 })).items.map(named)).toEqual(['photos job-1', 'photos job-2']);
    // the second of each bucket was closed a millisecond after the first
    const closedAfter = { state: 'closed', closed_after: new Date(clock.nowMs()).toISOString(), limit: 100 } as const;
    expect((await list(closedAfter)).items.map(named)).toEqual(['photo job-2', 'photos-2 job-2', 'photos job-2']);
    expect((await list({ bucket: 'none', limit: 100 })).items).toEqual([]);
  });

  it.each(['open', 'closed'] as const)('of those that are %s comes in pages', async (state) => {
    const { list } = await filled();
    const all = (await list({ state, limit: 100 })).items.map(named);
    const paged: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list({ state, limit: 1, ...(cursor !== undefined && { cursor }) });
      paged.push(...page.items.map(named));
      cursor = page.next;
    } while (cursor !== undefined);
    expect(paged).toEqual(all);
  });
});

it('a bulk delete of a routed bucket marks it, also where the keys are reported one by one', async () => {
  const world = await createIngestWorld({ bucket: { source: 'routed' } });
  const eventTimeMs = world.clock.nowMs() - 60_000;
  for (const key of ['a', 'b']) await world.send(syntheticRecord(key, { eventName: 'DeleteObject', eventTimeMs }));
  await world.tell(syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs }), 3_000);
  expect(await world.gaps()).toMatchObject([
    { deletes: 'announced', lastSeenMs: eventTimeMs, reasons: [{ kind: 'bulk-delete', count: 1 }] },
  ]);
});
