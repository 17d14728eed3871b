import { expect, it } from 'vitest';
import { servingChecks } from '../../src/serve/readiness-checks.ts';
import type { Fault } from '../../src/base/fault.ts';
import { createReadiness, OK } from '../../src/observing/readiness.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

const RESTING = ['jobs', 'storage', 'bucket-indices', 'buckets'];

function startWorld() {
  const clock = createFakeClock();
  const circuits = createTestCircuits({ clock, telemetry: createFakeTelemetry(), probeCluster: () => new Promise(() => undefined) });
  const store: { prepared: Fault | 'prepared'; aheadMs: number; unsent?: Fault } = { prepared: 'prepared', aheadMs: 0 };
  const checks = servingChecks({
    queueWatch: { deadLetterQueues: () => [{}], deadLetterFault: () => undefined, fault: () => undefined, sqsAheadMs: () => store.aheadMs },
    deadLetters: { sendFault: () => store.unsent },
    circuits,
    ingest: { admission: { state: 'on' }, queueFault: () => undefined },
    prepared: () => store.prepared,
    others: [{ name: 'jobs', neededBy: [], check: () => OK }],
  });
  return { clock, circuits, store, read: () => createReadiness(['ingest'], checks).read().checks };
}

it('says of nothing that rests on the index store that it is ok while the store does not work, and since when', async () => {
  const { clock, circuits, read } = startWorld();
  expect(Object.values(read()).map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 'ok'));
  const since = new Date(clock.nowMs()).toISOString();
  circuits.clusterFailed({ code: 'index.unreachable', reason: 'down' }, { isLasting: true });
  await clock.advance(60_000);
  const checks = read();
  for (const name of RESTING)
    expect(checks[name]).toEqual({ status: 'unknown', detail: `not known since ${since}: the index store does not work` });
  expect(checks).toMatchObject({ index: { status: 'failed' }, queue: OK, 'dead-letter-queue': OK });
});

it('knows nothing of them before the store is prepared', () => {
  const { store, read } = startWorld();
  store.prepared = { code: 'index.unreachable', reason: 'the index store is not prepared yet' };
  expect(read()).toMatchObject(Object.fromEntries(RESTING.map((name) => [name, { status: 'unknown' }])));
});

it('Fix: warns while the clock of this machine differs from that of SQS', () => {
  const { store, read } = startWorld();
  store.aheadMs = -600_000;
  const detail = "SQS's clock is 600 s behind this machine's clock";
  expect(read()).toMatchObject({ clock: { status: 'warning', code: 'connect.clock-skew', detail }, queue: OK });
  store.aheadMs = 59_000;
  expect(read()).toMatchObject({ clock: OK });
});

it('warns while dead letters cannot be sent, though their queue can be read', () => {
  const { store, read } = startWorld();
  store.unsent = { code: 'queue.unreachable', reason: 'denied' };
  expect(read()).toMatchObject({ 'dead-letter-queue': { status: 'warning', detail: 'denied' }, queue: OK });
});
