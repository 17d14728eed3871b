import { describe, expect, it } from 'vitest';
import { FaultError, type FaultCode } from '../../../src/domain/fault.ts';
import { circuitMessages } from '../../../src/pipeline/serving/open-circuits.ts';
import { circuitsReported } from '../../support/fakes/circuits.ts';
import { refs } from '../../../src/pipeline/records/stored.ts';
import { BUCKET, createIngestWorld, QUEUE, nativeRecord, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const OTHER = 'other';
const s3Down = new FaultError('s3.unavailable', '503');
const denied = new FaultError('object.denied', 'no permission');

function routedPut(world: IngestWorld, key: string, bucket = BUCKET) {
  world.storage.put(bucket, key);
  return syntheticRecord(key, { bucket, eventTimeMs: world.clock.nowMs() });
}

const twoBuckets = (options: Parameters<typeof createIngestWorld>[0] = {}) => createIngestWorld({ ...options, buckets: [BUCKET, OTHER] });
const opened = (world: IngestWorld) => circuitsReported(world.telemetry, 'opened');
const closed = (world: IngestWorld) => circuitsReported(world.telemetry, 'closed');
const receives = (world: IngestWorld) => world.messages().map(({ receiveCount }) => receiveCount);

/** Sends an exact event and a look of the healthy neighbour, and expects both in the index within five seconds. */
async function expectHealthy(world: IngestWorld, name: string, bucket = OTHER): Promise<void> {
  await world.send(world.put(`exact-${name}`, { bucket }));
  await world.send(routedPut(world, `look-${name}`, bucket));
  await world.run(5 * SECOND_MS);
  expect(await world.document(`exact-${name}`, bucket)).toBeDefined();
  expect(await world.document(`look-${name}`, bucket)).toBeDefined();
}

describe('one object that S3 always answers with an error', () => {
  it.each<FaultCode>(['s3.unavailable', 'object.denied'])(
    '(%s) makes nobody wait: not the other objects of its bucket, and not other buckets',
    async (code) => {
      const world = await twoBuckets();
      world.storage.failWith(new FaultError(code, 'as scripted'), { key: 'poison' });
      for (let count = 0; count < 6; count += 1) await world.send(routedPut(world, 'poison'));
      await expectHealthy(world, 'beside', BUCKET);
      await expectHealthy(world, 'other');
      expect(opened(world)).toEqual([]);
      expect(world.role.admission.state).toBe('on');
    },
  );

  it('is looked at by LIST from its third receive on', async () => {
    const world = await createIngestWorld();
    world.storage.headless.add('poison');
    await world.send(routedPut(world, 'poison'));
    await world.run(MINUTE_MS);
    expect(await world.document('poison')).toBeUndefined();
    await world.run(5 * MINUTE_MS);
    expect(await world.document('poison')).toMatchObject({ settled: true });
    expect(world.letters()).toEqual([]);
    expect(world.messages()).toEqual([]);
  });

  it('does not keep the circuit of its bucket open: the first other key closes it', async () => {
    const world = await createIngestWorld();
    const poisons = Array.from({ length: 8 }, (_, index) => `poison-${index}`);
    world.storageHooks.afterLook = async (key) => {
      if (key.startsWith('poison')) throw s3Down;
    };
    for (const key of poisons) await world.send(routedPut(world, key));
    await world.run(SECOND_MS);
    expect(opened(world)).toContain(`bucket ${BUCKET}`);
    await world.send(routedPut(world, 'well'));
    await world.run(2 * SECOND_MS);
    expect(await world.document('well')).toBeDefined();
  });
});

describe('a bucket that S3 does not serve', () => {
  const fail = (world: IngestWorld, fault = s3Down): void => world.storage.failWith(fault, { bucket: BUCKET });

  it.each<FaultCode>(['s3.unavailable', 'bucket.missing', 'object.denied'])(
    '(%s) waits alone: its exact events and all of other buckets are indexed',
    async (code) => {
      const world = await twoBuckets();
      await expectHealthy(world, 'before');
      fail(world, new FaultError(code, 'as scripted'));
      for (let count = 0; count < 40; count += 1) await world.send(routedPut(world, `k-${count}`));
      await world.run(3 * SECOND_MS);
      expect(opened(world)).toEqual([`bucket ${BUCKET}`]);
      await expectHealthy(world, 'meanwhile');
      await world.send(world.put('exact'));
      await world.run(2 * SECOND_MS);
      expect(await world.document('exact')).toMatchObject({ settled: true });
      expect(world.role.admission.state).toBe('on');
    },
  );

  it('is tried by single attempts, ever more seldom, and goes on by itself with everything that waited', async () => {
    const world = await createIngestWorld({ folds: false });
    fail(world);
    for (let count = 0; count < 10; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(5 * MINUTE_MS);
    const looks = world.storage.observed.length;
    await world.run(5 * MINUTE_MS);
    // one trial a minute at most
    expect(world.storage.observed.length - looks).toBeLessThanOrEqual(6);
    world.storage.failWith(undefined);
    await world.run(6 * MINUTE_MS);
    expect(await Promise.all(Array.from({ length: 10 }, (_, index) => world.document(`k-${index}`)))).not.toContain(undefined);
    expect(closed(world)).toContain(`bucket ${BUCKET}`);
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toEqual([]);
  });

  it('is not asked where nothing waits for it', async () => {
    const world = await createIngestWorld({ folds: true });
    fail(world);
    for (let count = 0; count < 10; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(15 * MINUTE_MS);
    expect(world.messages()).toEqual([]);
    const looks = world.storage.observed.length;
    await world.run(30 * MINUTE_MS);
    expect(world.storage.observed).toHaveLength(looks);
  });

  it('for ten minutes has its records folded: acknowledged with at most seven receives and no letter', async () => {
    const world = await createIngestWorld({ limits: { heldMax: 20 } });
    fail(world);
    for (let count = 0; count < 30; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.send(world.remove('gone', { sequencer: null }));
    await world.run(9 * MINUTE_MS);
    expect(world.folded).toEqual([]);
    expect(Math.max(...receives(world))).toBeLessThanOrEqual(7);
    await world.run(7 * MINUTE_MS);
    expect(world.folded).toHaveLength(31);
    expect(world.folded.filter(({ change }) => change === 'delete')).toHaveLength(1);
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toEqual([]);
    expect(new Set(world.outcomes())).toEqual(new Set(['deferred', 'gap']));
  });

  it.each([-86_400_000, 86_400_000])('is waited for as long by a worker whose clock is %i ms ahead', async (skewMs) => {
    const world = await createIngestWorld({ skewMs });
    fail(world);
    for (let count = 0; count < 10; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(9 * MINUTE_MS);
    expect(world.folded).toEqual([]);
    expect(Math.max(...receives(world))).toBeLessThanOrEqual(7);
    await world.run(7 * MINUTE_MS);
    expect(world.folded).toHaveLength(10);
  });

  it('is waited for where folding is not permitted, and at the last permitted receive in hand', async () => {
    const world = await createIngestWorld({ folds: false, maxReceiveCount: 6 });
    fail(world);
    for (let count = 0; count < 6; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(60 * MINUTE_MS);
    expect(world.letters()).toEqual([]);
    expect(world.messages()).toHaveLength(6);
    world.storage.failWith(undefined);
    await world.run(6 * MINUTE_MS);
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toEqual([]);
  });

  it('has a quarter of the held set at most, so that others have room', async () => {
    const world = await twoBuckets({ limits: { heldMax: 40 } });
    fail(world);
    for (let count = 0; count < 100; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(10 * SECOND_MS);
    expect(world.telemetry.values('tally_held_messages').at(-1)).toBeLessThanOrEqual(10);
    await expectHealthy(world, 'beside');
  });

  it('that was created again in another region is found there', async () => {
    const world = await createIngestWorld();
    world.storageHooks.beforeLook = ({ region }) => {
      if (region !== 'eu-central-1') throw new FaultError('bucket.missing', 'the bucket is in eu-central-1');
    };
    world.storage.createBucket(BUCKET, { region: 'eu-central-1' });
    await world.send(routedPut(world, 'k'));
    await world.run(3 * MINUTE_MS);
    expect(await world.document('k')).toBeDefined();
    expect((await world.bucketRecord())?.region).toBe('eu-central-1');
  });

  it('is decided anew after the wait: a HEAD from before it is never written', async () => {
    const world = await createIngestWorld();
    fail(world);
    for (let count = 0; count < 6; count += 1) await world.send(routedPut(world, `k-${count}`));
    await world.run(10 * SECOND_MS);
    world.storage.put(BUCKET, 'k-5', { etag: 'latest' });
    world.storage.failWith(undefined);
    await world.run(5 * MINUTE_MS);
    expect(await world.document('k-5')).toMatchObject({ etag: 'latest' });
  });
});

describe('S3 that does not answer in one region', () => {
  it('holds back only looks of that region', async () => {
    const world = await createIngestWorld({ buckets: [] });
    for (const [bucket, region] of [
      ['near-1', 'us-east-1'],
      ['near-2', 'us-east-1'],
      ['far', 'eu-central-1'],
    ] as const) {
      await world.connectBucket(bucket, { region });
    }
    await world.run(6 * SECOND_MS);
    await expectHealthy(world, 'before', 'near-1');
    await expectHealthy(world, 'before', 'near-2');
    world.storageHooks.beforeLook = ({ region }) => {
      if (region === 'us-east-1') throw s3Down;
    };
    for (let count = 0; count < 8; count += 1) {
      await world.send(routedPut(world, `k-${count}`, 'near-1'));
      await world.send(routedPut(world, `k-${count}`, 'near-2'));
    }
    await world.run(2 * SECOND_MS);
    expect(opened(world)).toContain('endpoint us-east-1');
    await expectHealthy(world, 'meanwhile', 'far');
    await world.send(world.put('exact', { bucket: 'near-1' }));
    await world.run(SECOND_MS);
    expect(await world.document('exact', 'near-1')).toBeDefined();
    world.storageHooks.beforeLook = undefined;
    await world.run(5 * MINUTE_MS);
    expect(closed(world)).toContain('endpoint us-east-1');
    expect(await world.document('k-7', 'near-2')).toBeDefined();
  });

  it('(no credentials) is one failure, whichever bucket is asked, and exact events go on', async () => {
    const world = await twoBuckets();
    world.storage.failWith(new FaultError('s3.credentials', 'ExpiredToken'));
    await world.send(routedPut(world, 'k'));
    await world.run(SECOND_MS);
    expect(opened(world)).toEqual(['endpoint us-east-1']);
    await world.send(world.put('exact'), world.put('exact', { bucket: OTHER }));
    await world.run(SECOND_MS);
    expect(await world.document('exact', OTHER)).toBeDefined();
  });
});

describe('the index of one bucket', () => {
  it.each<FaultCode>(['bucket.index-blocked', 'bucket.index-overloaded'])('(%s of its items) waits alone', async (code) => {
    const world = await twoBuckets();
    await expectHealthy(world, 'before');
    world.store.broken.buckets.set(BUCKET, code);
    for (let count = 0; count < 20; count += 1) await world.send(world.put(`k-${count}`));
    await world.run(20 * SECOND_MS);
    expect(opened(world)).toEqual([`index ${BUCKET}`]);
    await expectHealthy(world, 'meanwhile');
    expect(world.role.admission.state).toBe('on');
    const attempts = () => world.store.requests.filter((writes) => writes.some(({ document }) => document.bucket === BUCKET)).length;
    const before = attempts();
    await world.run(MINUTE_MS);
    // a push-back is repeated for 1.5 s before it is a failure
    expect(attempts() - before).toBeLessThanOrEqual(code === 'bucket.index-overloaded' ? 20 : 5);
    world.store.broken.buckets.clear();
    await world.run(6 * MINUTE_MS);
    expect(await world.document('k-19')).toBeDefined();
    expect(closed(world)).toEqual([`index ${BUCKET}`]);
    expect(world.messages()).toEqual([]);
  });

  it('waits while its bucket’s record cannot be read, exact events too, and goes on when it can', async () => {
    const world = await twoBuckets();
    const { id, kind } = refs.bucket(BUCKET);
    const entry = (await world.store.plainState.get(id))!;
    await world.store.plainState.put({ id, kind, record: { bucket: BUCKET, source: 'of the future' } }, entry.version);
    await world.send(world.put('k'));
    await world.send(routedPut(world, 'l'));
    await world.run(5 * SECOND_MS);
    expect(world.telemetry.recorded('error')).toMatchObject([[circuitMessages.index.opened, { bucket: BUCKET, code: 'record.newer' }]]);
    await expectHealthy(world, 'meanwhile');
    const broken = (await world.store.plainState.get(id))!;
    await world.store.plainState.put({ id, kind, record: entry.record }, broken.version);
    await world.run(6 * MINUTE_MS);
    expect(await world.document('k')).toBeDefined();
    expect(await world.document('l')).toBeDefined();
  });

  it('and all others at once are the index store: receiving stops, and goes on by itself', async () => {
    const world = await twoBuckets();
    await expectHealthy(world, 'before');
    for (const bucket of [BUCKET, OTHER]) world.store.broken.buckets.set(bucket, 'bucket.index-blocked');
    for (let count = 0; count < 30; count += 1) {
      await world.send(world.put(`k-${count}`), world.put(`k-${count}`, { bucket: OTHER }));
      await world.run(SECOND_MS);
    }
    expect(opened(world)).toContain('cluster');
    world.store.broken.buckets.clear();
    await world.run(6 * MINUTE_MS);
    expect(await world.document('k-29')).toBeDefined();
    expect(await world.document('k-29', OTHER)).toBeDefined();
    expect(world.letters()).toEqual([]);
  });
});

describe('what is received while failing indices hold the circuit of the index store open', () => {
  it('is given back for other workers a few times, and then held: it costs few receives, and nothing becomes a letter', async () => {
    const world = await twoBuckets();
    await expectHealthy(world, 'before');
    for (const bucket of [BUCKET, OTHER]) world.store.broken.buckets.set(bucket, 'bucket.index-denied');
    for (let count = 0; count < 30; count += 1) {
      await world.send(world.put(`k-${count}`), world.put(`k-${count}`, { bucket: OTHER }));
      await world.run(SECOND_MS);
    }
    expect(opened(world)).toContain('cluster');
    await world.run(4 * MINUTE_MS);
    // the first has waited for a minute, and so have those that were received with it
    const given = world
      .messages()
      .filter(({ visibleAtMs }) => visibleAtMs > world.clock.nowMs() + MINUTE_MS || visibleAtMs <= world.clock.nowMs());
    expect(given.length).toBeGreaterThanOrEqual(15);
    await world.run(120 * MINUTE_MS);
    expect(Math.max(...receives(world))).toBeLessThanOrEqual(5);
    world.store.broken.buckets.clear();
    await world.run(6 * MINUTE_MS);
    expect(await world.document('k-29')).toBeDefined();
    expect(await world.document('k-29', OTHER)).toBeDefined();
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toEqual([]);
  });
});

describe('what was received half as often as is permitted while failing indices hold the circuit of the index store open', () => {
  it('is folded, before restarts or other failures make it a letter', async () => {
    const world = await twoBuckets();
    for (const bucket of [BUCKET, OTHER]) world.store.broken.buckets.set(bucket, 'bucket.index-denied');
    for (let count = 0; count < 5; count += 1) await world.send(world.put(`k-${count}`), world.put(`k-${count}`, { bucket: OTHER }));
    await world.run(5 * SECOND_MS);
    expect(opened(world)).toContain('cluster');
    await world.send(world.put('often'));
    // by workers that were killed
    for (let count = 0; count < 10; count += 1) await world.queues.receive(QUEUE, { visibilityS: 0, max: 10 });
    await world.run(30 * SECOND_MS);
    expect(world.folded).toHaveLength(1);
    expect(world.letters()).toEqual([]);
  });
});

describe('an attempt that has the place of one circuit and fails by something else', () => {
  const openIndexCircuit = async (world: IngestWorld): Promise<void> => {
    world.store.broken.buckets.set(BUCKET, 'bucket.index-blocked');
    for (let count = 0; count < 4; count += 1) await world.send(world.put(`k-${count}`));
    await world.run(2 * SECOND_MS);
    expect(opened(world)).toEqual([`index ${BUCKET}`]);
  };

  it('(its object) leaves its message to wait alone, and does not ask again without a pause', async () => {
    const world = await createIngestWorld();
    const fault = { code: 'bucket.index-blocked', reason: 'as scripted' } as const;
    world.circuits.indexFailed(BUCKET, fault, { sentAtMs: world.clock.monotonicMs(), isWhole: true });
    let looks = 0;
    world.storageHooks.afterLook = async () => {
      looks += 1;
      await world.clock.sleep(10);
      throw denied;
    };
    await world.send(routedPut(world, 'poison'));
    await world.run(25 * SECOND_MS);
    expect(looks).toBeLessThanOrEqual(2);
  });

  it('(the index store) tries again after a pause, until that circuit opens', async () => {
    const world = await createIngestWorld();
    await openIndexCircuit(world);
    await world.run(15 * SECOND_MS);
    world.store.broken.all = new FaultError('index.unreachable', 'down');
    await world.run(60 * SECOND_MS);
    world.store.broken.all = undefined;
    world.store.broken.buckets.clear();
    await world.run(6 * MINUTE_MS);
    expect(await world.document('k-3')).toBeDefined();
  });
});

describe('the index store', () => {
  it('that pushes one read of a record back is asked again, and nobody else waits', async () => {
    const world = await createIngestWorld();
    const { state } = world.store;
    const get: typeof state.get = state.get.bind(state);
    let pushesBack = true;
    Object.assign(state, {
      get: async (...args: Parameters<typeof get>) => {
        if (pushesBack && args[0] === refs.bucket(BUCKET).id) {
          pushesBack = false;
          throw new FaultError('index.overloaded', '429');
        }
        return get(...args);
      },
    });
    await world.send(world.put('k'));
    await world.run(2 * SECOND_MS);
    expect(await world.document('k')).toBeDefined();
    expect(opened(world)).toEqual([]);
  });
});

describe('a prefix that is denied', () => {
  it('does not keep the other keys of its bucket from being served, and none of them is folded', async () => {
    const world = await createIngestWorld({ limits: { heldMax: 1_000 } });
    world.storageHooks.afterLook = async (key) => {
      if (key.startsWith('denied/')) throw denied;
    };
    for (let minute = 0; minute < 20; minute += 1) {
      for (let count = 0; count < 15; count += 1) await world.send(routedPut(world, `denied/${minute}-${count}`));
      await world.send(routedPut(world, `well-${minute}`));
      await world.run(MINUTE_MS);
    }
    const well = await Promise.all(Array.from({ length: 19 }, (_, minute) => world.document(`well-${minute}`)));
    expect(well.map((each) => each !== undefined)).not.toContain(false);
  });
});

describe('an outage of the index store', () => {
  it('for longer than a message may be held gives it back to its queue, and it is written by a later receive', async () => {
    const world = await createIngestWorld();
    world.store.broken.all = new FaultError('index.unreachable', 'gone');
    await world.send(world.put('k'));
    await world.run(10 * SECOND_MS);
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
});

describe('after an outage of the index store', () => {
  it('of an hour, what waited for it is not folded because S3 or an index fails for seconds', async () => {
    const world = await createIngestWorld();
    await world.send(world.put('known'));
    await world.run(SECOND_MS);
    world.store.broken.all = new FaultError('index.unreachable', 'gone');
    for (let count = 0; count < 6; count += 1) await world.send(world.put(`k-${count}`));
    await world.run(60 * MINUTE_MS);
    world.store.broken.all = undefined;
    world.store.broken.buckets.set(BUCKET, 'bucket.index-unavailable');
    await world.run(30 * SECOND_MS);
    world.store.broken.buckets.clear();
    await world.run(6 * MINUTE_MS);
    expect(world.folded).toEqual([]);
    expect(await world.document('k-5')).toBeDefined();
  });
});

describe('a write that fails each request that it is in', () => {
  it('is deferred alone after a few attempts', async () => {
    const world = await twoBuckets();
    world.store.broken.beforeWrite = async (writes) => {
      if (writes.some(({ document }) => document.key === 'poison')) throw new FaultError('index.unreachable', '502');
    };
    await world.send(world.put('poison'));
    for (let count = 0; count < 60; count += 1) {
      await world.send(world.put(`k-${count}`, { bucket: OTHER }));
      await world.run(500);
    }
    expect(world.settlements()).toContain('defer');
    expect(await world.document('k-59', OTHER)).toBeDefined();
  });
});

describe('a message', () => {
  it('of which one record waits and another is done keeps both', async () => {
    const world = await twoBuckets();
    world.storage.failWith(denied, { bucket: BUCKET });
    for (let count = 0; count < 6; count += 1) await world.send(routedPut(world, `open-${count}`));
    await world.run(SECOND_MS);
    await world.send(routedPut(world, 'k'), nativeRecord('n', { bucket: OTHER, eventTimeMs: world.clock.nowMs() }));
    await world.run(20 * MINUTE_MS);
    expect(await world.document('n', OTHER)).toBeDefined();
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toEqual([]);
  });
});
