import { describe, expect, it } from 'vitest';
import { clockOfMs } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { circuitsReported } from '../support/fakes/circuits.ts';
import { letterNotes } from '../../src/events/dead-letter.ts';
import { BUCKET, createIngestWorld, nativeRecord, sequencerAt, syntheticRecord, type IngestWorld } from '../support/worlds/ingest.ts';
import { refs } from '../../src/store/stored.ts';
import { DEAD_LETTERS, QUEUE } from '../support/worlds/roles.ts';

const MINUTE_MS = 60_000;
const unreachable = new FaultError('index.unreachable', 'no route');
const denied = new FaultError('object.denied', 'no permission');

const receiveCounts = (world: IngestWorld) => world.messages().map(({ receiveCount }) => receiveCount);
/** For how many seconds from now each message is hidden. */
const hiddenS = (world: IngestWorld) => world.messages().map(({ visibleAtMs }) => (visibleAtMs - world.clock.nowMs()) / 1_000);

it('the log at debug has each record’s outcome, with its message, bucket and key', async () => {
  const world = await createIngestWorld();
  await world.send(world.put('written'), syntheticRecord('elsewhere', { bucket: 'not-connected', eventTimeMs: world.clock.nowMs() }), {
    eventVersion: '9.0',
  });
  await world.run(2_000);
  const lines = world.telemetry.recorded('debug').filter(([message]) => message === 'record ended');
  expect(lines.map(([, fields]) => fields)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ bucket: BUCKET, key: 'written', outcome: 'written', messageId: expect.stringMatching(/./) }),
      expect.objectContaining({ bucket: 'not-connected', key: 'elsewhere', outcome: 'unconnected' }),
      expect.objectContaining({ outcome: 'rejected', fault: expect.stringMatching(/./) }),
    ]),
  );
});

describe('an exact event', () => {
  it('is written as it says, without a HEAD request, and its message deleted', async () => {
    const world = await createIngestWorld();
    const atMs = world.clock.nowMs();
    await world.tell(world.put('a/b c+ü.jpg'));
    expect(await world.document('a/b c+ü.jpg')).toMatchObject({
      etag: 'etag-1',
      size: 1,
      deleted: false,
      settled: true,
      source: 'native',
      clock: clockOfMs(atMs),
      last_modified_exact: false,
    });
    expect(world.storage.observed).toEqual([]);
    expect(world.messages()).toEqual([]);
    expect(world.outcomes()).toEqual(['written']);
    expect(world.settlements()).toEqual(['delete']);
  });

  it('that meets its very clock with other content is a tie: it is observed, and settled later', async () => {
    const world = await createIngestWorld();
    const atMs = world.clock.nowMs();
    const first = world.put('k');
    await world.tell(first);
    await world.tell(world.put('k', { eventTimeMs: atMs, sequencer: sequencerAt(atMs) }));
    expect(world.storage.observed).toEqual([`${BUCKET}/k`]);
    expect(world.outcomes()).toEqual(['written', 'provisional']);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2', settled: false, clock: clockOfMs(atMs) });
    await world.run(MINUTE_MS);
    expect(world.outcomes()).toEqual(['written', 'provisional', 'written']);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2', settled: true });
    expect(world.messages()).toEqual([]);
  });

  it('of a version’s deletion that finds other content at its very clock is a tie too', async () => {
    const world = await createIngestWorld();
    const atMs = world.clock.nowMs();
    await world.tell(world.put('k'));
    world.storage.put(BUCKET, 'k');
    const object = { versionId: 'an-older-version' };
    await world.tell(nativeRecord('k', { eventName: 'ObjectRemoved:Delete', eventTimeMs: atMs, object }));
    expect(world.outcomes()).toEqual(['written', 'provisional']);
    await world.run(MINUTE_MS);
    expect(world.outcomes()).toEqual(['written', 'provisional', 'written']);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2', settled: true });
  });
});

it('what waited for its write longer than its life is decided again: a floor that was stored meanwhile makes it ask S3', async () => {
  const world = await createIngestWorld({ limits: { bulk: { actionsMax: 1, bytesMax: 5_000_000, lingerMs: 0, concurrency: 1 } } });
  world.store.broken.beforeWrite = async () => {
    world.store.broken.beforeWrite = undefined;
    await world.clock.sleep(40_000);
  };
  await world.send(world.put('slow'));
  await world.tell(world.put('behind'), 15_000);
  // both records were decided by the bucket's record without a floor
  await world.changeBucket(BUCKET, { floor: clockOfMs(world.clock.nowMs() + MINUTE_MS) });
  await world.run(MINUTE_MS);
  expect(world.storage.observed).toEqual([`${BUCKET}/behind`]);
  expect(world.outcomes()).toEqual(['written', 'written']);
  expect(await world.document('behind')).toMatchObject({ settled: true });
});

describe('an inexact event', () => {
  it('is written provisionally, hidden for exactly the due seconds by S3’s clock, and settled at its redelivery', async () => {
    for (const skewMs of [0, 3_600_000, -3_600_000]) {
      const world = await createIngestWorld({ skewMs });
      const atMs = world.clock.nowMs();
      await world.tell(world.routedPut('k'));
      expect(world.outcomes()).toEqual(['provisional']);
      expect(await world.document('k')).toMatchObject({ etag: 'etag-1', settled: false, clock: clockOfMs(atMs), source: 'routed' });
      // T + M + S + 3 s − D, and D is the whole second in which it was sent
      expect(world.queues.settlements.map(({ kind }) => kind)).toEqual([43]);
      await world.run(42_700);
      expect(receiveCounts(world)).toEqual([1]);
      await world.run(700);
      expect(world.outcomes()).toEqual(['provisional', 'written']);
      const document = await world.document('k');
      expect(document).toMatchObject({ etag: 'etag-1', settled: true });
      expect(document?.clock).toBeGreaterThanOrEqual(clockOfMs(atMs + 20_000));
      expect(world.messages()).toEqual([]);
    }
  });

  it('is final once its settled write was attempted, though it is refused', async () => {
    const world = await createIngestWorld();
    await world.tell(world.routedPut('k'), 38_000);
    await world.tell(world.put('k'), 10_000);
    expect(world.outcomes()).toEqual(['provisional', 'written', 'superseded']);
    expect(world.messages()).toEqual([]);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2' });
  });
});

describe('many records in one message', () => {
  const badRecord = nativeRecord('', { eventTimeMs: 0 });

  it('have each its own outcome; a provisional one keeps the message', async () => {
    const world = await createIngestWorld();
    await world.send(world.put('exact'), world.routedPut('inexact'), nativeRecord('x', { eventName: 'ObjectAcl:Put' }), badRecord);
    await world.run(200);
    expect(world.outcomes().toSorted()).toEqual(['ignored', 'provisional', 'rejected', 'written']);
    expect(world.queues.settlements.map(({ kind }) => kind)).toEqual([43]);
    expect(world.letters()).toEqual([]);
    await world.run(MINUTE_MS);
    // then the rejected one settles it, after a loss gap was stored
    expect(world.settlements()).toEqual(['wait', 'dead-letter']);
    expect(world.letters().map(({ attributes }) => letterNotes(attributes))).toMatchObject([
      { fault: 'record.invalid', context: { records: [3] } },
    ]);
    expect(await world.gaps()).toMatchObject([{ bucket: BUCKET, reasons: [{ kind: 'loss', example: 'dead letter: record.invalid' }] }]);
    expect(await world.document('exact')).toMatchObject({ etag: 'etag-1' });
    expect(world.messages()).toEqual([]);
  });
});

describe('a message that can never succeed', () => {
  it('stays while its dead letter cannot be sent, and then becomes one with its body untouched and no record named; its neighbours go on', async () => {
    const world = await createIngestWorld();
    world.queues.failSends(DEAD_LETTERS);
    await world.sendBody('{"not":"ours"');
    await world.tell(world.put('good'), 300);
    expect(new Set(world.settlements())).toEqual(new Set(['defer', 'delete']));
    expect(await world.document('good')).toBeDefined();
    expect(world.messages()).toHaveLength(1);
    world.queues.failSends(undefined);
    await world.run(31_000);
    expect(world.settlements().at(-1)).toBe('dead-letter');
    expect(world.messages()).toEqual([]);
    expect(world.letters()).toMatchObject([{ body: '{"not":"ours"' }]);
    expect(letterNotes(world.letters()[0]!.attributes)).toMatchObject({ context: { records: [] } });
  });

  it('stays where no dead-letter queue is known', async () => {
    const world = await createIngestWorld({ deadLetters: false });
    await world.tellBody('garbage', 300);
    expect(world.messages()).toHaveLength(1);
    expect(hiddenS(world)[0]).toBeGreaterThan(20);
    expect(world.telemetry.recorded('requestFailed').map(([, code]) => code)).toEqual(['queue.no-dead-letter']);
  });
});

describe('a fault of one object', () => {
  it('defers its message for 30 s, doubling up to 15 min, and others go on', async () => {
    const world = await createIngestWorld();
    world.storage.failWith(denied, { key: 'denied' });
    await world.send(world.routedPut('denied'));
    await world.tell(world.put('other'));
    expect(await world.document('other')).toBeDefined();
    await world.run(3_600_000);
    expect(world.queues.settlements.flatMap(({ kind }) => (kind === 'delete' ? [] : [kind]))).toEqual([
      30, 60, 120, 240, 480, 900, 900, 900,
    ]);
    expect(world.letters()).toEqual([]);
    world.storage.failWith(undefined);
    await world.run(1_000_000);
    expect(world.messages()).toEqual([]);
    expect(await world.document('denied')).toMatchObject({ settled: true });
  });

  it('at the last receive is one dead letter with the last fault, sooner or later, and a loss gap stored before it', async () => {
    const world = await createIngestWorld({ maxReceiveCount: 5 });
    world.storage.failWith(new FaultError('object.failed', 'odd'), { key: 'denied' });
    await world.send(world.put('other'), world.routedPut('denied'));
    await world.run(1_000);
    world.storage.failWith(denied, { key: 'denied' });
    world.queues.failSends(DEAD_LETTERS);
    await world.run(4 * MINUTE_MS);
    // the gap is there though the letter could not be sent
    expect(world.handedOver).toMatchObject([{ bucket: BUCKET, key: 'denied', reason: 'object.denied' }]);
    expect(receiveCounts(world)).toEqual([4]);
    world.queues.failSends(undefined);
    await world.run(4 * MINUTE_MS);
    expect(world.letters().map(({ attributes }) => letterNotes(attributes))).toMatchObject([
      { fault: 'object.denied', context: { records: [1] } },
    ]);
    expect(world.messages()).toEqual([]);
  });
});

describe('an outage', () => {
  it('stops the pollers, defers nothing, spends no receive, is said once and ends by itself', async () => {
    const world = await createIngestWorld();
    await world.tell(world.put('known'));
    world.store.broken.all = new FaultError('index.blocked', 'flood stage');
    await world.send(world.put('exact'), world.routedPut('inexact'));
    await world.run(3_000);
    expect(world.role.admission.state).toBe('paused');
    const receives = world.receiver.receives;
    for (let count = 0; count < 5; count += 1) await world.send(world.put(`later-${count}`));
    await world.run(5 * MINUTE_MS);
    expect(world.receiver.receives).toBe(receives);
    expect(receiveCounts(world)).toEqual([1, 0, 0, 0, 0, 0]);
    expect(hiddenS(world)[0]).toBeGreaterThan(0);
    expect(world.telemetry.logged('receiving paused')).toMatchObject([{ code: 'index.blocked' }]);
    expect(circuitsReported(world.telemetry, 'opened')).toEqual(['cluster']);
    expect(world.settlements()).toEqual(['delete']);

    world.store.broken.all = undefined;
    world.storage.failWith(undefined);
    await world.run(MINUTE_MS);
    expect(circuitsReported(world.telemetry, 'closed')).toHaveLength(1);
    expect([world.messages(), world.letters()]).toEqual([[], []]);
    expect(world.outcomes()).not.toContain('deferred');
    for (const key of ['exact', 'inexact', 'later-4']) expect(await world.document(key)).toMatchObject({ settled: true });
  });

  it('is followed by decisions with a bucket record read after it', async () => {
    const world = await createIngestWorld();
    await world.tell(world.put('known'));
    world.store.broken.writes = unreachable;
    world.store.broken.all = unreachable;
    await world.tell(world.put('k'), 2 * MINUTE_MS);
    // a reconcile elsewhere began meanwhile: below its floor nothing is exact any more
    world.store.broken.all = undefined;
    await world.changeBucket(BUCKET, { floor: clockOfMs(world.clock.nowMs() + MINUTE_MS) });
    world.store.broken.writes = undefined;
    await world.run(10_000);
    expect(world.storage.observed).toEqual([`${BUCKET}/k`]);
    expect(world.messages()).toEqual([]);
  });

  it('holds a confirmation that needs the store as well', async () => {
    const topicArn = 'arn:aws:sns:us-east-1:000000000000:t';
    const world = await createIngestWorld({ bucket: { source: 'topic', topicArn } });
    await world.run(100);
    world.store.broken.all = unreachable;
    await world.tellBody(JSON.stringify({ Type: 'SubscriptionConfirmation', TopicArn: topicArn, Token: 'token' }), 5 * MINUTE_MS);
    expect([world.settlements(), receiveCounts(world)]).toEqual([[], [1]]);
    world.store.broken.all = undefined;
    await world.run(10_000);
    expect(world.confirmed).toEqual([topicArn]);
    expect(world.messages()).toEqual([]);
  });
});

it('a store that hangs lets answers expire: what it had not taken is asked anew', async () => {
  const world = await createIngestWorld({
    pollers: 2,
    limits: { bulk: { actionsMax: 1, bytesMax: 5_000_000, lingerMs: 0, concurrency: 1 } },
  });
  await world.tell(world.put('known'));
  const hanging = Promise.withResolvers<void>();
  world.store.broken.beforeWrite = () => hanging.promise;
  await world.tell(world.put('first'), 100);
  await world.tell(world.routedPut('k'), 40_000);
  expect(world.storage.observed).toEqual([`${BUCKET}/k`]);
  world.store.broken.beforeWrite = undefined;
  hanging.resolve();
  await world.run(300);
  // the first observation was never written: by now another is settled
  expect(world.storage.observed).toEqual([`${BUCKET}/k`, `${BUCKET}/k`]);
  expect(world.telemetry.labels('tally_bulk_actions_total').filter(({ answer }) => answer === 'expired')).toHaveLength(1);
  expect(await world.document('k')).toMatchObject({ settled: true });
  expect(world.outcomes()).toEqual(['written', 'written', 'written']);
});

it('the lag of an event ends with its first write: that of an exact event, and the provisional one of an inexact event', async () => {
  const world = await createIngestWorld();
  await world.send(world.put('exact'));
  await world.tell(world.routedPut('inexact'), 2 * MINUTE_MS);
  expect(world.outcomes().toSorted()).toEqual(['provisional', 'written', 'written']);
  const lagsMs = world.telemetry.values('tally_event_lag_seconds').map((lagS) => lagS * 1_000);
  expect(lagsMs).toHaveLength(2);
  // far from the settle, which takes some 45 s
  expect(Math.max(...lagsMs)).toBeLessThan(5_000);
});

describe('a bucket that is not connected', () => {
  it('is asked for in the store by its id, counted, and its events deleted', async () => {
    const world = await createIngestWorld({ buckets: [BUCKET, 'other'] });
    const record = nativeRecord('k', { bucket: 'unknown', eventTimeMs: world.clock.nowMs() });
    await world.send(record, record);
    await world.run(2_000);
    expect(world.store.stateReads).toContain('bucket:unknown');
    expect(await world.unconnected('unknown')).toMatchObject({ count: 2 });
    expect(world.outcomes()).toEqual(['unconnected', 'unconnected']);
    expect(world.messages()).toEqual([]);
  });
});

it('an event of no consequence is acknowledged, and one that names no bucket is of none', async () => {
  const world = await createIngestWorld();
  await world.send(nativeRecord('k', { eventName: 'ObjectAcl:Put' }));
  await world.tell({ eventName: 'ListBuckets', eventTime: '2026-01-02T03:04:05Z', s3: {} }, 300);
  expect(world.outcomes()).toEqual(['ignored', 'ignored']);
  expect(await world.unconnected('')).toBeUndefined();
  expect(world.messages()).toEqual([]);
});

it('Fix: a message that was almost deleted by SQS before it was received opens a gap for those that were, and is indexed itself', async () => {
  const world = await createIngestWorld({ retentionMs: 960_000 });
  const body = JSON.stringify({ Records: [world.put('late')] });
  await world.tell(world.put('early'), 500);
  expect(await world.gaps()).toEqual([]);
  // when a queue was last received from is noted
  expect(await world.store.plainState.get(refs.queue(QUEUE).id)).toBeDefined();
  await world.queues.send(QUEUE, { body, attributes: {}, delayS: 900 });
  await world.run(905_000);
  expect(await world.gaps()).toMatchObject([
    {
      bucket: BUCKET,
      reasons: [{ kind: 'loss', example: 'messages may have expired in the bucket queue before they were received', count: 1 }],
    },
  ]);
  expect(await world.document('late')).toBeDefined();
  expect(world.messages()).toEqual([]);
});

describe('receiving', () => {
  it('goes on while exact events are being written, until so many messages are in hand as may be held', async () => {
    const world = await createIngestWorld({ limits: { heldMax: 3 } });
    const answering = Promise.withResolvers<void>();
    world.store.broken.beforeWrite = () => answering.promise;
    for (let count = 0; count < 4; count += 1) {
      await world.tell(world.put(`k-${count}`));
    }
    expect(receiveCounts(world)).toEqual([1, 1, 1, 0]);
    answering.resolve();
    await world.run(1_000);
    expect(world.messages()).toEqual([]);
    expect(world.outcomes()).toEqual(['written', 'written', 'written', 'written']);
  });
});

describe('a stop', () => {
  it('receives no more, and ends what runs', async () => {
    const world = await createIngestWorld();
    const writing = Promise.withResolvers<void>();
    world.store.broken.beforeWrite = () => writing.promise;
    await world.tell(world.put('running'));
    const stopped = world.stop();
    await world.tell(world.put('late'), 1_000);
    writing.resolve();
    await stopped;
    expect(await world.document('running')).toBeDefined();
    expect(world.settlements()).toEqual(['delete']);
    expect(receiveCounts(world)).toEqual([0]);
  });

  it('gives back at once what waits for the index of its bucket, or for a settle at its last receive', async () => {
    const world = await createIngestWorld({ maxReceiveCount: 1 });
    world.store.broken.buckets.set('other', 'bucket.index-blocked');
    await world.connectBucket('other');
    await world.send(world.put('parked', { bucket: 'other' }));
    await world.tell(world.routedPut('provisional'), 400);
    await world.stop();
    expect(world.settlements()).toEqual(['give-back', 'give-back']);
    expect(hiddenS(world).every((seconds) => seconds <= 0)).toBe(true);
  });

  it('gives back at once what waits for the store', async () => {
    const world = await createIngestWorld();
    world.store.broken.all = unreachable;
    for (const key of ['a', 'b']) await world.send(world.put(key));
    await world.run(3_000);
    expect(world.role.admission.state).toBe('paused');
    await world.stop();
    expect(world.settlements()).toEqual(['give-back', 'give-back']);
    expect(hiddenS(world).every((seconds) => seconds <= 0)).toBe(true);
  });

  it('gives back at its deadline what has not ended, and extends nothing after', async () => {
    const world = await createIngestWorld();
    world.store.broken.beforeWrite = () => new Promise(() => {});
    world.storageHooks.afterHead = () => new Promise(() => {});
    await world.send(world.put('hanging'));
    await world.tell(world.routedPut('observed'), 1_000);
    const deadline = new AbortController();
    const stopped = world.stop(deadline.signal);
    await world.run(1_000);
    expect(hiddenS(world).every((seconds) => seconds > 0)).toBe(true);
    deadline.abort();
    await stopped;
    expect(hiddenS(world).every((seconds) => seconds <= 0)).toBe(true);
    const requests = world.queues.settlements.length;
    await world.run(2 * MINUTE_MS);
    expect(world.queues.settlements).toHaveLength(requests);
  });

  it('ends in time though SQS does not answer', async () => {
    const world = await createIngestWorld();
    world.store.broken.beforeWrite = () => new Promise(() => {});
    await world.tell(world.put('hanging'), 500);
    world.queues.broken.beforeSettling = () => new Promise(() => {});
    const startMs = world.clock.monotonicMs();
    await world.stop(AbortSignal.abort());
    expect(world.clock.monotonicMs() - startMs).toBeLessThanOrEqual(1_200);
  });
});

it('a message that SQS does not delete is counted as settled when it was deleted at a later receive, once', async () => {
  const world = await createIngestWorld();
  world.queues.broken.beforeSettling = () => Promise.reject(new FaultError('queue.unreachable', 'gone'));
  await world.tell(world.put('k'), 10_000);
  expect(world.outcomes()).toEqual(['written']);
  expect(world.settlements()).toEqual([]);
  world.queues.broken.beforeSettling = undefined;
  await world.run(5 * MINUTE_MS);
  expect(world.outcomes()).toHaveLength(2);
  expect(world.settlements()).toEqual(['delete']);
});

it('of a bucket whose store has lost its disk, each deletion that an event reports is believed, and of the other absences a few', async () => {
  const world = await createIngestWorld();
  const keys = Array.from({ length: 60 }, (_, at) => `k${at}`);
  for (const key of keys) await world.send(world.put(key));
  await world.run(2_000);
  for (const key of keys) world.storage.delete(BUCKET, key);
  const eventTimeMs = world.clock.nowMs();
  for (const [at, key] of keys.entries())
    await world.send(syntheticRecord(key, { eventTimeMs, eventName: at < 30 ? 'PutObject' : 'DeleteObject' }));
  await world.run(2_000);
  const documents = await Promise.all(keys.map((key) => world.document(key)));
  expect(documents.flatMap((document, at) => (document?.deleted === false ? [at < 30] : []))).toEqual(
    Array.from({ length: 21 }, () => true),
  );
  expect(world.circuits.all()).toEqual([]);
});
