/** Messages that wait where no worker receives: the status of every bucket that they may be about says so. */
import { describe, expect, it } from 'vitest';
import { createBucketStatuses } from '../../../src/pipeline/buckets/statuses.ts';
import { FaultError, type Fault } from '../../../src/domain/fault.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { explanationOf } from '../../../src/domain/explanation.ts';
import { createUnreceived } from '../../../src/pipeline/queues/unreceived.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';

const [EVENTS, OTHER] = ['https://sqs/events', 'https://sqs/other'];
const MINUTE_MS = 60_000;

async function startWorld() {
  const { state: stored } = createMemoryStore();
  const outage: FaultError[] = [];
  const state: StateStore = {
    ...stored,
    get: async (...asked) => (outage[0] === undefined ? stored.get(...asked) : Promise.reject(outage[0])),
  };
  const clock = createFakeClock();
  const visible = new Map<string, number>();
  const unreadable: Fault[] = [];
  const queueWatch = { visibleIn: (url: string) => visible.get(url) ?? 0, fault: () => unreadable[0] };
  const unreceived = createUnreceived({ state, clock, queueWatch, bucketQueueUrls: [EVENTS, OTHER] });
  const record = { ...bucketRecord, lastComparedAtMs: clock.nowMs(), provenAtMs: 1 };
  const fedBy = (queueUrl: string) => ({ ...record, eventQueues: [{ queueUrl, atMs: clock.nowMs() }] });
  const statuses = createBucketStatuses({ state, clock, compareIntervalMs: 0 });
  return {
    state,
    clock,
    visible,
    outage,
    unreadable,
    look: unreceived.look,
    check: unreceived.check,
    record,
    neighbour: fedBy(OTHER),
    /** A worker asks the queue, as each does all the time. */
    receive: async (aheadMs = 0) =>
      updateRecord(state, refs.queue(EVENTS), () => ({ queueUrl: EVENTS, receivedAtMs: clock.nowMs() + aheadMs })),
    pass: async (minutes: number) => {
      await clock.advance(minutes * MINUTE_MS);
      await unreceived.look();
    },
    statusOf: async (bucket = fedBy(EVENTS)) => statuses.of(bucket, 'everything'),
  };
}

describe('messages that no worker receives', () => {
  it('are said of each bucket that the queue feeds, with their number, and not of one that another queue feeds', async () => {
    const { visible, receive, pass, check, statusOf, record, neighbour } = await startWorld();
    await receive();
    visible.set(EVENTS, 162);
    await pass(0);
    await pass(9);
    expect(await statusOf()).toMatchObject({ state: 'ok' });
    expect(check()).toEqual({ status: 'ok' });
    await pass(3);
    const sentence =
      'Its events wait: queue.not-received: 162 messages wait in the bucket queue, and no worker has received for 12 minutes';
    expect(await statusOf()).toMatchObject({ state: 'waiting', severity: 'bad', sentence, act: 'doctor' });
    // where its events come from is not known
    expect(await statusOf({ ...record, eventQueues: [] })).toMatchObject({ state: 'waiting' });
    expect(await statusOf(neighbour)).toMatchObject({ state: 'ok' });
    expect(check()).toMatchObject({
      status: 'warning',
      code: 'queue.not-received',
      detail: `${EVENTS}: 162 messages wait in the bucket queue, and no worker has received for 12 minutes`,
      advice: expect.stringContaining('Start a process with the role ingest'),
    });
  });

  it('are the reason that is given for an object that is not found', async () => {
    const { clock, visible, receive, pass, statusOf, record } = await startWorld();
    await receive();
    visible.set(EVENTS, 1);
    await pass(0);
    await pass(11);
    const state = { present: true, versionId: 'v', size: 1, lastModifiedMs: clock.nowMs() - 1_000, etag: 'e' } as const;
    const storage = { state, observedAtMs: clock.nowMs() };
    const { sentence } = explanationOf({ bucket: record, status: await statusOf(), document: undefined, storage });
    expect(sentence).toContain('1 message waits in the bucket queue, and no worker has received');
    expect(sentence).not.toContain('has not arrived');
  });

  it('are nothing where none waits, and where a worker receives that is far behind', async () => {
    const { visible, receive, pass, statusOf } = await startWorld();
    await receive();
    await pass(60);
    expect(await statusOf()).toMatchObject({ state: 'ok' });
    visible.set(EVENTS, 1_000_000);
    for (let minute = 0; minute < 30; minute += 1) {
      await receive();
      await pass(1);
      expect(await statusOf()).toMatchObject({ state: 'ok' });
    }
  });

  it('are no more said of the bucket as soon as a worker receives, or the queue is empty', async () => {
    const { state, visible, receive, pass, check, statusOf } = await startWorld();
    visible.set(EVENTS, 3);
    await pass(0);
    await pass(11);
    expect(await statusOf()).toMatchObject({ state: 'waiting' });
    await receive();
    await pass(1);
    expect(await statusOf()).toMatchObject({ state: 'ok' });
    expect(await readRecord(state, refs.circuit('queue', EVENTS))).toBeUndefined();
    expect(check()).toEqual({ status: 'ok' });
  });

  it.each([-60, 60])('are not concluded from a worker whose clock is wrong by %i minutes', async (minutes) => {
    const { visible, receive, pass, statusOf } = await startWorld();
    visible.set(EVENTS, 3);
    for (let minute = 0; minute < 15; minute += 1) {
      await receive(minutes * MINUTE_MS);
      await pass(1);
      expect(await statusOf()).toMatchObject({ state: 'ok' });
    }
    await pass(11);
    expect(await statusOf()).toMatchObject({ state: 'waiting' });
  });

  it('are not concluded from the time in which the store did not answer, so that no worker could note that it receives', async () => {
    const { visible, receive, pass, check, statusOf, outage } = await startWorld();
    visible.set(EVENTS, 3);
    await receive();
    await pass(1);
    outage.push(new FaultError('index.unreachable', 'down'));
    await expect(pass(1)).rejects.toThrow('down');
    await expect(pass(60)).rejects.toThrow('down');
    outage.pop();
    await pass(0);
    expect(check()).toEqual({ status: 'ok' });
    expect(await statusOf()).toMatchObject({ state: 'ok' });
  });

  it('are not known while neither the store nor the queue answers, and before the first look', async () => {
    const { clock, pass, check, outage, unreadable } = await startWorld();
    expect(check()).toMatchObject({ status: 'unknown', detail: expect.stringContaining('not known yet: ') });
    await pass(0);
    const lookedAt = new Date(clock.nowMs()).toISOString();
    expect(check()).toEqual({ status: 'ok' });
    const isUnknown = { status: 'unknown', detail: expect.stringContaining(`not known since ${lookedAt}: `) };
    outage.push(new FaultError('index.unreachable', 'down'));
    unreadable.push({ code: 'queue.unreachable', reason: 'denied' });
    await pass(3);
    expect(check()).toMatchObject(isUnknown);
    unreadable.pop();
    await pass(0);
    expect(check()).toEqual({ status: 'ok' });
  });

  it('have ten minutes, in which a scaler starts workers for messages of a queue that was empty', async () => {
    const { visible, receive, pass, statusOf } = await startWorld();
    await receive();
    await pass(60);
    visible.set(EVENTS, 3);
    await pass(0);
    await pass(9);
    expect(await statusOf()).toMatchObject({ state: 'ok' });
    await pass(2);
    expect(await statusOf()).toMatchObject({ state: 'waiting' });
  });
});
