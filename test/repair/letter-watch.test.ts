import { describe, expect, it } from 'vitest';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { FaultError } from '../../src/base/fault.ts';
import { markId, markSchema } from '../../src/records/dirty.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createLetterBrowser, createDeadLetters, createLetterWatch } from '../../src/repair/dead-letters.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { fakeDeadLetterQueues, readNow, type FakeDeadLetterQueue } from '../support/fakes/dead-letter-queues.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { nativeRecord } from '../support/worlds/ingest.ts';

const QUEUE = 'http://queues/bucket';
const DLQ = 'http://queues/dead';
const SECOND = 'http://queues/second';
const SECOND_DLQ = 'http://queues/second-dead';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const nativeBody = (bucket: string): string => JSON.stringify({ Records: [nativeRecord('k', { bucket })] });

/** A letter as Tally sends it. */
const OURS = { body: '{}', attributes: { 'tally-fault': { dataType: 'String', stringValue: 'record.invalid' } } };

async function setUp(deadLetterQueues: readonly FakeDeadLetterQueue[] = [{ queueUrl: DLQ, of: [QUEUE] }]) {
  const clock = createFakeClock({ autoAdvance: true });
  const queues = createFakeQueues(clock);
  const receives: string[] = [];
  const counted = {
    ...queues,
    receive: async (...[queueUrl, ...rest]: Parameters<typeof queues.receive>) => {
      receives.push(queueUrl);
      return queues.receive(queueUrl, ...rest);
    },
  };
  const telemetry = createFakeTelemetry();
  const { state: stored } = createMemoryStore();
  let isFailing = false;
  const state = guarded(stored, () => {
    if (isFailing) throw new FaultError('index.unreachable', 'gone');
  }, ['put']);
  const gaps = createGapReports({ state, clock, telemetry });
  const connect = (bucket: string, change: Partial<BucketRecord> = {}) =>
    updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, change));
  await connect('photos');
  let known = await readNow(queues, ...deadLetterQueues);
  /** One worker of the fleet. */
  const worker = () =>
    createLetterWatch({
      browse: createLetterBrowser({ queues: counted, telemetry }),
      state,
      gaps,
      clock,
      telemetry,
      deadLetterQueues: () => known,
      bucketQueueUrls: [QUEUE, SECOND],
    });
  const workers = [worker(), worker()];
  const letters = createDeadLetters({
    queues,
    state,
    gaps,
    clock,
    telemetry,
    queueWatch: fakeDeadLetterQueues(...deadLetterQueues),
    bucketQueueUrls: [QUEUE, SECOND],
  });
  return {
    clock,
    queues,
    telemetry,
    state,
    receives,
    connect,
    letters,
    /** Writes of records fail. */
    failPuts: (fails: boolean) => {
      isFailing = fails;
    },
    /** A message that SQS moves. */
    move: (body = nativeBody('photos'), queueUrl = DLQ) => queues.send(queueUrl, { body, attributes: {} }),
    /** A letter of Tally. */
    async sendOurs(body = nativeBody('photos')) {
      await queues.send(QUEUE, { body, attributes: {} });
      const [message] = await queues.receive(QUEUE, { visibilityS: 60, max: 1 });
      await letters.send(message!, { code: 'record.invalid', reason: 'test' }, [0]);
      await queues.deleteBatch(QUEUE, [message!.receiptHandle]);
    },
    /** All workers look after this time, with the numbers that the queues have then. */
    async look(afterMs = 30_000) {
      await clock.advance(afterMs);
      known = await readNow(queues, ...deadLetterQueues);
      for (const lookOnce of workers) await lookOnce(new AbortController().signal);
    },
    /** Each bucket with a gap, and how often its letters were reported. */
    gaps: async () => (await listAllRecords(state, 'gap', markSchema)).map(({ bucket, reasons }) => ({ bucket, ...reasons[0] })),
    gapCount: async (bucket = 'photos') => (await readRecord(state, refs.gap(markId(bucket))))?.reasons[0]?.count,
    /** The letters whose gaps are known to be stored. */
    known: async () => (await readRecord(state, refs.queue(DLQ)))?.moved,
  };
}

describe('letters in the dead-letter queue', () => {
  it('open a loss gap of their bucket when SQS moved them, each once, and are told again when it could not be stored', async () => {
    const world = await setUp();
    await world.move();
    world.failPuts(true);
    await world.look();
    world.failPuts(false);
    await world.look();
    await world.look();
    expect(await world.gapCount()).toBe(1);
    await world.move();
    await world.look();
    expect(await world.gapCount()).toBe(2);
    expect(world.queues.messages(DLQ)).toHaveLength(2);
  });

  it('Fix: open their gap, and those that Tally sent none, though another letter was discarded at the same time, so that their number is unchanged', async () => {
    const world = await setUp();
    for (let each = 0; each < 10; each += 1) await world.sendOurs();
    await world.look();
    const [first] = await world.letters.list(1);
    await world.letters.discard({ ids: [first?.id ?? ''] });
    await world.move();
    for (let minutes = 0; minutes < 11; minutes += 1) await world.look(MINUTE_MS);
    expect(await world.gapCount()).toBe(1);
  });

  it('open those of all buckets of their queue when they name no connected one, once a day', async () => {
    const world = await setUp();
    await world.connect('docs');
    await world.move('garbage');
    await world.look();
    expect((await world.gaps()).map(({ bucket, count }) => [bucket, count])).toEqual([
      ['docs', 1],
      ['photos', 1],
    ]);
    await world.look(HOUR_MS);
    await world.move(nativeBody('not-connected'));
    for (let hours = 0; hours < 22; hours += 1) await world.look(HOUR_MS);
    expect(await world.gapCount()).toBe(1);
    for (let hours = 0; hours < 30; hours += 1) await world.look(HOUR_MS);
    expect(await world.gapCount()).toBe(2);
  });

  it('are forgotten when they are gone, and not while another reader hides them', async () => {
    const world = await setUp();
    for (let each = 0; each < 2; each += 1) await world.move();
    await world.look();
    expect(await world.known()).toHaveLength(2);
    const [hidden] = await world.queues.receive(DLQ, { visibilityS: 700, max: 1 });
    await world.look(11 * MINUTE_MS);
    expect(await world.known()).toHaveLength(2);
    await world.queues.deleteBatch(DLQ, [hidden!.receiptHandle]);
    await world.look();
    expect(await world.known()).toHaveLength(1);
    expect(await world.gapCount()).toBe(1);
  });
});

describe('a letter that SQS moved and that is discarded', () => {
  it('before a worker has found it leaves a gap of each bucket that it names, stored before the letter is gone', async () => {
    const world = await setUp();
    await world.connect('docs');
    await world.look();
    await world.move();
    await world.move();
    await world.move(nativeBody('docs'));
    const deleteBatch = world.queues.deleteBatch.bind(world.queues);
    const before: string[] = [];
    world.queues.deleteBatch = async (...args) => {
      before.push(...(await world.gaps()).map(({ bucket }) => bucket));
      return deleteBatch(...args);
    };
    expect(await world.letters.discard({ all: true })).toMatchObject({ count: 3 });
    expect(before).toEqual(['docs', 'photos']);
    for (let minutes = 0; minutes < 30; minutes += 1) await world.look(MINUTE_MS);
    expect((await world.gaps()).map(({ example }) => example)).toEqual(['dead letter: message.moved', 'dead letter: message.moved']);
  });

  it('from among more than can be read leaves its gap too, though theirs was closed meanwhile', async () => {
    const world = await setUp();
    for (let each = 0; each < 1_001; each += 1) await world.queues.send(DLQ, OURS);
    await world.look();
    await removeRecord(world.state, markId('photos'));
    await world.move();
    await world.look(HOUR_MS);
    while (world.queues.messages(DLQ).length > 0) {
      await world.letters.discard({ all: true });
      await world.clock.advance(MINUTE_MS);
    }
    expect(await world.gaps()).toMatchObject([{ example: 'dead letter: message.moved' }]);
  });
});

it('more letters than can be read leave the buckets of other queues alone', async () => {
  const world = await setUp([
    { queueUrl: DLQ, of: [QUEUE] },
    { queueUrl: SECOND_DLQ, of: [SECOND], attributes: { visible: 1_001 } },
  ]);
  const nowMs = world.clock.nowMs();
  await world.connect('photos', { eventQueues: [{ queueUrl: QUEUE, atMs: nowMs }] });
  await world.connect('docs', { eventQueues: [{ queueUrl: SECOND, atMs: nowMs }] });
  await world.connect('quiet');
  await world.look();
  expect((await world.gaps()).map(({ bucket }) => bucket)).toEqual(['docs', 'quiet']);
});

describe('the reading of a dead-letter queue', () => {
  it('is done by one worker when the number has changed, and every ten minutes, but not while the queue is empty', async () => {
    const world = await setUp();
    for (let hours = 0; hours < 3; hours += 1) await world.look(HOUR_MS);
    expect(world.receives).toEqual([]);
    await world.move();
    await world.look();
    const once = world.receives.length;
    for (let rounds = 0; rounds < 15; rounds += 1) await world.look();
    expect(world.receives).toHaveLength(once);
    for (let rounds = 0; rounds < 20; rounds += 1) await world.look();
    expect(world.receives).toHaveLength(2 * once);
    expect(world.queues.messages(DLQ)[0]?.receiveCount).toBe(2);
  });

  it('is done once a day where the queue has a redrive policy itself, since each one counts as a receive', async () => {
    const world = await setUp([{ queueUrl: DLQ, of: [QUEUE], attributes: { maxReceiveCount: 20 } }]);
    await world.move();
    for (let hours = 0; hours < 47; hours += 1) await world.look(HOUR_MS);
    expect(world.queues.messages(DLQ)[0]?.receiveCount).toBe(2);
  });
});
