import { describe, expect, it } from 'vitest';
import { bucketSources } from '../../src/records/bucket.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { Trouble } from '../../src/records/process-record.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createConnections } from '../../src/connect/connections.ts';
import { createCheckConnection } from '../../src/connect/watch.ts';
import type { StateStore } from '../../src/store/store.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { THEIR_TOPIC, TOPIC_ARN } from '../support/fakes/aws-parts.ts';
import { createControlWorld } from '../support/worlds/control.ts';
import { settled } from '../support/worlds/ingest.ts';

const signal = new AbortController().signal;

/** What another process knows of itself. */
const told = (seenAtMs: number, trouble: Trouble) => ({ worker: 'other', seenAtMs, receives: [], troubles: [trouble], hidden: [] });

/** An event has arrived. */
const prove = (state: StateStore) => updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, provenAtMs: 1 });

async function startWorld() {
  const world = createControlWorld();
  await world.connectBucket.connect({ bucket: 'photos' }, 'test');
  return {
    ...world,
    connections: createConnections({
      ...world,
      checkConnection: async (record, during) => (await world.provisioning.diagnose(record, during)).findings,
    }),
  };
}

// Bug: a bucket was called paused after it was resumed, until the watch came by. Fix: a pause and its end are checked at once
it('the status of a bucket says at once that it is paused, and that it is not', async () => {
  const world = await startWorld();
  const { state } = world;
  const connections = createConnections({ ...world, checkConnection: createCheckConnection(world) });
  const check = async () => (await readRecord(state, refs.bucket('photos')))?.connectionCheck?.state;
  await connections.apply({ bucket: 'photos' }, true, signal);
  await connections.pause('photos', signal);
  expect(await check()).toBe('paused');
  await connections.resume('photos', signal);
  expect(await check()).toBe('ok');
});

describe('the doctor', () => {
  it.each([
    ['index', 'photos', 'bucket.index-missing', '`tally bucket add photos`'],
    ['queue', 'https://sqs/events', 'queue.not-received', 'role ingest'],
  ] as const)('says what events wait for that have arrived: the %s', async (level, name, code, fix) => {
    const { clock, state, connections } = await startWorld();
    await updateRecord(state, refs.process('other'), () => told(clock.nowMs(), { level, name, code, reason: 'so', sinceMs: 1 }));
    const { status, findings } = await connections.diagnose('photos', signal);
    expect(status).toBe('broken');
    expect(findings[0]).toMatchObject({ code, what: 'the events of photos are waiting: so', fix: expect.stringContaining(fix) });
  });

  it('says of a bucket whose list is denied that nothing can repair its index', async () => {
    const { state, storage, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    expect(await connections.diagnose('photos', signal)).toMatchObject({ status: 'unknown', findings: [{ code: 'connect.unproven' }] });
    await prove(state);
    expect(await connections.diagnose('photos', signal)).toMatchObject({ status: 'ok', findings: [] });
    storage.firstKey = () => Promise.reject(new FaultError('object.denied', 'ListObjectsV2 photos: 403 AccessDenied'));
    const { status, findings } = await connections.diagnose('photos', signal);
    expect(status).toBe('broken');
    expect(findings).toMatchObject([
      {
        code: 'object.denied',
        what: 'photos cannot be listed: ListObjectsV2 photos: 403 AccessDenied',
        fix: expect.stringContaining('s3:ListBucket'),
      },
    ]);
  });

  it('says once what keeps both events and the list', async () => {
    const { clock, state, storage, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    await prove(state);
    storage.firstKey = () => Promise.reject(new FaultError('s3.throttled', 'so'));
    // it may pass, so that it is no defect of the connection
    expect(await connections.diagnose('photos', signal)).toMatchObject({ status: 'unknown', findings: [{ code: 's3.throttled' }] });
    const trouble = { level: 'bucket', name: 'photos', code: 's3.throttled', reason: 'so', sinceMs: 1 } as const;
    await updateRecord(state, refs.process('other'), () => told(clock.nowMs(), trouble));
    expect((await connections.diagnose('photos', signal)).findings).toMatchObject([{ what: 'the events of photos are waiting: so' }]);
  });
});

describe('an apply', () => {
  it('lets the record of the bucket follow what was applied, and not before', async () => {
    const { aws, connections, record } = await startWorld();
    const { token } = await connections.plan('photos', { source: 'eventbridge' }, signal);
    aws.before = (call) => {
      if (call === 'putNotification') throw new RequestError('connect.denied', 'no');
    };
    const change = { bucket: 'photos', source: 'eventbridge', plan: token } as const;
    const refusal: unknown = await connections.apply(change, false, signal).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'connect.denied', message: expect.stringContaining('photos stays connected') });
    // what it had still delivers
    expect(String(refusal)).not.toContain('bucket remove');
    await expect(connections.apply(change, true, signal)).rejects.toThrow(/is still connected.*`tally bucket remove photos`/);
    expect(await record()).toMatchObject({ source: 'notification' });
    aws.before = () => undefined;
    expect(await connections.apply(change, false, signal)).toEqual({
      bucket: 'photos',
      state: 'applied',
      source: 'eventbridge',
      changed: true,
    });
    expect(await record()).toMatchObject({ source: 'eventbridge' });
    expect(await record()).not.toHaveProperty('topicArn');
  });

  it('that has made every part does not say that parts are missing, although the check after it fails', async () => {
    const world = createControlWorld();
    await world.connectBucket.connect({ bucket: 'photos' }, 'test');
    const fault = new FaultError('s3.unavailable', 'so');
    const connections = createConnections({ ...world, checkConnection: () => Promise.reject(fault) });
    await expect(connections.apply({ bucket: 'photos' }, true, signal)).rejects.toBe(fault);
  });

  it('names the topic in the record, so that the end of a subscription is noticed', async () => {
    const { connections, record } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    expect(await record()).toMatchObject({ source: 'notification', topicArn: TOPIC_ARN, account: '123456789012' });
    // the topic of Tally is none that a request names
    expect(await connections.plan('photos', {}, signal)).toMatchObject({ changes: [], state: 'applied' });
  });
});

describe('a repair', () => {
  it('makes the notification again', async () => {
    const { aws, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    const applied = aws.snapshot();
    aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    await connections.repair('photos', signal);
    expect(aws.snapshot()).toEqual(applied);
  });

  it.each(bucketSources.filter((source) => source !== 'notification'))('is refused for %s, with nothing changed', async (source) => {
    const { aws, connections, state } = await startWorld();
    await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, source, topicArn: THEIR_TOPIC });
    await expect(connections.repair('photos', signal)).rejects.toMatchObject({ code: 'job.repair-refused' });
    expect(aws.writes).toEqual([]);
  });

  it('is refused for a bucket that was wired by hand, with nothing changed', async () => {
    const { aws, connections } = await startWorld();
    await connections.apply({ bucket: 'photos', wired_by_hand: true }, true, signal);
    const [applied, made] = [aws.snapshot(), aws.writes.length];
    await expect(connections.repair('photos', signal)).rejects.toMatchObject({ code: 'job.repair-refused' });
    expect(aws.snapshot()).toEqual(applied);
    expect(aws.writes).toHaveLength(made);
  });

  it('Fix: ends before its request does while S3 takes nothing, and says that no re-index has begun', async () => {
    const { aws, clock, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    aws.before = (call) => {
      if (call === 'putNotification') throw new RequestError('connect.busy', 'another change is under way');
    };
    const begunMs = clock.monotonicMs();
    let endedMs = Infinity;
    const repair = connections.repair('photos', signal).finally(() => (endedMs = clock.monotonicMs()));
    const refusal = expect(repair).rejects.toMatchObject({
      code: 'connect.busy',
      message: expect.stringContaining('no re-index was started'),
    });
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      await settled();
    }
    await refusal;
    // after 30 s the listener answers in its place
    expect(endedMs - begunMs).toBeLessThan(25_000);
  });

  it('fails as its apply does, and leaves a paused bucket alone', async () => {
    const { aws, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, true, signal);
    await connections.pause('photos', signal);
    const writes = aws.writes.length;
    await expect(connections.repair('photos', signal)).rejects.toMatchObject({ code: 'connect.paused' });
    expect(aws.writes).toHaveLength(writes);
  });
});
