import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { markSchema } from '../../src/records/dirty.ts';
import { createExpiredMessages } from '../../src/indexer/receiving.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import type { QueueMessage } from '../../src/aws/queues.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const ONE = 'http://q/one';
const TWO = 'http://q/two';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RETENTION_MS = 4 * DAY_MS;

async function setUp({ retentionMs }: { readonly retentionMs: number | undefined } = { retentionMs: RETENTION_MS }) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { state } = createMemoryStore();
  const broken: { put?: FaultError | undefined } = {};
  const breakable = guarded(state, () => broken.put && Promise.reject(broken.put), ['put']);
  const gaps = createGapReports({ state: breakable, clock, telemetry });
  const connect = (bucket: string, change: Partial<BucketRecord> = {}) =>
    updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, change));
  await connect('photos');
  const worker = () =>
    createExpiredMessages({
      state: breakable,
      gaps,
      clock,
      telemetry,
      queueWatch: { retentionMs: () => retentionMs },
      bucketQueueUrls: [ONE, TWO],
    });
  const message = (ageMs: number, change: Partial<QueueMessage> = {}): QueueMessage => ({
    queueUrl: ONE,
    messageId: 'm',
    receiptHandle: 'h',
    body: '',
    sentAtMs: clock.nowMs() - ageMs,
    firstReceivedAtMs: clock.nowMs(),
    receiveCount: 1,
    attributes: {},
    receivedAtMonotonicMs: clock.monotonicMs(),
    ...change,
  });
  return {
    clock,
    telemetry,
    state,
    broken,
    connect,
    worker,
    expired: worker(),
    message,
    /** Polls once a minute for this long. */
    async poll(expired: ReturnType<typeof worker>, forMs: number) {
      for (let doneMs = 0; doneMs < forMs; doneMs += 60_000) {
        expired.polled(ONE);
        await clock.advance(60_000);
      }
    },
    async receive(expired: ReturnType<typeof worker>, ...messages: readonly QueueMessage[]) {
      const noted = expired.received(messages);
      await clock.advance(1_000);
      await noted;
      return noted !== undefined;
    },
    gaps: async () => (await listAllRecords(state, 'gap', markSchema)).map(({ bucket, reasons }) => [bucket, reasons[0]?.count]),
  };
}

describe('a message that is received for the first time when its retention is almost over', () => {
  it('opens a loss gap of the buckets once, however long the old messages last and however many workers receive them', async () => {
    const world = await setUp();
    const workers = [world.worker(), world.worker()];
    for (let hours = 0; hours < 20; hours += 1) {
      await world.clock.advance(HOUR_MS);
      for (const expired of [...workers, world.worker()])
        await world.receive(expired, world.message(0), world.message(0.95 * RETENTION_MS));
    }
    expect(await world.gaps()).toEqual([['photos', 1]]);
    // what expires by then may have been sent after the first report
    for (let hours = 20; hours < 50; hours += 1) {
      await world.clock.advance(HOUR_MS);
      for (const expired of workers) await world.receive(expired, world.message(0.95 * RETENTION_MS));
    }
    expect(await world.gaps()).toEqual([['photos', 2]]);
  });

  it('is not one that is younger, that was received before, or whose queue’s retention is not known', async () => {
    const { expired, ...world } = await setUp();
    expect(await world.receive(expired, world.message(0.89 * RETENTION_MS))).toBe(false);
    expect(await world.receive(expired, world.message(0.95 * RETENTION_MS, { receiveCount: 2 }))).toBe(false);
    const unknown = await setUp({ retentionMs: undefined });
    expect(await unknown.receive(unknown.worker(), unknown.message(14 * DAY_MS))).toBe(false);
    expect(await world.gaps()).toEqual([]);
  });

  it('is remembered while the store fails', async () => {
    const { expired, ...world } = await setUp();
    world.broken.put = new FaultError('index.unreachable', 'gone');
    await world.receive(expired, world.message(0.95 * RETENTION_MS));
    expect(await world.gaps()).toEqual([]);
    expect(world.telemetry.recorded('requestFailed')).toHaveLength(1);
    world.broken.put = undefined;
    await world.poll(expired, 120_000);
    expect(await world.gaps()).toEqual([['photos', 1]]);
  });
});

describe('a queue that no worker received from for almost as long as it keeps messages', () => {
  it('is not one that was never received from, or whose empty answers went on', async () => {
    const { expired, ...world } = await setUp();
    for (let days = 0; days < 6; days += 1) {
      await world.poll(expired, 120_000);
      await world.clock.advance(DAY_MS);
    }
    await world.poll(expired, 120_000);
    expect(await world.gaps()).toEqual([]);
  });

  it('is stored at most once a minute', async () => {
    const { expired, ...world } = await setUp();
    const versionNow = async () => (await world.state.get(refs.queue(ONE).id))?.version;
    expired.polled(ONE);
    await world.clock.advance(1_000);
    const first = await versionNow();
    for (let polls = 0; polls < 58; polls += 1) {
      expired.polled(ONE);
      await world.clock.advance(1_000);
    }
    expect(await versionNow()).toBe(first);
    await world.clock.advance(2_000);
    expired.polled(ONE);
    await world.clock.advance(1_000);
    expect(await versionNow()).not.toBe(first);
    expect(await readRecord(world.state, refs.queue(ONE))).toMatchObject({ queueUrl: ONE });
  });
});

it('the buckets of a queue are all but those whose events of thirty days came from other queues only', async () => {
  const world = await setUp();
  const nowMs = world.clock.nowMs();
  await world.connect('mine', { eventQueues: [{ queueUrl: ONE, atMs: nowMs - 29 * DAY_MS }] });
  await world.connect('both', { eventQueues: [ONE, TWO].map((queueUrl) => ({ queueUrl, atMs: nowMs })) });
  await world.connect('others', { eventQueues: [{ queueUrl: TWO, atMs: nowMs - 29 * DAY_MS }] });
  await world.connect('others-long-ago', { eventQueues: [{ queueUrl: TWO, atMs: nowMs - 31 * DAY_MS }] });
  await world.connect('from-a-queue-that-is-gone', { eventQueues: [{ queueUrl: 'http://q/gone', atMs: nowMs }] });
  await world.receive(world.worker(), world.message(0.95 * RETENTION_MS));
  expect((await world.gaps()).map(([bucket]) => bucket)).toEqual([
    'both',
    'from-a-queue-that-is-gone',
    'mine',
    'others-long-ago',
    'photos',
  ]);
});
