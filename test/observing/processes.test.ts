/** What one process knows of itself is said of each bucket that it concerns, in every process. */
import { describe, expect, it } from 'vitest';
import { explanationOf } from '../../src/search/explanation.rules.ts';
import { FaultError, type Fault } from '../../src/base/fault.ts';
import type { Hidden } from '../../src/records/receiving.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { createBucketStatuses } from '../../src/observing/buckets.ts';
import { listAllEntries } from '../../src/store/stored.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const [EVENTS, OTHER] = ['https://sqs/events', 'https://sqs/other'];
const MINUTE_MS = 60_000;
const missing: Fault = { code: 'bucket.missing', reason: 'no such bucket' };
const gone: Fault = { code: 'queue.missing', reason: 'the queue does not exist' };

function startWorld() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const running = new Set<{ readonly store: () => Promise<void> }>();

  /** A process with a clock that may be wrong. */
  function begin(worker: string, { receives = false, aheadMs = 0 } = {}) {
    const visible = new Map<string, number>();
    const faults = new Map<string, Fault>();
    const notReceiving = new Map<string, { readonly fault: Fault; readonly forMs: number }>();
    const hidden: Hidden[] = [];
    const ownClock = { ...clock, nowMs: () => clock.nowMs() + aheadMs };
    const blocked: FaultError[] = [];
    const probeCluster = async (): Promise<void> => {
      if (blocked[0] !== undefined) throw blocked[0];
    };
    const circuits = createTestCircuits({ clock, telemetry: createFakeTelemetry(), probeCluster });
    const processes = createProcesses({ state, clock: ownClock });
    processes.introduce({
      worker,
      circuits,
      queueWatch: { messagesIn: (url) => visible.get(url) ?? 0, faultOf: (url) => faults.get(url) },
      bucketQueueUrls: [EVENTS, OTHER],
      receiving: receives ? { notReceiving: (url) => notReceiving.get(url), hidden: () => hidden } : undefined,
    });
    const statuses = createBucketStatuses({ state, clock: ownClock, processes, compareIntervalMs: 0 });
    const record = { ...bucketRecord, bucket: 'photos', lastComparedAtMs: clock.nowMs(), provenAtMs: 1 };
    const fedBy = (queueUrl: string) => ({ ...record, eventQueues: [{ queueUrl, atMs: clock.nowMs() }] });
    const self = {
      visible,
      faults,
      notReceiving,
      hidden,
      circuits,
      block: ({ code, reason }: Fault) => {
        blocked.push(new FaultError(code, reason));
        circuits.clusterFailed({ code, reason });
      },
      store: processes.store,
      end: processes.end,
      check: processes.check,
      kill: () => running.delete(self),
      statusOf: (bucket: Partial<typeof record> = {}) => statuses.of({ ...fedBy(EVENTS), ...bucket }, 'everything'),
      statusAfter: async (forMs: number) => {
        await pass(forMs);
        return self.statusOf();
      },
      neighbour: () => statuses.of({ ...fedBy(OTHER), bucket: 'videos', region: 'eu-west-3' }, 'everything'),
      unknownQueue: () => statuses.of({ ...record, eventQueues: [] }, 'everything'),
    };
    running.add(self);
    return self;
  }

  async function pass(forMs: number): Promise<void> {
    for (let ms = 0; ms < forMs; ms += 15_000) {
      await clock.advance(15_000);
      for (const { store } of running) await store();
    }
  }

  return { state, clock, begin, pass };
}

/** A worker and a process that receives nothing. */
function startBoth() {
  const world = startWorld();
  return { ...world, worker: world.begin('worker', { receives: true }), http: world.begin('http') };
}

const refuse = ({ circuits }: ReturnType<ReturnType<typeof startWorld>['begin']>, fault = missing, region = bucketRecord.region): void =>
  circuits.storageAnswered({ bucket: 'photos', region }, { key: 'k', sentAtMs: 0, fault });

describe('the status of a bucket', () => {
  it('has what any process knows of it within a minute, and not what another bucket has', async () => {
    const { worker, http, ...world } = startBoth();
    const sinceMs = world.clock.nowMs();
    refuse(worker);
    // by itself it is known at once
    expect(await worker.statusOf()).toMatchObject({ state: 'waiting' });
    await world.pass(MINUTE_MS);
    for (const { statusOf, neighbour } of [worker, http]) {
      const sentence = `S3 has no bucket photos in ${bucketRecord.region}: disconnect it, or create it again`;
      expect(await statusOf()).toMatchObject({ state: 'waiting', severity: 'bad', sinceMs, sentence, act: 'remove' });
      expect(await neighbour()).toMatchObject({ state: 'ok' });
    }
  });

  it('has the fault of its region', async () => {
    const { worker, http, ...world } = startBoth();
    refuse(worker, { code: 's3.credentials', reason: 'ExpiredToken' });
    await world.pass(15_000);
    expect(await http.statusOf({ bucket: 'others' })).toMatchObject({ state: 'waiting' });
    expect(await http.neighbour()).toMatchObject({ state: 'ok' });
  });

  it('Fix: has the fault of the index store as a whole, also where it cannot be stored', async () => {
    const { worker, http, ...world } = startBoth();
    const blocked: Fault = { code: 'index.blocked', reason: 'all indices are blocked' };
    await world.pass(15_000);
    for (const { block } of [worker, http]) block(blocked);
    expect(await worker.statusOf()).toMatchObject({
      state: 'waiting',
      sentence: 'Its events are waiting: index.blocked: all indices are blocked',
    });
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'waiting' });
    // what one process without the role ingest cannot do keeps no event from the index
    const { worker: ingest, http: alone, ...other } = startBoth();
    await other.pass(15_000);
    alone.block(blocked);
    expect(await alone.statusOf()).toMatchObject({ state: 'ok' });
    ingest.kill();
    await other.pass(2 * MINUTE_MS);
    expect(await alone.statusOf()).toMatchObject({ state: 'waiting', sentence: expect.stringContaining('index.blocked') });
  });

  it('loses what a process that was killed had told after a minute, and what a process tells no more', async () => {
    const world = startWorld();
    const [killed, worker, http] = ['killed', 'worker', 'http'].map((name) =>
      world.begin(name, { receives: name !== 'http' }),
    ) as never as [ReturnType<typeof world.begin>, ReturnType<typeof world.begin>, ReturnType<typeof world.begin>];
    refuse(killed);
    refuse(worker);
    await world.pass(15_000);
    killed.kill();
    expect(await http.statusAfter(2 * MINUTE_MS)).toMatchObject({ state: 'waiting' });
    for (let count = 0; count < 6; count += 1)
      worker.circuits.storageAnswered({ bucket: 'photos', region: bucketRecord.region }, { key: 'k', sentAtMs: 0 });
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
    await world.pass(25 * 60 * MINUTE_MS);
    expect((await listAllEntries(world.state, 'process')).map(({ id }) => id)).toEqual(['process:http', 'process:worker']);
  });
});

describe('messages that were put back', () => {
  const later: Hidden = { bucket: 'photos', code: 'bucket.index-blocked', sinceMs: 5, leftMs: 200_000 };

  it('Fix: keep the bucket waiting until the last of them is settled, though nothing fails any longer', async () => {
    const { worker, http, ...world } = startBoth();
    worker.hidden.push(later);
    await world.pass(15_000);
    const sentence = expect.stringMatching(/^Its events are waiting: bucket.index-blocked: Tally has put messages back .* again by 20/);
    for (const { statusOf, neighbour } of [worker, http]) {
      expect(await statusOf()).toMatchObject({ state: 'waiting', sinceMs: 5, sentence });
      expect(await neighbour()).toMatchObject({ state: 'ok' });
    }
    worker.hidden.pop();
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
  });

  it.each(['ended', 'was killed'])('are known also when their process %s, until another one must have received them', async (how) => {
    const { worker, http, ...world } = startBoth();
    world.begin('other', { receives: true });
    worker.hidden.push(later);
    await world.pass(15_000);
    worker.kill();
    if (how === 'ended') await worker.end();
    expect(await http.statusAfter(3 * MINUTE_MS)).toMatchObject({ state: 'waiting' });
    expect(await http.statusAfter(2 * MINUTE_MS)).toMatchObject({ state: 'ok' });
  });

  it('Fix: are the reason that is given for an object that is not found', async () => {
    const { worker, http, ...world } = startBoth();
    worker.hidden.push(later);
    await world.pass(15_000);
    const state = { present: true, versionId: 'v', size: 1, lastModifiedMs: world.clock.nowMs() - 1_000, etag: 'e' } as const;
    const storage = { state, observedAtMs: world.clock.nowMs() };
    const { sentence } = explanationOf({ bucket: bucketRecord, status: await http.statusOf(), document: undefined, storage });
    expect(sentence).toContain('Tally has put messages back into the queue');
    expect(sentence).not.toContain('has not arrived');
  });
});

describe('a queue', () => {
  it('Fix: that does not exist is told at once, of each bucket that it feeds: events are lost', async () => {
    const { worker, http, ...world } = startBoth();
    await world.pass(15_000);
    for (const { faults } of [worker, http]) faults.set(EVENTS, gone);
    worker.notReceiving.set(EVENTS, { fault: gone, forMs: 1_000 });
    await world.pass(15_000);
    for (const { statusOf, unknownQueue, neighbour } of [worker, http]) {
      const sentence = 'Its events are being lost: the queue does not exist';
      expect(await statusOf()).toMatchObject({ state: 'events_lost', severity: 'bad', sentence });
      // where its events come from is not known
      expect(await unknownQueue()).toMatchObject({ state: 'events_lost' });
      expect(await neighbour()).toMatchObject({ state: 'ok' });
    }
    for (const { faults } of [worker, http]) faults.clear();
    worker.notReceiving.clear();
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
  });

  it('that cannot be received from is told after some seconds, unless another process receives', async () => {
    const { worker, http, ...world } = startBoth();
    const denied: Fault = { code: 'queue.unreachable', reason: 'denied' };
    worker.notReceiving.set(EVENTS, { fault: denied, forMs: 1_000 });
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
    worker.notReceiving.set(EVENTS, { fault: denied, forMs: 16_000 });
    expect(await http.statusAfter(15_000)).toMatchObject({
      state: 'waiting',
      sentence: 'Its events are waiting: queue.unreachable: denied',
    });
    world.begin('other', { receives: true });
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
  });

  it('in which messages wait that no process receives is told after a minute', async () => {
    const { worker, http, ...world } = startBoth();
    http.visible.set(EVENTS, 162);
    expect(await http.statusAfter(5 * MINUTE_MS)).toMatchObject({ state: 'ok' });
    expect(http.check()).toEqual({ status: 'ok' });
    worker.kill();
    await world.pass(75_000);
    const detail = '162 messages wait in the bucket queue, and no process has received for a minute';
    expect(await http.statusOf()).toMatchObject({ state: 'waiting', sentence: `Its events are waiting: queue.not-received: ${detail}` });
    expect(await http.unknownQueue()).toMatchObject({ state: 'waiting' });
    expect(await http.neighbour()).toMatchObject({ state: 'ok' });
    expect(http.check()).toMatchObject({
      status: 'warning',
      code: 'queue.not-received',
      detail: `${EVENTS}: ${detail}`,
      advice: expect.stringContaining('Start a process with the role ingest'),
    });
    world.begin('next', { receives: true });
    expect(await http.statusAfter(15_000)).toMatchObject({ state: 'ok' });
    await world.pass(15_000);
    expect(http.check()).toEqual({ status: 'ok' });
  });

  it.each([-60, 60])('is not concluded about from a worker whose clock is wrong by %i minutes', async (minutes) => {
    const world = startWorld();
    const http = world.begin('http');
    const worker = world.begin('worker', { receives: true, aheadMs: minutes * MINUTE_MS });
    http.visible.set(EVENTS, 3);
    for (let minute = 0; minute < 10; minute += 1) {
      expect(await http.statusAfter(MINUTE_MS)).toMatchObject({ state: 'ok' });
    }
    worker.kill();
    expect(await http.statusAfter(75_000)).toMatchObject({ state: 'waiting' });
  });

  it('is not known while it cannot be read, and before the first look', async () => {
    const world = startWorld();
    const http = world.begin('http');
    expect(http.check()).toMatchObject({ status: 'unknown', detail: expect.stringContaining('not known yet: ') });
    await world.pass(15_000);
    expect(http.check()).toEqual({ status: 'ok' });
    const lookedAt = new Date(world.clock.nowMs()).toISOString();
    http.faults.set(OTHER, { code: 'queue.unreachable', reason: 'denied' });
    await world.pass(3 * MINUTE_MS);
    expect(http.check()).toMatchObject({ status: 'unknown', detail: expect.stringContaining(`not known since ${lookedAt}: `) });
  });
});
