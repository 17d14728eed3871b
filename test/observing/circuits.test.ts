import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FaultError, type Fault, type FaultCode } from '../../src/base/fault.ts';
import { indexCircuits, observationCircuits, type CircuitId, type Turns } from '../../src/observing/circuits.ts';
import { circuitsReported, createTestCircuits } from '../support/fakes/circuits.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

const a = { bucket: 'a', region: 'us-east-1' };
const b = { bucket: 'b', region: 'us-east-1' };
const far = { bucket: 'far', region: 'eu-central-1' };
const faultOf = (code: FaultCode): Fault => ({ code, reason: 'as scripted' });

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const probe: { fault: FaultError | undefined; count: number } = { fault: undefined, count: 0 };
  const circuits = createTestCircuits({
    clock,
    telemetry,
    probeCluster: async () => {
      probe.count += 1;
      if (probe.fault !== undefined) throw probe.fault;
    },
  });
  const answered = (target: typeof a, key: string, code?: FaultCode) =>
    circuits.storageAnswered(target, { key, sentAtMs: clock.monotonicMs(), ...(code !== undefined && { fault: faultOf(code) }) });
  const fail = (bucket: string, code: FaultCode = 'bucket.index-unavailable') =>
    circuits.indexFailed(bucket, faultOf(code), { sentAtMs: clock.monotonicMs() });
  const open = () => circuits.all().map(({ level, name }) => `${level} ${name}`.trim());
  async function run(forMs: number): Promise<void> {
    for (let doneMs = 0; doneMs < forMs; doneMs += 500) {
      await clock.advance(Math.min(500, forMs - doneMs));
      for (let turn = 0; turn < 5; turn += 1) await setImmediate();
    }
  }
  /** Whether an attempt that needs these may begin. */
  const mayTry = (ids: readonly CircuitId[], turns: Turns = new Map()) => circuits.mayTry(ids, turns);
  return { clock, telemetry, circuits, probe, answered, fail, open, run, mayTry };
}

describe('the circuit of a bucket in S3', () => {
  it('opens on failures in a row about three objects, however far apart', async () => {
    const world = setUp();
    for (const key of ['k', 'l', 'k', 'l', 'k']) {
      world.answered(a, key, 's3.unavailable');
      await world.run(60_000);
    }
    expect(world.open()).toEqual([]);
    world.answered(a, 'm', 's3.throttled');
    expect(world.open()).toEqual(['bucket a']);
  });

  it('stays closed while one request between them succeeds, and while fewer than three objects fail', () => {
    const world = setUp();
    for (let count = 0; count < 50; count += 1) world.answered(a, `k-${count % 2}`, 's3.unavailable');
    for (let count = 0; count < 50; count += 1) world.answered(b, `k-${count}`, count % 3 === 2 ? undefined : 's3.throttled');
    expect(world.open()).toEqual([]);
  });

  it('that refuses objects holds nothing back, since a policy may deny a prefix', async () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.answered(a, `k-${count}`, 'object.denied');
    expect(world.open()).toEqual(['bucket a']);
    expect([1, 2, 3].map(() => world.mayTry(observationCircuits(a)))).toEqual([true, true, true]);
    world.answered(a, 'k', 's3.unavailable');
    await world.run(30_000);
    expect(world.mayTry(observationCircuits(a))).toBe(true);
    expect(world.mayTry(observationCircuits(a))).toBe(false);
  });

  it.each<FaultCode>(['bucket.missing', 'bucket.denied'])('opens on one %s, and no other bucket’s does', (code) => {
    const world = setUp();
    world.answered(a, 'k', code);
    expect(world.open()).toEqual(['bucket a']);
    expect(world.circuits.openOf(observationCircuits(b))).toBeUndefined();
    expect(world.circuits.openOf(indexCircuits('a'))).toBeUndefined();
  });
});

describe('the circuit of a region', () => {
  it('opens on three failures in a row of two buckets, and not of one alone', () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.answered(a, `k-${count}`, 's3.unavailable');
    expect(world.open()).toEqual(['bucket a']);
    // nor of two objects of two buckets that always fail
    const poisoned = setUp();
    for (let count = 0; count < 20; count += 1) for (const target of [a, b]) poisoned.answered(target, 'poison', 's3.unavailable');
    expect(poisoned.open()).toEqual([]);
    poisoned.answered(b, 'another', 's3.unavailable');
    expect(poisoned.open()).toEqual(['endpoint us-east-1']);
  });

  it.each<FaultCode | undefined>([undefined, 'object.denied', 'object.failed', 's3.throttled', 'bucket.missing'])(
    'does not open while any bucket of it answers, and closes with an answer (%s)',
    (code) => {
      const world = setUp();
      const regions = () => world.open().filter((each) => each.startsWith('endpoint'));
      for (let count = 0; count < 9; count += 1) {
        world.answered(a, 'k', 's3.unavailable');
        world.answered(b, 'k', 's3.unavailable');
        world.answered(b, 'l', code);
      }
      expect(regions()).toEqual([]);
      for (const bucket of ['c', 'd', 'e']) world.answered({ ...a, bucket }, 'k', 's3.unavailable');
      expect(regions()).toEqual(['endpoint us-east-1']);
      world.answered({ ...a, bucket: 'f' }, 'k', code);
      expect(regions()).toEqual([]);
    },
  );

  it('opens on missing credentials, and so does the circuit of each bucket that meets them', () => {
    const world = setUp();
    world.answered(a, 'k', 's3.credentials');
    expect(world.open()).toEqual(['endpoint us-east-1', 'bucket a']);
    expect(world.circuits.openOf(observationCircuits(far))).toBeUndefined();
  });

  it('holds no attempt back: its buckets have a share of the places, and wait for none', () => {
    const world = setUp();
    for (const bucket of ['c', 'd', 'e']) world.answered({ ...a, bucket }, 'k', 's3.unavailable');
    expect(world.mayTry(observationCircuits(a))).toBe(true);
    expect([a, b, far].map(world.circuits.isRegionFailing)).toEqual([true, true, false]);
  });
});

describe('the circuit of an index', () => {
  it('opens on three failures in a row, on one of a whole request that names it alone, and stays closed when one is accepted between', () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) {
      world.fail('a');
      world.fail('a');
      world.circuits.accepted('a');
    }
    expect(world.open()).toEqual([]);
    for (let count = 0; count < 3; count += 1) world.fail('a');
    expect(world.open()).toEqual(['index a']);
    expect(world.circuits.openOf(indexCircuits('b'))).toBeUndefined();
    world.circuits.indexFailed('b', faultOf('bucket.index-blocked'), { sentAtMs: 0, isWhole: true });
    expect(world.open()).toEqual(['index a', 'index b']);
  });
});

describe('the circuit of the cluster', () => {
  it('opens on three failed requests in a row over a second, and on fewer not', async () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.circuits.clusterFailed(faultOf('index.unreachable'));
    expect(world.open()).toEqual([]);
    await world.run(1_000);
    world.circuits.clusterAnswered();
    for (let count = 0; count < 2; count += 1) world.circuits.clusterFailed(faultOf('index.unreachable'));
    await world.run(1_000);
    world.circuits.clusterFailed(faultOf('index.unreachable'));
    expect(world.open()).toEqual(['cluster']);
  });

  it('is probed after 1 s, then less often down to once in 15 s, until a probe succeeds, and is reported once', async () => {
    const world = setUp();
    world.probe.fault = new FaultError('index.unreachable', 'gone');
    world.circuits.clusterFailed(faultOf('index.blocked'));
    await world.run(61_000);
    // 1, 3, 7, 15, 30, 45 and 60 s after it opened
    expect(world.probe.count).toBe(7);
    world.probe.fault = undefined;
    await world.run(15_000);
    expect(world.open()).toEqual([]);
    expect(circuitsReported(world.telemetry, 'opened')).toEqual(['cluster']);
    expect(circuitsReported(world.telemetry, 'closed')).toEqual(['cluster']);
  });

  it('is not opened again by a request that was sent before it closed', async () => {
    const world = setUp();
    const sentAtMs = world.clock.monotonicMs();
    world.circuits.clusterFailed(faultOf('index.blocked'));
    await world.run(1_000);
    expect(world.open()).toEqual([]);
    world.circuits.clusterFailed(faultOf('index.overloaded'), { isLasting: true, sentAtMs });
    expect(world.open()).toEqual([]);
    world.circuits.clusterFailed(faultOf('index.overloaded'), { isLasting: true, sentAtMs: world.clock.monotonicMs() });
    expect(world.open()).toEqual(['cluster']);
  });

  it('closes when its probe fails by something that shows that the store answers', async () => {
    const world = setUp();
    world.probe.fault = new FaultError('bucket.index-blocked', 'one index');
    world.circuits.clusterFailed(faultOf('index.blocked'));
    await world.run(1_000);
    expect(world.open()).toEqual([]);
  });

  it('is waited for until it closes, for so long at most, and until the signal', async () => {
    const world = setUp();
    world.probe.fault = new FaultError('index.unreachable', 'gone');
    world.circuits.clusterFailed(faultOf('index.blocked'));
    const stopping = new AbortController();
    const ends: unknown[] = [];
    const wait = (name: string, forMs: number, signal = new AbortController().signal) =>
      void world.circuits.untilStoreAnswers(forMs, signal).then(
        (isWell) => ends.push([name, isWell]),
        (error: unknown) => ends.push([name, error instanceof Error && error.message]),
      );
    wait('short', 3_000);
    wait('stopped', 600_000, stopping.signal);
    wait('long', 600_000);
    await world.run(3_500);
    expect(ends).toEqual([['short', false]]);
    stopping.abort(new Error('stop'));
    await world.run(500);
    world.probe.fault = undefined;
    await world.run(15_000);
    wait('well', 0);
    await world.run(500);
    expect(ends.slice(1)).toEqual([
      ['stopped', 'stop'],
      ['long', true],
      ['well', true],
    ]);
  });
});

describe('an attempt at what fails', () => {
  it('may begin each half minute, and each second that of a message that is received for the first time; the others may not', async () => {
    const world = setUp();
    const tries = async (isFirst: boolean) => {
      world.answered(a, 'k', 'bucket.missing');
      const triedAtMs: number[] = [];
      for (let atMs = 500; atMs <= 100_000; atMs += 500) {
        await world.clock.advance(500);
        if (!world.circuits.mayTry(observationCircuits(a), new Map(), isFirst)) continue;
        triedAtMs.push(atMs);
        world.answered(a, 'k', 'bucket.missing');
        expect(world.circuits.mayTry(observationCircuits(a), new Map(), isFirst)).toBe(false);
      }
      world.answered(a, 'k');
      return triedAtMs;
    };
    expect(await tries(false)).toEqual([30_000, 60_000, 90_000]);
    // one that succeeded has ended it for all
    expect([1, 2, 3].map(() => world.mayTry(observationCircuits(a)))).toEqual([true, true, true]);
    expect(await tries(true)).toEqual(Array.from({ length: 100 }, (_, second) => (second + 1) * 1_000));
  });

  it('is one at a time; another may begin half a minute later when it has no answer, and at once when it sent nothing', async () => {
    const world = setUp();
    world.answered(a, 'k', 'bucket.missing');
    await world.run(1_000);
    const first = (turns: Turns = new Map()) => world.circuits.mayTry(observationCircuits(a), turns, true);
    const turns: Turns = new Map();
    expect(first(turns)).toBe(true);
    // of the same attempt
    expect(first(turns)).toBe(true);
    await world.run(29_500);
    expect(first()).toBe(false);
    await world.run(500);
    const next: Turns = new Map();
    expect(world.mayTry(observationCircuits(a), next)).toBe(true);
    world.circuits.notTried(next);
    expect(world.mayTry(observationCircuits(a))).toBe(true);
  });

  it('Fix: that hangs and ends late does not give away the turn of the attempt that came after it', async () => {
    const world = setUp();
    world.answered(a, 'k', 'bucket.missing');
    const first: Turns = new Map();
    const second: Turns = new Map();
    const begins = (turns: Turns = new Map()) => world.circuits.mayTry(observationCircuits(a), turns);
    await world.run(30_000);
    expect(begins(first)).toBe(true);
    await world.run(30_000);
    expect(begins(second)).toBe(true);
    world.circuits.notTried(first);
    expect(begins()).toBe(false);
    world.circuits.notTried(second);
    expect(begins()).toBe(true);
  });

  it('is not answered by failures of requests that were sent before it', async () => {
    const world = setUp();
    const fail = (sentAtMs: number) => world.circuits.storageAnswered(a, { key: 'k', sentAtMs, fault: faultOf('bucket.missing') });
    const first = () => world.circuits.mayTry(observationCircuits(a), new Map(), true);
    fail(0);
    await world.run(1_000);
    expect(first()).toBe(true);
    await world.run(1_000);
    fail(0);
    expect(first()).toBe(false);
    fail(1_000);
    expect(first()).toBe(true);
  });

  it('never begins while the index store fails', async () => {
    const world = setUp();
    world.probe.fault = new FaultError('index.unreachable', 'gone');
    world.circuits.clusterFailed(faultOf('index.blocked'));
    await world.run(120_000);
    expect(world.mayTry(indexCircuits('a'))).toBe(false);
  });
});

it('a bucket whose request had no answer counts as failing alone, until its region fails', () => {
  const world = setUp();
  for (const key of ['k', 'l']) world.answered(a, key, 's3.unavailable');
  expect([a, b].map(world.circuits.isFailing)).toEqual([true, false]);
  world.answered(b, 'k', 's3.unavailable');
  expect(world.open()).toEqual(['endpoint us-east-1']);
  expect([a, b, { ...b, bucket: 'c' }, far].map(world.circuits.isFailing)).toEqual([true, true, true, false]);
});

it('what nothing was heard of for twenty minutes is forgotten', async () => {
  const world = setUp();
  world.answered(a, 'k', 'bucket.missing');
  await world.run(1_190_000);
  expect(world.open()).toEqual(['bucket a']);
  await world.run(20_000);
  expect(world.open()).toEqual([]);
});
