/** Each message ends in one outcome, and each loss is a gap: whatever the queue's limit is, with a dead-letter queue and without one. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { letterNotes } from '../../src/events/dead-letter.ts';
import { lastReceiveOf } from '../../src/events/outcome.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createLetterBrowser, createLetterWatch } from '../../src/repair/dead-letters.ts';
import { readNow } from '../support/fakes/dead-letter-queues.ts';
import { createIngestWorld, nativeRecord, syntheticRecord, type IngestWorld } from '../support/worlds/ingest.ts';
import { DEAD_LETTERS, QUEUE } from '../support/worlds/roles.ts';

const MINUTE_MS = 60_000;
const BUCKETS = ['photos', 'denied', 'poisoned'];

/** A world whose worker sleeps until time moves on. */
async function createWorld(options: Parameters<typeof createIngestWorld>[0]): Promise<IngestWorld> {
  const world = await createIngestWorld({ buckets: BUCKETS, ...options });
  await world.run(100);
  return world;
}

/** Each worker that receives the messages of these bodies now is killed at once. */
async function killed({ queues }: IngestWorld, bodies: readonly string[], times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    const received = await queues.receive(QUEUE, { visibilityS: 0, max: 10 });
    for (const { body } of received.filter(({ body: each }) => !bodies.includes(each))) expect(body).toBe('received too early');
  }
}

function inexact(world: IngestWorld, bucket: string): string {
  world.storage.put(bucket, 'k');
  return JSON.stringify({ Records: [syntheticRecord('k', { bucket, eventTimeMs: world.clock.nowMs() })] });
}

/** Looks at the dead-letter queue, as one of the workers does twice a minute. */
async function watched(world: IngestWorld): Promise<void> {
  const { queues, telemetry, clock } = world;
  const state = world.store.plainState;
  const known = await readNow(queues, { queueUrl: DEAD_LETTERS, of: [QUEUE] });
  const watch = createLetterWatch({
    browse: createLetterBrowser({ queues, telemetry }),
    state,
    gaps: createGapReports({ state, clock, telemetry }),
    clock,
    telemetry,
    deadLetterQueues: () => known,
    bucketQueueUrls: [QUEUE],
  });
  const looking = watch(new AbortController().signal);
  await world.run(5_000);
  await looking;
}

const lostBuckets = async (world: IngestWorld) =>
  [...new Set([...(await world.gaps()).map(({ bucket }) => bucket), ...world.handedOver.map(({ bucket }) => bucket)])].toSorted();
const faults = (world: IngestWorld) => world.letters().map(({ attributes }) => letterNotes(attributes).fault);
const bodies = (messages: readonly { readonly body: string }[]) => messages.map(({ body }) => body).toSorted();

describe.each([1, 4, 5, 20, 100, 1_000])('with a maxReceiveCount of %i', (maxReceiveCount) => {
  const last = lastReceiveOf(maxReceiveCount);

  it.each([true, false])(
    'what can be indexed is, what fails at the last receive or ends its process is given up with a gap (dead-letter queue: %s)',
    async (deadLetters) => {
      const world = await createWorld({ maxReceiveCount, deadLetters });
      world.storage.failWith(new FaultError('object.denied', 'denied'), { bucket: 'denied' });
      const poison = JSON.stringify({ Records: [nativeRecord('never parsed', { bucket: 'poisoned' })] });
      const failing = inexact(world, 'denied');
      const settling = inexact(world, 'photos');
      await world.sendBody(poison);
      await killed(world, [poison], 1);
      for (const body of [failing, settling]) await world.sendBody(body);
      await killed(world, [poison, failing, settling], last - 1);
      await world.send(world.put('neighbour'));
      await world.run(2 * MINUTE_MS);
      if (deadLetters) await watched(world);

      expect(await world.document('neighbour')).toBeDefined();
      expect(await world.document('k')).toMatchObject({ settled: true });
      expect(await world.document('never parsed', 'poisoned')).toBeUndefined();
      expect(await lostBuckets(world)).toEqual(['denied', 'poisoned']);
      expect(bodies(deadLetters ? world.letters() : world.messages())).toEqual([failing, poison].toSorted());
      expect(deadLetters ? world.messages() : world.letters()).toEqual([]);
      // what ends its process is SQS's to move where no receive is left for it
      const isMoved = maxReceiveCount === last;
      if (deadLetters)
        expect(new Set(faults(world))).toEqual(new Set(['object.denied', isMoved ? undefined : 'message.received-too-often']));
      if (!deadLetters) {
        const gaps = JSON.stringify(await world.gaps());
        await world.run(60 * MINUTE_MS);
        expect(JSON.stringify(await world.gaps())).toBe(gaps);
      }
    },
  );
});

describe('a message that ends its process', () => {
  it('opens the gaps of all buckets when it names none of them, those with a record of a newer version included', async () => {
    const world = await createWorld({ maxReceiveCount: 100 });
    await world.store.plainState.put({ id: 'bucket:newer', kind: 'bucket', record: { bucket: 'newer' } }, null);
    await world.sendBody('poison');
    await killed(world, ['poison'], 20);
    await world.run(5_000);
    expect(faults(world)).toEqual(['message.received-too-often']);
    expect(await lostBuckets(world)).toEqual(['newer', ...BUCKETS].toSorted());
  });

  it('waits, unread, for a store that cannot take its gap, and for a queue that cannot take its letter', async () => {
    const world = await createWorld({ maxReceiveCount: 100 });
    const poison = JSON.stringify({ Records: [nativeRecord('k', { bucket: 'poisoned' })] });
    await world.sendBody(poison);
    await killed(world, [poison], 20);
    world.store.broken.all = new FaultError('index.unreachable', 'gone');
    await world.run(5 * MINUTE_MS);
    expect([world.letters(), world.messages().length]).toEqual([[], 1]);
    world.queues.failSends(DEAD_LETTERS);
    world.store.broken.all = undefined;
    await world.run(5 * MINUTE_MS);
    expect([await lostBuckets(world), world.letters(), world.messages().length]).toEqual([['poisoned'], [], 1]);
    world.queues.failSends(undefined);
    await world.run(20 * MINUTE_MS);
    expect([faults(world), world.messages()]).toEqual([['message.received-too-often'], []]);
  });
});
