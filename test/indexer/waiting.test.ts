import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { circuitsReported } from '../support/fakes/circuits.ts';
import { refs } from '../../src/store/stored.ts';
import { BUCKET, createIngestWorld, HANDED_OVER, type IngestWorld } from '../support/worlds/ingest.ts';
import { QUEUE } from '../support/worlds/roles.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const OTHER = 'other';
const s3Down = new FaultError('s3.unavailable', '503');

const twoBuckets = (options: Parameters<typeof createIngestWorld>[0] = {}) => createIngestWorld({ ...options, buckets: [BUCKET, OTHER] });
const opened = (world: IngestWorld) => circuitsReported(world.telemetry, 'opened');
const receives = (world: IngestWorld) => world.messages().map(({ receiveCount }) => receiveCount);

/** A world whose bucket S3 does not serve, and so many records of it. */
async function stuck(count = 6, options: Parameters<typeof createIngestWorld>[0] = {}): Promise<IngestWorld> {
  const world = await createIngestWorld(options);
  world.storage.failWith(s3Down, { bucket: BUCKET });
  for (let at = 0; at < count; at += 1) await world.send(world.routedPut(`k-${at}`));
  return world;
}

/** Reads of this record fail while there is a refusal. */
function refuseReads({ store: { state } }: IngestWorld, id: string, refusal: () => FaultError | undefined): void {
  const get: typeof state.get = state.get.bind(state);
  Object.assign(state, {
    get: async (...args: Parameters<typeof get>) => {
      const fault = args[0] === id ? refusal() : undefined;
      if (fault !== undefined) throw fault;
      return get(...args);
    },
  });
}

describe('one object that S3 always answers with an error', () => {
  it('is observed by LIST from its third receive on', async () => {
    const world = await createIngestWorld();
    world.storage.headless.add('poison');
    await world.tell(world.routedPut('poison'), MINUTE_MS);
    expect(await world.document('poison')).toBeUndefined();
    await world.run(5 * MINUTE_MS);
    expect(await world.document('poison')).toMatchObject({ settled: true });
    expect([world.messages(), world.letters()]).toEqual([[], []]);
  });
});

describe("a bucket's index that refuses documents", () => {
  it('is tried by the next record, although the one before it had nothing to write', async () => {
    const world = await createIngestWorld();
    world.store.broken.buckets.set(BUCKET, 'bucket.index-blocked');
    for (let count = 0; count < 3; count += 1) await world.send(world.put(`k-${count}`));
    await world.run(3 * SECOND_MS);
    expect(opened(world)).toHaveLength(1);
    world.store.broken.buckets.clear();
    await world.tell(world.put('tagged', { eventName: 'ObjectTagging:Put' }), 2 * SECOND_MS);
    expect(world.outcomes().at(-1)).toBe('ignored');
    await world.tell(world.put('next'), 2 * SECOND_MS);
    expect(await world.document('next')).toMatchObject({ settled: true });
  });
});

it('an index that refused is tried once in half a minute, also where whole requests fail then, which take along what is beside them', async () => {
  const world = await twoBuckets();
  world.store.broken.buckets.set(BUCKET, 'bucket.index-unavailable');
  for (let count = 0; count < 3; count += 1) await world.send(world.put(`k-${count}`));
  await world.run(3 * SECOND_MS);
  world.store.broken.buckets.clear();
  let attempts = 0;
  world.store.broken.beforeWrite = async (writes) => {
    if (!writes.some(({ document }) => document.bucket === BUCKET)) return;
    attempts += 1;
    throw new FaultError('index.unreachable', '504');
  };
  for (let count = 0; count < 150; count += 1) {
    await world.send(world.put(`refused/${count}`));
    await world.tell(world.put(`beside/${count}`, { bucket: OTHER }), 400);
  }
  // the first is that of a message that was received for the first time
  expect(attempts).toBeLessThanOrEqual(3);
});

describe('a bucket that S3 does not serve', () => {
  it.each([0, -86_400_000, 86_400_000])(
    'for ten minutes has its records handed over to a re-index, with at most seven receives and no letter, and is asked no more (clock %i ms ahead)',
    async (skewMs) => {
      const world = await stuck(30, { skewMs, limits: { heldMax: 20 } });
      await world.tell(world.remove('gone', { sequencer: null }), 9 * MINUTE_MS);
      expect(world.handedOver).toEqual([]);
      expect(Math.max(...receives(world))).toBeLessThanOrEqual(7);
      // each for twice as long as before, up to 200 s
      const hiddenS = world.queues.settlements.map(({ kind }) => kind).filter((kind) => typeof kind === 'number');
      expect([...new Set(hiddenS)]).toEqual([30, 60, 120, 200]);
      await world.run(7 * MINUTE_MS);
      expect(world.handedOver).toHaveLength(31);
      expect(world.handedOver.filter(({ change }) => change === 'delete')).toHaveLength(1);
      expect([world.messages(), world.letters()]).toEqual([[], []]);
      expect(new Set(world.outcomes())).toEqual(new Set(['deferred', 'gap']));
      const observed = world.storage.observed.length;
      await world.run(30 * MINUTE_MS);
      expect(world.storage.observed).toHaveLength(observed);
    },
  );

  it('is waited for where handover is not permitted, as long as its messages have receives', async () => {
    const world = await stuck(6, { handsOver: false, maxReceiveCount: 8 });
    await world.run(12 * MINUTE_MS);
    expect(world.letters()).toEqual([]);
    expect(world.messages()).toHaveLength(6);
    world.storage.failWith(undefined);
    await world.run(5 * MINUTE_MS);
    expect([world.messages(), world.letters()]).toEqual([[], []]);
  });

  it('has no more messages in flight than half of what stops receiving, and what is hidden until the number is read again', async () => {
    const world = await createIngestWorld({ limits: { inFlightMax: 400 } });
    world.storage.failWith(s3Down, { bucket: BUCKET });
    let inFlightMax = 0;
    for (let second = 0; second < 90; second += 1) {
      for (let count = 0; count < 20; count += 1) await world.send(world.routedPut(`k-${second}-${count}`));
      await world.run(SECOND_MS);
      const hidden = world.messages().filter(({ visibleAtMs }) => visibleAtMs > world.clock.nowMs());
      inFlightMax = Math.max(inFlightMax, hidden.length);
    }
    // the number is read every 15 s
    expect(inFlightMax).toBeLessThanOrEqual(400 / 2 + 16 * 20);
    expect(world.handedOver.length).toBeGreaterThan(1_000);
    expect(world.letters()).toEqual([]);
  });

  it('has at most a thousand messages hidden between two readings of that number', async () => {
    const world = await stuck(1_500);
    await world.run(10 * SECOND_MS);
    expect(world.handedOver.length).toBeGreaterThanOrEqual(450);
    expect(world.messages().length).toBeLessThanOrEqual(1_050);
  });

  it('that was created again in another region is found there', async () => {
    const world = await createIngestWorld();
    world.storageHooks.beforeHead = ({ region }) => {
      if (region !== 'eu-central-1') throw new FaultError('bucket.missing', 'the bucket is in eu-central-1');
    };
    world.storage.createBucket(BUCKET, { region: 'eu-central-1' });
    await world.tell(world.routedPut('k'), 3 * MINUTE_MS);
    expect(await world.document('k')).toBeDefined();
    expect((await world.bucketRecord())?.region).toBe('eu-central-1');
  });

  it('is decided anew after the wait: a HEAD from before it is never written', async () => {
    const world = await stuck();
    await world.run(10 * SECOND_MS);
    world.storage.put(BUCKET, 'k-5', { etag: 'latest' });
    world.storage.failWith(undefined);
    await world.run(5 * MINUTE_MS);
    expect(await world.document('k-5')).toMatchObject({ etag: 'latest' });
  });
});

describe('a record that a re-index should do', () => {
  it.each([
    ['a record that keeps changing', 'record.contended', []],
    ['the state index', 'index.state-missing', ['cluster']],
  ] as const)('waits in its queue while its gap cannot be stored because of %s, and is handed over later', async (_, code, circuits) => {
    const world = await stuck();
    let refusal: FaultError | undefined = new FaultError(code, 'not stored');
    refuseReads(world, HANDED_OVER, () => refusal);
    await world.run(14 * MINUTE_MS);
    expect([world.handedOver, world.letters()]).toEqual([[], []]);
    expect(world.messages()).toHaveLength(6);
    expect(opened(world)).toEqual(expect.arrayContaining([...circuits]));
    refusal = undefined;
    await world.run(5 * MINUTE_MS);
    expect(world.handedOver).toHaveLength(6);
    expect([world.messages(), world.letters()]).toEqual([[], []]);
  });

  it('says so if it is a change of tags, which no listing shows', async () => {
    const world = await createIngestWorld({ bucket: { enrich: 'tags' } });
    world.storage.failWith(s3Down, { bucket: BUCKET });
    for (let count = 0; count < 6; count += 1) await world.send(world.put(`k-${count}`, { eventName: 'ObjectTagging:Put' }));
    await world.run(16 * MINUTE_MS);
    expect(world.handedOver.map(({ change }) => change)).toEqual(Array.from({ length: 6 }, () => 'tags'));
  });

  it('becomes a letter where nobody would, before SQS deletes its message', async () => {
    const world = await stuck(6, { handsOver: false, retentionMs: 60 * MINUTE_MS });
    await world.run(44 * MINUTE_MS);
    expect(world.letters()).toEqual([]);
    await world.run(6 * MINUTE_MS);
    expect(world.letters()).toHaveLength(6);
  });
});

it('what was received half as often as is permitted is handed over, before restarts or other failures make it a letter', async () => {
  const world = await createIngestWorld({ maxReceiveCount: 9 });
  world.store.broken.buckets.set(BUCKET, 'bucket.index-denied');
  for (let count = 0; count < 5; count += 1) await world.send(world.put(`k-${count}`));
  await world.run(5 * SECOND_MS);
  expect(opened(world)).toEqual([`index ${BUCKET}`]);
  await world.send(world.put('often'));
  // by workers that were killed
  for (let count = 0; count < 4; count += 1) await world.queues.receive(QUEUE, { visibilityS: 0, max: 10 });
  await world.run(10 * SECOND_MS);
  expect(world.handedOver).toHaveLength(1);
  expect(world.letters()).toEqual([]);
});

it('the index store that pushes one read of a record back is asked again, and nobody else waits', async () => {
  const world = await createIngestWorld();
  let pushesBack = true;
  refuseReads(world, refs.bucket(BUCKET).id, () => {
    const refusal = pushesBack ? new FaultError('index.overloaded', '429') : undefined;
    pushesBack = false;
    return refusal;
  });
  await world.tell(world.put('k'), 2 * SECOND_MS);
  expect(await world.document('k')).toBeDefined();
  expect(opened(world)).toEqual([]);
});

it('an outage of the index store for longer than a message may be held gives it back to its queue, and it is written by a later receive', async () => {
  const world = await createIngestWorld();
  world.store.broken.all = new FaultError('index.unreachable', 'gone');
  await world.tell(world.put('k'), 10 * SECOND_MS);
  await world.clock.advance(11 * 3_600_000);
  await world.run(10 * SECOND_MS);
  expect(world.queues.settlements.filter(({ kind }) => kind === 0)).toHaveLength(1);
  expect(receives(world)).toEqual([1]);
  world.store.broken.all = undefined;
  await world.run(30 * SECOND_MS);
  expect(await world.document('k')).toBeDefined();
  expect(world.outcomes()).toEqual(['deferred', 'written']);
  expect(world.letters()).toEqual([]);
});

it('after an outage of the index store of an hour, what waited for it is not handed over because S3 or an index fails for seconds', async () => {
  const world = await createIngestWorld();
  await world.tell(world.put('known'), SECOND_MS);
  world.store.broken.all = new FaultError('index.unreachable', 'gone');
  for (let count = 0; count < 6; count += 1) await world.send(world.put(`k-${count}`));
  await world.run(60 * MINUTE_MS);
  world.store.broken.all = undefined;
  world.store.broken.buckets.set(BUCKET, 'bucket.index-unavailable');
  await world.run(30 * SECOND_MS);
  world.store.broken.buckets.clear();
  await world.run(6 * MINUTE_MS);
  expect(world.handedOver).toEqual([]);
  expect(await world.document('k-5')).toBeDefined();
});

it('a write that fails each request that it is in is deferred alone after a few attempts', async () => {
  const world = await twoBuckets();
  world.store.broken.beforeWrite = async (writes) => {
    if (writes.some(({ document }) => document.key === 'poison')) throw new FaultError('index.unreachable', '502');
  };
  await world.send(world.put('poison'));
  for (let count = 0; count < 60; count += 1) {
    await world.tell(world.put(`k-${count}`, { bucket: OTHER }), 500);
  }
  expect(world.settlements()).toContain('defer');
  expect(await world.document('k-59', OTHER)).toBeDefined();
});
