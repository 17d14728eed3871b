import { describe, expect, it } from 'vitest';
import { bucketSources } from '../../src/records/bucket.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { doctor } from '../../src/connect/diagnose.ts';
import type { StateStore } from '../../src/store/store.ts';
import { refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { THEIR_TOPIC, TOPIC_ARN } from '../support/fakes/aws-parts.ts';
import { racingState } from '../support/fakes/racing-state.ts';
import { createControlWorld } from '../support/worlds/control.ts';
import { settled } from '../support/worlds/ingest.ts';

const signal = new AbortController().signal;

async function startWorld() {
  const world = createControlWorld();
  await world.connectBucket.connect({ bucket: 'photos' }, 'test');
  return world;
}

it('the doctor says what nobody has seen arrive, and of a bucket whose list is denied that nothing can repair its index', async () => {
  const { state, clock, storage, connections } = await startWorld();
  await connections.apply({ bucket: 'photos' }, {}, signal);
  const parts = { state, clock, storage, checkConnection: async () => [] };
  expect(await doctor(parts, 'photos', signal)).toMatchObject([{ code: 'connect.unproven', severity: 'unknown' }]);
  await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, provenAtMs: 1 });
  expect(await doctor(parts, 'photos', signal)).toEqual([]);
  storage.firstKey = () => Promise.reject(new FaultError('object.denied', 'ListObjectsV2 photos: 403 AccessDenied'));
  expect(await doctor(parts, 'photos', signal)).toMatchObject([
    {
      code: 'object.denied',
      severity: 'broken',
      what: 'photos cannot be listed: ListObjectsV2 photos: 403 AccessDenied',
      fix: expect.stringContaining('s3:ListBucket'),
    },
  ]);
  // the check has found it too
  const known = { code: 'object.denied', severity: 'broken', what: '', why: '', fix: '', blocks: true } as const;
  expect(await doctor({ ...parts, checkConnection: async () => [known] }, 'photos', signal)).toEqual([known]);
  // it may pass, so that it is no defect of the connection
  storage.firstKey = () => Promise.reject(new FaultError('s3.throttled', 'so'));
  expect(await doctor(parts, 'photos', signal)).toMatchObject([{ code: 's3.throttled', severity: 'unknown' }]);
});

describe('an apply', () => {
  it('names the topic in the record, so that the end of a subscription is noticed', async () => {
    const { connections, record } = await startWorld();
    await connections.apply({ bucket: 'photos' }, {}, signal);
    expect(await record()).toMatchObject({ source: 'notification', topicArn: TOPIC_ARN, account: '123456789012' });
    // the topic of Tally is none that a request names
    expect((await connections.plan({ bucket: 'photos' }, signal)).plan.changes).toEqual([]);
  });

  it('makes nothing for a bucket that was removed meanwhile', async () => {
    let isArmed = false;
    const interfere = (state: StateStore): Promise<void> => removeRecord(state, 'bucket:photos');
    const matches = (id: string): boolean => isArmed && id === 'bucket:photos';
    const { aws, connectBucket, connections } = createControlWorld({
      wrap: (state) => racingState(state, { times: 1, matches, interfere }),
    });
    await connectBucket.connect({ bucket: 'photos' }, 'test');
    isArmed = true;
    await expect(connections.apply({ bucket: 'photos' }, {}, signal)).rejects.toMatchObject({ code: 'bucket.not-connected' });
    expect(aws.writes).toEqual([]);
  });
});

describe('a repair', () => {
  it('makes the notification again, and leaves a paused bucket alone', async () => {
    const { aws, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, {}, signal);
    const applied = aws.snapshot();
    aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    await connections.repair('photos', signal);
    expect(aws.snapshot()).toEqual(applied);
    await connections.pause('photos', signal);
    const writes = aws.writes.length;
    await expect(connections.repair('photos', signal)).rejects.toMatchObject({ code: 'connect.paused' });
    expect(aws.writes).toHaveLength(writes);
  });

  it.each([...bucketSources.filter((source) => source !== 'notification'), 'wired by hand' as const])(
    'is refused for %s, with nothing changed',
    async (how) => {
      const { aws, connections, state } = await startWorld();
      if (how === 'wired by hand') await connections.apply({ bucket: 'photos', wired_by_hand: true }, {}, signal);
      else await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, source: how, topicArn: THEIR_TOPIC });
      await expect(connections.repair('photos', signal)).rejects.toMatchObject({ code: 'job.repair-refused' });
      expect(aws.writes).toEqual([]);
    },
  );

  it('Fix: ends before its request does while S3 takes nothing, and says that no re-index has begun', async () => {
    const { aws, clock, connections } = await startWorld();
    await connections.apply({ bucket: 'photos' }, {}, signal);
    aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    aws.before = (call) => {
      if (call === 'putNotification') throw new RequestError('connect.busy', 'another change is under way');
    };
    const begunMs = clock.monotonicMs();
    let endedMs = Infinity;
    const repair = connections.repair('photos', signal).finally(() => (endedMs = clock.monotonicMs()));
    const refusal = expect(repair).rejects.toMatchObject({
      code: 'connect.busy',
      message: expect.stringContaining('so Tally started no re-index'),
    });
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      await settled();
    }
    await refusal;
    // after 30 s the listener answers in its place
    expect(endedMs - begunMs).toBeLessThan(25_000);
  });
});
