import { describe, expect, it } from 'vitest';
import { clockOfMs } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { ObserveHint, ResolveHint } from '../../src/ordering/hint.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createBulkWriter } from '../../src/observing/bulk-writer.ts';
import { createObserving, type ObserveAnswer } from '../../src/observing/observer.ts';
import type { ObjectStorage } from '../../src/aws/storage.ts';
import { createLiveLoad } from '../../src/observing/live-load.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

async function setUp(concurrency = 4) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = createBreakableStore();
  await store.objects.createBucket('b');
  const storage = createFakeStorage(clock);
  storage.createBucket('b');
  const stopping = new AbortController();
  let answering: Promise<void> = Promise.resolve();
  const slowStorage: ObjectStorage = {
    ...storage,
    readState: async (...args) => {
      const seen = await storage.readState(...args);
      await Promise.race([answering, new Promise((_, reject) => args[2]?.addEventListener('abort', () => reject(new Error('aborted'))))]);
      return seen;
    },
  };
  const circuits = createTestCircuits({ clock, telemetry });
  const write = createBulkWriter({
    objects: store.objects,
    clock,
    telemetry,
    circuits,
    limits: { actionsMax: 100, bytesMax: 1e6, lingerMs: 0, concurrency: 4 },
  });
  const load = createLiveLoad({ clock, telemetry, heldMax: 100, bulkConcurrency: 4 });
  const observing = createObserving({
    storage: slowStorage,
    index: store,
    write,
    clock,
    telemetry,
    circuits,
    concurrency,
    stopped: stopping.signal,
    load,
  });
  const bucket = recordOf('b', { source: 'routed', versioning: { status: 'unknown', observedAtMs: 0 } });
  const answers: ObserveAnswer[] = [];
  return {
    clock,
    telemetry,
    store,
    storage,
    stopping,
    answers,
    holdAnswers: () => {
      const held = Promise.withResolvers<void>();
      answering = held.promise;
      return () => held.resolve();
    },
    observe: (key: string, hint: ObserveHint | ResolveHint, eventName = 'PutObject', mayBegin?: () => boolean) =>
      observing
        .observe({
          bucket,
          key,
          hint,
          cause: { eventName },
          source: 'routed',
          ...(mayBegin !== undefined && { mayBegin }),
        })
        .then((answer) => {
          answers.push(answer);
          return answer;
        }),
    document: async (key: string) => (await store.plainObjects.getMany('b', [key]))[0],
    run: async (forMs = 0) => {
      await clock.advance(forMs);
      await settled();
      await clock.advance(0);
      await settled();
    },
  };
}

/** Begins an observation, and lets run what can run without its answer. */
async function begin(world: World, key: string, hint: ObserveHint | ResolveHint): Promise<void> {
  void world.observe(key, hint);
  await world.run();
}

type World = Awaited<ReturnType<typeof setUp>>;
const observe = ({ clock }: World, offMs = 0): ObserveHint => ({
  kind: 'observe',
  clock: clockOfMs(clock.nowMs() + offMs),
  settleFromMs: clock.nowMs() + offMs,
});
const resolve = ({ clock }: World, offMs = 0): ResolveHint => ({ kind: 'resolve', clock: clockOfMs(clock.nowMs() + offMs) });

describe('hints of a key that are in hand together', () => {
  it('take one HEAD request and one write, at the highest clock and in the name of its event; each has its own verdict', async () => {
    const world = await setUp();
    world.storage.put('b', 'k');
    void world.observe('k', observe(world, -90_000), 'Old');
    void world.observe('k', observe(world), 'New');
    void world.observe('k', resolve(world, -1_000), 'Middle');
    await world.run();
    expect(world.storage.observed).toEqual(['b/k']);
    expect(world.store.requests).toHaveLength(1);
    expect(await world.document('k')).toMatchObject({ clock: observe(world).clock, settled: false, event_name: 'New', etag: 'etag-1' });
    expect(world.answers.map((answer) => ('verdict' in answer ? answer.verdict : answer))).toEqual([
      { final: true },
      { final: false, dueInS: 43 },
      { final: true },
    ]);
  });

  it('but not those that come while the HEAD request is out: their own is sent after them', async () => {
    const world = await setUp();
    const release = world.holdAnswers();
    await begin(world, 'k', observe(world));
    void world.observe('k', resolve(world, 1));
    await begin(world, 'k', observe(world, 2));
    expect(world.storage.observed).toEqual(['b/k', 'b/k']);
    release();
    await world.run();
    expect(world.answers).toHaveLength(3);
  });

  it('that wait for a place are joined until their HEAD request is sent', async () => {
    const world = await setUp(1);
    const release = world.holdAnswers();
    await begin(world, 'first', observe(world));
    void world.observe('k', observe(world));
    await world.run(1_000);
    void world.observe('k', observe(world));
    release();
    await world.run();
    expect(world.storage.observed).toEqual(['b/first', 'b/k']);
    expect(world.answers).toHaveLength(3);
  });
});

describe('observations', () => {
  it('are never more at once than may be, and the gauge goes back to zero', async () => {
    const world = await setUp(2);
    // a region that has not answered may not have every place
    await begin(world, 'first', observe(world));
    const release = world.holdAnswers();
    for (const key of ['a', 'b', 'c', 'd', 'e']) void world.observe(key, observe(world));
    await world.run();
    expect(world.storage.observed).toHaveLength(1 + 2);
    release();
    await world.run();
    expect(world.storage.observed).toHaveLength(1 + 5);
    expect(world.telemetry.values('tally_head_queued_requests').at(-1)).toBe(0);
    expect(world.telemetry.values('tally_head_in_flight_requests').at(-1)).toBe(0);
    expect(Math.max(...world.telemetry.values('tally_head_in_flight_requests'))).toBe(2);
  });

  it('that fail tell their fault to all who wait for them', async () => {
    const world = await setUp();
    world.storage.failWith(new FaultError('s3.throttled', 'SlowDown'));
    void world.observe('k', observe(world));
    await begin(world, 'k', observe(world));
    const fault = { kind: 'fault', fault: { code: 's3.throttled', reason: 'SlowDown' } };
    expect(world.answers).toEqual([fault, fault]);
    expect(world.telemetry.labels('tally_head_requests_total')).toEqual([{ result: 's3.throttled' }]);
  });

  it('Fix: that may not begin any more when their turn has come are not sent, unless another hint of their key may', async () => {
    const world = await setUp(1);
    const answer = world.holdAnswers();
    let isOpen = false;
    await begin(world, 'hangs', observe(world));
    for (const key of ['k', 'shared']) void world.observe(key, observe(world), 'PutObject', () => !isOpen);
    void world.observe('shared', observe(world), 'PutObject', () => true);
    isOpen = true;
    answer();
    await world.run();
    await world.run();
    expect(world.storage.observed).toEqual(['b/hangs', 'b/shared']);
    expect(world.answers.map(({ kind }) => kind).sort()).toEqual(['blocked', 'written', 'written', 'written']);
  });

  it('end when the stop’s deadline passes', async () => {
    const world = await setUp();
    world.holdAnswers();
    await begin(world, 'k', observe(world));
    world.stopping.abort();
    await world.run();
    expect(world.answers).toMatchObject([{ kind: 'fault' }]);
  });
});

describe('what was seen', () => {
  it('lay unread for so long that it is not sent any more, as in a process that was stopped', async () => {
    const world = await setUp();
    world.storage.put('b', 'k');
    const release = world.holdAnswers();
    void world.observe('k', observe(world, -90_000));
    await world.run(30_000);
    release();
    await world.run();
    expect(world.answers).toEqual([{ kind: 'expired' }]);
    expect(world.store.requests).toEqual([]);
  });

  it('that the store refuses is superseded, with the same verdict', async () => {
    const world = await setUp();
    await begin(world, 'k', resolve(world, 5_000));
    await begin(world, 'k', observe(world));
    expect(world.answers[1]).toEqual({ kind: 'superseded', verdict: { final: false, dueInS: 43 } });
  });

  it('that meets its very clock with other content is a tie for a resolve, and accepted from an observe', async () => {
    const world = await setUp();
    await begin(world, 'k', resolve(world));
    world.storage.put('b', 'k');
    const hint = resolve(world);
    for (const each of [hint, observe(world)]) {
      await begin(world, 'k', each);
    }
    expect(world.answers.slice(1)).toMatchObject([{ kind: 'equal', clock: hint.clock }, { kind: 'written' }]);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1' });
  });

  it('is told where the store fails, and nobody waits for ever though it cannot be written down', async () => {
    const world = await setUp();
    world.store.broken.writes = new FaultError('index.denied', '403');
    await begin(world, 'k', observe(world));
    expect(world.answers).toEqual([{ kind: 'fault', fault: { code: 'index.denied', reason: '403' } }]);
    world.storage.put('b', 'odd', { lastModifiedMs: Number.NaN });
    await begin(world, 'odd', observe(world));
    expect(world.answers[1]).toMatchObject({ kind: 'fault', fault: { code: 'internal.unexpected' } });
  });
});
