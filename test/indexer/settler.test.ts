import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { BatchFailure, QueueClient, QueueMessage } from '../../src/aws/queues.ts';
import { createSettler } from '../../src/indexer/settler.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';
import { settled } from '../support/worlds/ingest.ts';

const QUEUE = 'http://queues/bucket';

interface Request {
  readonly operation: 'delete' | 'visibility';
  readonly queueUrl: string;
  readonly handles: readonly string[];
  readonly timeouts: readonly number[];
  readonly atMs: number;
}

/** What a request is answered: nothing failed, some did, or none was answered. */
type Answer = (request: Request) => readonly BatchFailure[] | Promise<readonly BatchFailure[]>;

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const requests: Request[] = [];
  let answer: Answer = () => [];
  const ask = async (request: Request): Promise<readonly BatchFailure[]> => {
    requests.push(request);
    return answer(request);
  };
  const queues: QueueClient = {
    ...createFakeQueues(clock),
    deleteBatch: (queueUrl, handles) => ask({ operation: 'delete', queueUrl, handles, timeouts: [], atMs: clock.monotonicMs() }),
    changeVisibilityBatch: (queueUrl, entries) =>
      ask({
        operation: 'visibility',
        queueUrl,
        atMs: clock.monotonicMs(),
        handles: entries.map(({ receiptHandle }) => receiptHandle),
        timeouts: entries.map(({ timeoutS }) => timeoutS),
      }),
  };
  const settler = createSettler({ queues, clock, telemetry, visibilityS: 60 });

  function message(receiptHandle: string, queueUrl = QUEUE): QueueMessage {
    const times = { sentAtMs: 0, firstReceivedAtMs: 0, receivedAtMonotonicMs: clock.monotonicMs() };
    return { queueUrl, messageId: receiptHandle, receiptHandle, body: '', receiveCount: 1, attributes: {}, ...times };
  }

  function hold(receiptHandle: string, queueUrl = QUEUE): QueueMessage {
    const held = message(receiptHandle, queueUrl);
    settler.hold(held);
    return held;
  }

  async function run(forMs: number): Promise<void> {
    for (let leftMs = forMs; leftMs > 0; leftMs -= 100) {
      await clock.advance(Math.min(100, leftMs));
      await settled();
    }
  }

  return {
    clock,
    telemetry,
    settler,
    requests,
    hold,
    run,
    answers: (next: Answer) => {
      answer = next;
    },
    extensions: () => requests.filter(({ timeouts }) => timeouts.includes(60)),
  };
}

const failed = (receiptHandle: string, senderFault = false): BatchFailure => ({ receiptHandle, code: 'InternalError', senderFault });

describe('settling', () => {
  it('says why nothing is deleted although messages are received and extended, until it is, or nothing was tried for twenty minutes', async () => {
    const world = setUp();
    const denied = new FaultError('queue.unreachable', 'permission denied');
    world.answers(({ operation }) => (operation === 'delete' ? Promise.reject(denied) : []));
    expect(world.settler.fault()).toBeUndefined();
    world.hold('held');
    const end = world.settler.remove(world.hold('one'));
    await world.run(40_000);
    expect(await end).toBe(false);
    expect(world.extensions()).not.toEqual([]);
    expect(world.settler.fault()).toEqual({ code: 'queue.unreachable', reason: 'permission denied' });
    world.answers(() => []);
    await Promise.all([world.settler.remove(world.hold('two')), world.run(1_000)]);
    expect(world.settler.fault()).toBeUndefined();
    world.answers(() => Promise.reject(denied));
    await Promise.all([world.settler.hide(world.hold('three'), 5), world.run(10_000)]);
    expect(world.settler.fault()).toMatchObject({ code: 'queue.unreachable' });
    world.settler.close();
    await world.clock.advance(1_200_000);
    expect(world.settler.fault()).toBeUndefined();
  });

  it('sends in batches of ten, each operation and queue apart, without waiting long', async () => {
    const world = setUp();
    const done: string[] = [];
    for (let count = 0; count < 12; count += 1) void world.settler.remove(world.hold(`d${count}`)).then(() => done.push(`d${count}`));
    void world.settler.hide(world.hold('h1'), 30);
    void world.settler.hide(world.hold('h2'), 0);
    void world.settler.remove(world.hold('o', 'http://queues/other'));
    await world.run(10);
    expect(
      world.requests.map(({ operation, queueUrl, handles, timeouts }) => ({ operation, queueUrl, count: handles.length, timeouts })),
    ).toEqual([
      { operation: 'delete', queueUrl: QUEUE, count: 10, timeouts: [] },
      { operation: 'delete', queueUrl: QUEUE, count: 2, timeouts: [] },
      { operation: 'visibility', queueUrl: QUEUE, count: 2, timeouts: [30, 0] },
      { operation: 'delete', queueUrl: 'http://queues/other', count: 1, timeouts: [] },
    ]);
    expect(done).toHaveLength(12);
    expect(world.settler.inHand).toBe(0);
  });

  it('tries the entries again that failed, and only those', async () => {
    const world = setUp();
    world.answers(({ handles }) =>
      world.requests.length < 3 ? handles.filter((handle) => handle === 'b').map((handle) => failed(handle)) : [],
    );
    const done: string[] = [];
    for (const handle of ['a', 'b', 'c']) void world.settler.remove(world.hold(handle)).then(() => done.push(handle));
    await world.run(20);
    expect(done).toEqual(['a', 'c']);
    await world.run(2_000);
    expect(world.requests.map(({ handles }) => handles)).toEqual([['a', 'b', 'c'], ['b'], ['b']]);
    expect(done).toEqual(['a', 'c', 'b']);
  });

  it.each<[string, Answer, number]>([
    ['did not answer for is tried five times, later and later', () => Promise.reject(new FaultError('queue.unreachable', 'gone')), 5],
    ['failed to delete each time is tried five times', ({ handles }) => handles.map((handle) => failed(handle)), 5],
    ['refused to delete, the sender’s fault, is tried once', ({ handles }) => handles.map((handle) => failed(handle, true)), 1],
  ])('what SQS %s, and is not counted as deleted; then it returns by itself', async (_, answer, attempts) => {
    const world = setUp();
    world.answers((request) => (request.queueUrl === QUEUE ? answer(request) : []));
    const all = Promise.all([
      world.settler.remove(world.hold('a')),
      world.settler.remove(world.hold('b')),
      world.settler.remove(world.hold('beside', 'http://queues/other')),
    ]);
    await world.run(10_000);
    await all;
    expect(world.requests.filter(({ queueUrl }) => queueUrl === QUEUE)).toHaveLength(attempts);
    expect(world.settler.removedTotal).toBe(1);
    if (attempts === 1) expect(world.telemetry.recorded('requestFailed').length).toBeGreaterThan(0);
  });
});

describe('a message in hand', () => {
  it('is extended at half of its visibility, again and again', async () => {
    const world = setUp();
    world.hold('a');
    await world.run(29_000);
    expect(world.requests).toEqual([]);
    await world.run(72_000);
    expect(world.requests.map(({ handles, timeouts }) => [handles, timeouts])).toEqual([
      [['a'], [60]],
      [['a'], [60]],
      [['a'], [60]],
    ]);
    expect(world.requests.every(({ atMs }, index) => atMs - (index + 1) * 30_000 <= 3_000)).toBe(true);
  });

  it('that is settled while its extension waits to be sent has that dropped', async () => {
    const world = setUp();
    const message = world.hold('a');
    // the extension is due, and lingers for others
    await world.run(30_005);
    expect(world.requests).toEqual([]);
    void world.settler.hide(message, 500);
    await world.run(1_000);
    expect(world.requests.map(({ timeouts }) => timeouts)).toEqual([[500]]);
  });

  it('that is settled while its extension is on its way waits for that, so that its own word is the last', async () => {
    const world = setUp();
    const message = world.hold('a');
    const answering = Promise.withResolvers<readonly BatchFailure[]>();
    world.answers(({ timeouts }) => (timeouts.includes(60) ? answering.promise : []));
    await world.run(31_000);
    expect(world.extensions()).toHaveLength(1);
    void world.settler.remove(message);
    await world.run(500);
    expect(world.requests).toHaveLength(1);
    answering.resolve([]);
    await world.run(500);
    expect(world.requests.map(({ operation }) => operation)).toEqual(['visibility', 'delete']);
  });

  it('whose extension fails is extended again a second later, as long as it is in hand', async () => {
    const world = setUp();
    const message = world.hold('a');
    world.answers(({ timeouts, handles }) => (timeouts.includes(60) ? handles.map((handle) => failed(handle)) : []));
    await world.run(35_000);
    expect(world.extensions().length).toBeGreaterThanOrEqual(4);
    void world.settler.hide(message, 0);
    await world.run(100);
    const count = world.requests.length;
    expect(world.requests.at(-1)?.timeouts).toEqual([0]);
    await world.run(60_000);
    expect(world.requests).toHaveLength(count);
  });

  it('whose extension SQS refuses for good is not asked for again', async () => {
    const world = setUp();
    world.hold('a');
    world.answers(({ handles }) => handles.map((handle) => failed(handle, true)));
    await world.run(50_000);
    expect(world.extensions()).toHaveLength(1);
  });

  it('is extended no more after the settler was closed', async () => {
    const world = setUp();
    world.hold('a');
    world.settler.close();
    await world.run(120_000);
    expect(world.requests).toEqual([]);
    expect(world.clock.sleepers()).toBe(0);
  });
});
