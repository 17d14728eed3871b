import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createBucketRecordCache } from '../../src/indexer/event-buckets.ts';
import type { StateStore } from '../../src/store/store.ts';
import { refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

async function store(state: StateStore, floor: number): Promise<void> {
  await updateRecord(state, refs.bucket('b'), () => recordOf('b', { source: 'topic', floor }));
}

function setUp() {
  const clock = createFakeClock();
  const backing = createBreakableStore();
  /** Reads answer when this is resolved. */
  let reading: Promise<void> = Promise.resolve();
  const state: StateStore = {
    ...backing.state,
    get: async (...args) => {
      const entry = await backing.state.get(...args);
      await reading;
      return entry;
    },
  };
  const cache = createBucketRecordCache({ state, clock });
  return {
    clock,
    backing,
    cache,
    state: backing.plainState,
    reads: () => backing.stateReads.length,
    holdReads: () => {
      const held = Promise.withResolvers<void>();
      reading = held.promise;
      return () => {
        reading = Promise.resolve();
        held.resolve();
      };
    },
  };
}

describe('a connected bucket', () => {
  it('is read by id once and then known without waiting', async () => {
    const { cache, state, backing, reads } = setUp();
    await store(state, 1);
    expect(cache.peek('b')).toBeUndefined();
    expect(await cache.lookup('b')).toMatchObject({ floor: 1 });
    expect(cache.peek('b')).toMatchObject({ floor: 1 });
    expect(await cache.lookup('b')).toMatchObject({ floor: 1 });
    expect(reads()).toBe(1);
    expect(backing.stateReads).toEqual(['bucket:b']);
  });

  it('is never decided by a record older than ten seconds, and a busy one is read again before that', async () => {
    const { cache, state, clock, reads } = setUp();
    await store(state, 1);
    await cache.lookup('b');
    await store(state, 2);
    await clock.advance(5_000);
    expect(cache.peek('b')).toMatchObject({ floor: 1 });
    expect(reads()).toBe(1);
    await clock.advance(1);
    // this look reads it again, for the next
    expect(cache.peek('b')).toMatchObject({ floor: 1 });
    await settled();
    expect(reads()).toBe(2);
    expect(cache.peek('b')).toMatchObject({ floor: 2 });
    await clock.advance(10_001);
    expect(cache.peek('b')).toBeUndefined();
    expect(await cache.lookup('b')).toMatchObject({ floor: 2 });
  });

  it('ages from before it was read, so a read that took too long is a fault', async () => {
    const { cache, state, clock, holdReads } = setUp();
    await store(state, 1);
    const release = holdReads();
    const looked = expect(cache.lookup('b')).rejects.toMatchObject({ code: 'index.unreachable' });
    await clock.advance(10_001);
    release();
    await looked;
    expect(cache.peek('b')).toBeUndefined();
  });

  it('is read once for all who ask together', async () => {
    const { cache, state, reads } = setUp();
    await store(state, 1);
    await Promise.all([cache.lookup('b'), cache.lookup('b'), cache.lookup('b')]);
    expect(reads()).toBe(1);
  });

  it('that was disconnected is gone ten seconds later at most', async () => {
    const { cache, state, clock } = setUp();
    await store(state, 1);
    await cache.lookup('b');
    await removeRecord(state, 'bucket:b');
    await clock.advance(10_001);
    expect(await cache.lookup('b')).toBeUndefined();
  });

  it('tells the store’s fault to whoever must wait, and to nobody who need not', async () => {
    const { cache, state, clock, backing } = setUp();
    await store(state, 1);
    await cache.lookup('b');
    backing.broken.all = new FaultError('index.unreachable', 'gone');
    await clock.advance(6_000);
    expect(cache.peek('b')).toMatchObject({ floor: 1 });
    await clock.advance(5_000);
    await expect(cache.lookup('b')).rejects.toMatchObject({ code: 'index.unreachable' });
  });
});

describe('a bucket that is not connected', () => {
  it('is asked for again after five seconds', async () => {
    const { cache, state, clock, reads } = setUp();
    expect(await cache.lookup('b')).toBeUndefined();
    expect(await cache.lookup('b')).toBeUndefined();
    expect(reads()).toBe(1);
    await store(state, 1);
    await clock.advance(5_000);
    expect(await cache.lookup('b')).toBeUndefined();
    await clock.advance(1);
    expect(await cache.lookup('b')).toMatchObject({ floor: 1 });
  });
});

describe('a bucket that was forgotten', () => {
  it('is read again, and a read from before is not remembered', async () => {
    const { cache, state, clock, holdReads } = setUp();
    const release = holdReads();
    const before = cache.lookup('b');
    await settled();
    await store(state, 1);
    cache.forget('b');
    release();
    expect(await before).toBeUndefined();
    expect(await cache.lookup('b')).toMatchObject({ floor: 1 });
    await clock.advance(1);
    expect(cache.peek('b')).toMatchObject({ floor: 1 });
  });
});
