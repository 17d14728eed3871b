import { describe, expect, it } from 'vitest';
import { dueAtMs, markId } from '../../src/records/dirty.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { createCheckConnection, visitConnection } from '../../src/connect/watch.ts';
import { readRecord, refs } from '../../src/store/stored.ts';
import { QUEUE_ARN, TOPIC_ARN } from '../support/fakes/aws-parts.ts';
import { startWatched } from './world.ts';

const HOUR_MS = 3_600_000;

async function startSwept() {
  const world = await startWatched();
  const { state, clock, telemetry, connections, checkConnection } = world;
  const parts = { state, clock, telemetry, processes: createProcesses({ state, clock }), connections, checkConnection };
  const sweep = createSweep({ state, clock, telemetry, runMaxMs: HOUR_MS }, 'connections', (...visited) =>
    visitConnection(parts, ...visited),
  );
  return {
    ...world,
    parts,
    watch: (): Promise<void> => sweep(new AbortController().signal),
    checked: async () => (await world.record()).connectionCheck,
  };
}

it('tells the sweep of a check that AWS did not answer, so that other buckets of the region are visited later', async () => {
  const { record, parts } = await startSwept();
  const finding = { code: 'connect.unavailable', severity: 'unknown', what: 'no answer', why: '', fix: '', blocks: true } as const;
  const visit = (...findings: readonly (typeof finding)[]) =>
    record().then((read) => visitConnection({ ...parts, checkConnection: async () => findings }, read, new AbortController().signal));
  await expect(visit(finding)).rejects.toMatchObject({ code: 'connect.unavailable' });
  expect(await visit()).toBe(0);
});

describe('the watch of the connections', () => {
  it('Fix: stores nothing of what it has read while an apply mended it', async () => {
    const world = await startSwept();
    const { state, clock, telemetry, connections, gaps } = world;
    await world.apply();
    world.aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    const check = createCheckConnection({
      state,
      gaps,
      clock,
      telemetry,
      connections: {
        async diagnose(...args) {
          const diagnosed = await connections.diagnose(...args);
          await clock.advance(1_000);
          await world.apply();
          return diagnosed;
        },
      },
    });
    const record = await world.record();
    expect(await check(record)).toMatchObject([{ code: 'connect.not-made' }]);
    expect(await world.checked()).toBeUndefined();
    expect(await readRecord(state, refs.gap(markId('photos')))).toMatchObject({ unproven: 'events' });
    expect(await world.waySinceMs()).toBe(record.connection!.changedAtMs + 1_000);
  });

  it('takes away what is left of an earlier source once the gap of the change is closed, and leaves it while it may not', async () => {
    const world = await startSwept();
    await world.agree();
    await world.agree({ source: 'eventbridge' });
    await world.setBucket({ source: 'eventbridge' });
    const entries = () => world.notified().entries.length;
    await world.clock.advance(HOUR_MS);
    await world.watch();
    expect(entries()).toBe(1);
    await world.closeGap();
    world.aws.before = (call) => {
      if (call === 'putNotification') throw new RequestError('connect.denied', 'not permitted');
    };
    await world.clock.advance(HOUR_MS);
    await world.watch();
    expect(entries()).toBe(1);
    expect(world.telemetry.logged("the earlier source's parts could not be removed")).toMatchObject([
      { bucket: 'photos', reason: 'not permitted' },
    ]);
    const left = { code: 'connect.earlier-left', what: "the parts of photos's earlier connection are still in AWS" };
    expect(await world.diagnose({ source: 'eventbridge' })).toMatchObject([{ ...left, severity: 'degraded' }]);
    expect(await world.checked()).toMatchObject({ state: 'degraded', findings: [left] });
    world.aws.before = () => undefined;
    await world.clock.advance(HOUR_MS);
    await world.watch();
    expect(entries()).toBe(0);
    expect(await world.codes({ source: 'eventbridge' })).toEqual([]);
    expect(await world.checked()).toMatchObject({ state: 'ok' });
  });

  it('Fix: takes it away although a process was killed that had begun', async () => {
    const world = await startSwept();
    await world.agree();
    await world.agree({ source: 'eventbridge' });
    await world.closeGap();
    await world.state.put({ id: 'lease:connection:photos', kind: 'lock', record: { claim: { holder: 'dead', renewals: 0 } } }, null);
    for (let run = 0; run < 8; run += 1) {
      await world.watch();
      await world.clock.advance(15_000);
    }
    expect(world.notified().entries).toEqual([]);
    expect(await world.checked()).toMatchObject({ state: 'ok' });
  });

  it('leaves what it may not take away of an earlier source to whoever may connect, with the same command again', async () => {
    const world = await startSwept();
    await world.agree();
    await world.agree({ source: 'eventbridge' });
    expect(await world.apply()).toMatchObject({ changed: false });
    expect(world.notified().entries).toHaveLength(1);
    await world.closeGap();
    expect(await world.apply()).toMatchObject({ changed: false });
    expect(world.notified().entries).toEqual([]);
  });

  it('never writes, whatever it finds, and checks again every hour', async () => {
    const world = await startSwept();
    await world.apply();
    const [made, parts] = [world.aws.writes.length, world.aws.snapshot()];
    await world.clock.advance(60_000);
    await world.watch();
    expect(await world.checked()).toMatchObject({ state: 'ok' });
    world.aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    await world.clock.advance(HOUR_MS - 60_000);
    await world.watch();
    expect(await world.checked()).toMatchObject({ state: 'ok' });
    await world.clock.advance(60_000);
    await world.watch();
    expect(await world.checked()).toMatchObject({ state: 'broken', findings: [{ code: 'connect.not-made' }] });
    expect(world.aws.writes).toHaveLength(made);
    expect(world.aws.snapshot()).not.toEqual(parts);
  });

  it('opens a gap for a broken connection that no job closes, until it is in order again by the hand of others', async () => {
    const world = await startSwept();
    await world.apply();
    await world.arrive();
    await world.clock.advance(60_000);
    await world.watch();
    await world.closeGap();
    const { subscriptions } = world.aws.parts.topics.get(TOPIC_ARN)!;
    const subscription = subscriptions.get(QUEUE_ARN)!;
    subscriptions.clear();
    await world.clock.advance(HOUR_MS);
    await world.watch();
    const broken = {
      unproven: 'wiring',
      reasons: [{ example: expect.stringContaining('connect.not-set-up') as string, count: 1 }],
    };
    expect(await world.gap()).toMatchObject(broken);
    await world.clock.advance(HOUR_MS);
    await world.watch();
    expect(await world.gap()).toMatchObject(broken);
    subscriptions.set(QUEUE_ARN, subscription);
    await world.clock.advance(HOUR_MS);
    await world.watch();
    const restored = await world.gap();
    // the configuration takes effect some minutes after it was restored
    expect(restored).toMatchObject({ lastSeenMs: world.clock.nowMs() + 360_000 });
    // what arrived before it broke proves nothing
    expect(restored).toMatchObject({ unproven: 'events' });
    expect(await world.isProven()).toBe(false);
    expect(dueAtMs(restored!, world.clock.nowMs())).toBe(world.clock.nowMs() + 420_000);
    const states = (what: string) => world.telemetry.logged(`the bucket's connection ${what}`).map(({ bucket, state }) => [bucket, state]);
    expect(states('works')).toEqual([
      ['photos', 'ok'],
      ['photos', 'ok'],
    ]);
    expect(states('has problems')).toEqual([
      ['videos', 'broken'],
      ['photos', 'broken'],
    ]);
    await world.arrive();
    expect(await world.isProven()).toBe(true);
  });
});
