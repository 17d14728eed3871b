import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { QueueAttributes, QueueClient } from '../../src/aws/queues.ts';
import { createQueueWatch } from '../../src/observing/queue-watch.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';
import { settled } from '../support/worlds/ingest.ts';

const ONE = 'http://q/one';
const TWO = 'http://q/two';
const DEAD = 'http://q/dead';
const FAR = 'http://far/dead';
const depth = (visible: number, inFlight: number, more: Partial<QueueAttributes> = {}): QueueAttributes => ({
  visible,
  inFlight,
  delayed: 0,
  visibilityTimeoutS: 30,
  ...more,
});

/** How the gauge shows a depth. */
const depthOf = (queue: 'bucket' | 'dead-letter', visible: number, inFlight: number) => [
  ['tally_queue_messages', visible, { queue, state: 'visible' }],
  ['tally_queue_messages', inFlight, { queue, state: 'in-flight' }],
  ['tally_queue_messages', 0, { queue, state: 'delayed' }],
];

interface Options {
  readonly deadLetterQueueUrl?: string;
  readonly farLetters?: () => Promise<readonly string[]>;
}

function setUp({ deadLetterQueueUrl, farLetters }: Options = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const stopping = new AbortController();
  const answers = new Map<string, QueueAttributes | FaultError>();
  const asked: string[] = [];
  const queues: QueueClient = {
    ...createFakeQueues(clock),
    attributes: async (queueUrl) => {
      asked.push(queueUrl);
      await settled();
      const answer = answers.get(queueUrl) ?? depth(0, 0);
      if (answer instanceof FaultError) throw answer;
      return answer;
    },
  };
  const watch = createQueueWatch({ queues, clock, telemetry, bucketQueueUrls: [ONE, TWO], deadLetterQueueUrl, farLetters });
  return {
    clock,
    telemetry,
    stopping,
    answers,
    asked,
    watch,
    run: async (forMs: number) => {
      await clock.advance(forMs);
      for (let turn = 0; turn < 10; turn += 1) await settled();
    },
  };
}

const gone = new FaultError('queue.unreachable', 'gone');

describe('the watch', () => {
  it('reads every queue at the start and every 15 s, until it is stopped', async () => {
    const world = setUp({ deadLetterQueueUrl: DEAD });
    await world.watch.start(world.stopping.signal);
    expect(world.asked).toEqual([ONE, TWO, DEAD]);
    await world.run(14_999);
    expect(world.asked).toHaveLength(3);
    await world.run(1);
    expect(world.asked).toHaveLength(6);
    world.stopping.abort();
    await world.run(60_000);
    expect(world.asked).toHaveLength(6);
  });

  it('sums up the bucket queues', async () => {
    const world = setUp();
    world.answers.set(ONE, depth(5, 70));
    world.answers.set(TWO, depth(6, 80));
    await world.watch.start(world.stopping.signal);
    expect(world.watch.inFlight).toBe(150);
    expect(world.telemetry.recorded('set')).toEqual(depthOf('bucket', 11, 150));
  });

  it('knows the retention and the last receive of each queue once it was read, and 20 where there is no redrive policy', async () => {
    const world = setUp();
    world.answers.set(ONE, depth(0, 0, { maxReceiveCount: 7, retentionMs: 345_600_000 }));
    expect(world.watch.retentionMs(ONE)).toBeUndefined();
    await world.watch.start(world.stopping.signal);
    expect([ONE, TWO].map((url) => world.watch.lastReceive(url))).toEqual([6, 20]);
    expect([ONE, TWO].map((url) => world.watch.retentionMs(url))).toEqual([345_600_000, undefined]);
  });

  it('reads the dead-letter queues of other regions, whose letters go back to the first queue, and goes on without them', async () => {
    const far = { isRefused: false };
    const farLetters = async () => {
      if (far.isRefused) throw gone;
      return [FAR];
    };
    const world = setUp({ deadLetterQueueUrl: DEAD, farLetters });
    world.answers.set(DEAD, depth(1, 0));
    world.answers.set(FAR, depth(2, 0));
    await world.watch.start(world.stopping.signal);
    expect(world.watch.deadLetterQueues()).toMatchObject([{ queueUrl: DEAD }, { queueUrl: FAR, bucketQueueUrls: [ONE] }]);
    expect(world.telemetry.recorded('set').slice(-3)).toEqual(depthOf('dead-letter', 3, 0));
    // nothing is sent there
    expect(world.watch.deadLetterQueueOf(ONE)).toMatchObject({ queueUrl: DEAD });
    far.isRefused = true;
    world.asked.length = 0;
    await world.run(15_000);
    expect(world.asked).toEqual([ONE, TWO, DEAD, FAR]);
    expect(world.telemetry.recorded('requestFailed')).toHaveLength(1);
    const without = setUp({ farLetters });
    far.isRefused = false;
    await without.watch.start(without.stopping.signal);
    expect(without.watch.deadLetterQueueOf(ONE)).toBeUndefined();
  });

  it('takes no bucket queue for one of dead letters, where its letters would become letters again', async () => {
    const world = setUp({ deadLetterQueueUrl: ONE });
    world.answers.set(TWO, depth(0, 0, { deadLetterQueueUrl: TWO }));
    await world.watch.start(world.stopping.signal);
    expect([world.watch.deadLetterQueues(), world.watch.deadLetterQueueOf(TWO)]).toEqual([[], undefined]);
  });

  it('knows the redrive target of each bucket queue, and that of the setting before them', async () => {
    const redriven = (world: ReturnType<typeof setUp>): void => {
      world.answers.set(ONE, depth(0, 0, { deadLetterQueueUrl: 'http://q/one-dead' }));
      world.answers.set(TWO, depth(0, 0, { deadLetterQueueUrl: DEAD }));
      world.answers.set(DEAD, depth(3, 1));
      world.answers.set('http://q/one-dead', depth(4, 0));
    };
    const world = setUp();
    redriven(world);
    await world.watch.start(world.stopping.signal);
    expect(world.watch.deadLetterQueueOf(ONE)).toMatchObject({ queueUrl: 'http://q/one-dead' });
    expect(world.watch.deadLetterQueueOf(TWO)).toMatchObject({ queueUrl: DEAD });
    expect(world.telemetry.recorded('set').slice(-3)).toEqual(depthOf('dead-letter', 7, 1));
    // one that cannot be read hides no letters of another
    world.answers.set(DEAD, gone);
    await world.run(15_000);
    expect(world.telemetry.recorded('set').slice(-3)).toEqual(depthOf('dead-letter', 4, 0));
    expect(world.watch.deadLetterFault()).toMatchObject({ code: 'queue.unreachable' });
    const set = setUp({ deadLetterQueueUrl: 'http://q/mine' });
    redriven(set);
    await set.watch.start(set.stopping.signal);
    expect(set.watch.deadLetterQueueOf(TWO)).toMatchObject({ queueUrl: 'http://q/mine', bucketQueueUrls: [] });
    expect(set.watch.deadLetterQueues().map(({ queueUrl }) => queueUrl)).toEqual(['http://q/mine', 'http://q/one-dead', DEAD]);
  });

  it('tells a failure of either kind of queue, keeps what it knew, and goes on; Fix: it shows no depth of before meanwhile', async () => {
    const world = setUp({ deadLetterQueueUrl: DEAD });
    const shown = (): readonly unknown[] => [...new Set(world.telemetry.labels('tally_queue_messages').map(({ queue }) => queue))];
    world.answers.set(ONE, depth(1, 9, { maxReceiveCount: 7 }));
    world.answers.set(DEAD, gone);
    await world.watch.start(world.stopping.signal);
    expect(shown()).toEqual(['bucket']);
    expect([world.watch.fault(), world.watch.deadLetterFault()]).toEqual([undefined, { code: 'queue.unreachable', reason: 'gone' }]);
    const before = world.telemetry.recorded('set').length;
    world.answers.set(ONE, gone);
    await world.run(15_000);
    expect(world.telemetry.recorded('set')).toHaveLength(before);
    expect(world.watch.fault()).toEqual({ code: 'queue.unreachable', reason: 'gone' });
    expect(world.watch.inFlight).toBe(9);
    expect(world.watch.lastReceive(ONE)).toBe(6);
    world.answers.set(ONE, depth(0, 2));
    world.answers.delete(DEAD);
    await world.run(15_000);
    expect([world.watch.fault(), world.watch.deadLetterFault()]).toEqual([undefined, undefined]);
    expect(world.watch.inFlight).toBe(2);
  });
});
