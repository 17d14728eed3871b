import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FaultError, type Fault, type FaultCode } from '../../src/base/fault.ts';
import { enrichmentCircuits, indexCircuits, observationCircuits } from '../../src/observing/circuits.ts';
import { circuitsReported, createTestCircuits } from '../support/fakes/circuits.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

const a = { bucket: 'a', region: 'us-east-1' };
const b = { bucket: 'b', region: 'us-east-1' };
const far = { bucket: 'far', region: 'eu-central-1' };
const faultOf = (code: FaultCode): Fault => ({ code, reason: 'as scripted' });

/** `earlyMs`: how much too early each timer is over. */
function setUp({ earlyMs = 0 } = {}) {
  const fakeClock = createFakeClock();
  const clock = { ...fakeClock, sleep: (ms: number, signal?: AbortSignal) => fakeClock.sleep(Math.max(0.1, ms - earlyMs), signal) };
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
  return { clock, telemetry, circuits, probe, answered, fail, open, run };
}

describe('the circuit of a bucket in S3', () => {
  it('opens on five requests in a row that failed about three objects, however far apart', async () => {
    const world = setUp();
    for (const key of ['k', 'l', 'm', 'k']) {
      world.answered(a, key, 'object.denied');
      await world.run(60_000);
    }
    expect(world.open()).toEqual([]);
    world.answered(a, 'l', 'object.failed');
    expect(world.open()).toEqual(['bucket a']);
  });

  it('Fix: is shown as what records wait for while one object or two fail without a success between, for twenty minutes after the last', async () => {
    const world = setUp();
    const shown = () => world.circuits.waitedFor().map(({ name, fault }) => `${name} ${fault.code}`);
    for (const key of ['k', 'l']) world.answered(a, key, 'object.denied');
    world.answered(b, 'k', 'object.denied');
    expect(shown()).toEqual([]);
    world.answered(a, 'k', 'object.denied');
    expect(shown()).toEqual(['a object.denied']);
    expect(world.open()).toEqual([]);
    await world.run(1_190_000);
    expect(shown()).toEqual(['a object.denied']);
    await world.run(20_000);
    expect(shown()).toEqual([]);
    // what fails then is something else
    for (const key of ['k', 'l']) world.answered(a, key, 'object.denied');
    expect(shown()).toEqual([]);
    world.answered(a, 'k', 'object.denied');
    expect(shown()).toEqual(['a object.denied']);
    world.answered(a, 'm');
    expect(shown()).toEqual([]);
  });

  it('stays closed while one request between them succeeds, and while fewer than three objects fail', () => {
    const world = setUp();
    for (let count = 0; count < 50; count += 1) world.answered(a, `k-${count % 2}`, 's3.unavailable');
    for (let count = 0; count < 50; count += 1) world.answered(b, `k-${count}`, count % 5 === 4 ? undefined : 's3.throttled');
    expect(world.open()).toEqual([]);
  });

  it.each<FaultCode>(['bucket.missing', 'bucket.denied'])('opens on one %s', (code) => {
    const world = setUp();
    world.answered(a, 'k', code);
    expect(world.open()).toEqual(['bucket a']);
  });
});

describe('the circuit of an endpoint', () => {
  it('opens on three failures in a row of two buckets, and not of one alone', () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.answered(a, `k-${count}`, 's3.unavailable');
    expect(world.open()).toEqual(['bucket a']);
    world.answered(b, 'k', 's3.unavailable');
    expect(world.open()).toEqual(['bucket a', 'endpoint us-east-1']);
    // nor of two objects of two buckets that always fail
    const poisoned = setUp();
    for (let count = 0; count < 20; count += 1) for (const target of [a, b]) poisoned.answered(target, 'poison', 's3.unavailable');
    expect(poisoned.open()).toEqual([]);
    poisoned.answered(b, 'another', 's3.unavailable');
    expect(poisoned.open()).toEqual(['endpoint us-east-1']);
  });

  it.each<FaultCode | undefined>([undefined, 'object.denied', 'object.failed', 's3.throttled', 'bucket.missing'])(
    'does not open while any bucket of it answers (%s)',
    (code) => {
      const world = setUp();
      for (let count = 0; count < 9; count += 1) {
        world.answered(a, 'k', 's3.unavailable');
        world.answered(b, 'k', 's3.unavailable');
        world.answered(b, 'l', code);
      }
      expect(world.open().filter((each) => each.startsWith('endpoint'))).toEqual([]);
    },
  );

  it('Fix: is not failed by a bucket whose own circuit is open: it neither opens nor puts off the trial of another bucket', async () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.answered(a, `k-${count}`, 's3.unavailable');
    expect(world.open()).toEqual(['bucket a']);
    for (const key of ['k', 'l']) world.answered(b, key, undefined);
    for (let count = 0; count < 9; count += 1) world.answered(a, `l-${count}`, 's3.unavailable');
    for (const key of ['k', 'l']) world.answered(b, key, 's3.unavailable');
    expect(world.open()).toEqual(['bucket a']);
    for (const bucket of ['c', 'd']) world.answered({ ...b, bucket }, 'k', 's3.unavailable');
    expect(world.open()).toEqual(['bucket a', 'endpoint us-east-1']);
    // the neighbour's messages are hidden, so the only attempts are those of the bucket that does not answer
    for (let trial = 0; trial < 3; trial += 1) {
      await world.run(60_000);
      const permit = world.circuits.take({ ids: observationCircuits(a), isNewKey: false });
      expect(permit).toBeDefined();
      world.answered(a, 'k', 's3.unavailable');
      permit?.leave();
    }
    expect(world.circuits.take({ ids: observationCircuits(b), isNewKey: false })).toBeDefined();
  });

  it('Fix: has a permit of its own for buckets whose circuit is open: their attempts neither take nor put off a trial', async () => {
    const { circuits, answered, open, run } = setUp();
    const c = { ...a, bucket: 'c' };
    for (const target of [a, c]) for (let count = 0; count < 5; count += 1) answered(target, `k-${count}`, 's3.unavailable');
    expect(open()).toEqual(['bucket a', 'endpoint us-east-1', 'bucket c']);
    await run(1_000);
    const hanging = circuits.take({ ids: observationCircuits(a), isNewKey: true });
    expect(hanging).toBeDefined();
    expect(circuits.take({ ids: observationCircuits(c), isNewKey: true })).toBeUndefined();
    circuits.take({ ids: observationCircuits(b), isNewKey: true })?.leave();
    await run(4_000);
    const trial = circuits.take({ ids: observationCircuits(b), isNewKey: false });
    expect(trial).toBeDefined();
    hanging?.leave();
    expect(circuits.take({ ids: observationCircuits(c), isNewKey: true })).toBeDefined();
    // what waits for its own bucket does not hold the endpoint's circuit open
    void circuits.wait({ ids: observationCircuits(a), isNewKey: false }, 600_000, new AbortController().signal);
    answered(b, 'k');
    trial?.leave();
    await run(500);
    expect(open()).toEqual(['bucket a', 'bucket c']);
  });

  it.each([
    { asked: [a, { ...a, bucket: 'c' }], isKept: true },
    { asked: [a], isKept: false },
  ])(
    'Fix: is not forgotten while two buckets fail whose own circuits are open, and is while one does ($isKept)',
    async ({ asked, isKept }) => {
      const { answered, open, run } = setUp();
      for (const target of [a, { ...a, bucket: 'c' }])
        for (let count = 0; count < 5; count += 1) answered(target, `k-${count}`, 's3.unavailable');
      for (let minute = 0; minute < 30; minute += 1) {
        for (const target of asked) answered(target, 'k', 's3.unavailable');
        await run(60_000);
      }
      expect(open().includes('endpoint us-east-1')).toBe(isKept);
    },
  );

  it('Fix: is not failed by enrichment whose own circuit is open: it takes no trial, and ends no recovery', async () => {
    const { circuits, clock, answered, open, run } = setUp();
    const enrich = (key: string) =>
      circuits.storageAnswered(a, { key, sentAtMs: clock.monotonicMs(), enriches: true, fault: faultOf('s3.unavailable') });
    for (let count = 0; count < 5; count += 1) enrich(`k-${count}`);
    answered(b, 'k', 's3.unavailable');
    expect(open()).toEqual(['enrichment a', 'endpoint us-east-1']);
    for (let trial = 0; trial < 3; trial += 1) {
      await run(60_000);
      const permit = circuits.take({ ids: enrichmentCircuits(a), isNewKey: false });
      expect(permit).toBeDefined();
      enrich('k');
      permit?.leave();
    }
    const attempt = { ids: observationCircuits(b), isNewKey: false };
    const trial = circuits.take(attempt);
    expect(trial).toBeDefined();
    answered(b, 'k');
    for (let count = 0; count < 3; count += 1) enrich('k');
    expect(circuits.take(attempt)).toBeDefined();
  });

  it('opens on missing credentials, and says nothing about the buckets or another region', () => {
    const world = setUp();
    for (let count = 0; count < 9; count += 1) world.answered(a, `k-${count}`, 's3.credentials');
    expect(world.open()).toEqual(['endpoint us-east-1']);
    expect(world.circuits.openOf(observationCircuits(far))).toBeUndefined();
    expect(world.circuits.openOf(indexCircuits('a'))).toBeUndefined();
  });
});

describe('the circuit of an index', () => {
  it('opens on three failures in a row, and stays closed when one is accepted between', () => {
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
  });

  it('is the cluster’s when every index that was asked is open and nothing was accepted for ten seconds', async () => {
    const world = setUp();
    world.circuits.accepted('b');
    world.probe.fault = new FaultError('index.blocked', 'flood stage');
    for (let count = 0; count < 3; count += 1) world.fail('a');
    await world.run(11_000);
    world.fail('a');
    expect(world.open()).toEqual(['index a']);
    for (let count = 0; count < 3; count += 1) world.fail('b');
    expect(world.open()).toContain('cluster');
  });

  it('is not the cluster’s while another index accepts something now and then, though nothing was accepted for ten seconds', async () => {
    const world = setUp();
    world.circuits.accepted('healthy');
    await world.run(20_000);
    for (const bucket of ['a', 'b']) for (let count = 0; count < 3; count += 1) world.fail(bucket);
    expect(world.open()).toEqual(['index a', 'index b']);
    await world.run(15_000);
    // the healthy one was not asked for half a minute, so it says nothing
    for (const bucket of ['a', 'b']) world.fail(bucket);
    expect(world.open()).toContain('cluster');
  });

  it('of one bucket alone is never the cluster’s', async () => {
    const world = setUp();
    for (let count = 0; count < 60; count += 1) {
      world.fail('a');
      await world.run(1_000);
    }
    expect(world.open()).toEqual(['index a']);
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
});

describe('an attempt that waits', () => {
  const never = new AbortController().signal;

  it('begins when each circuit that it needs lets it, those with fewer open circuits and new keys first', async () => {
    const world = setUp();
    world.answered(a, 'k', 's3.credentials');
    for (let count = 0; count < 3; count += 1) world.fail('a');
    const begun: string[] = [];
    const wait = (name: string, ids: ReturnType<typeof observationCircuits>, isNewKey: boolean) =>
      void world.circuits.wait({ ids, isNewKey }, 600_000, never).then((permit) => {
        begun.push(name);
        world.answered(b, name);
        permit?.leave();
      });
    wait('needs both', observationCircuits(a), false);
    wait('failed before', observationCircuits(b), false);
    await world.run(500);
    expect(begun).toEqual([]);
    wait('new key', observationCircuits(b), true);
    await world.run(500);
    expect(begun.slice(0, 2)).toEqual(['new key', 'failed before']);
    await world.run(10_000);
    expect(begun).toEqual(['new key', 'failed before', 'needs both']);
  });

  it('Fix: begins before those of buckets that have failed, though they came first: each of their trials may hang', async () => {
    const world = setUp();
    const buckets = ['c', 'd', 'e'].map((bucket) => ({ bucket, region: a.region }));
    for (const target of buckets) world.answered(target, 'k', 's3.unavailable');
    expect(world.open()).toEqual(['endpoint us-east-1']);
    const begun: string[] = [];
    const wait = ({ bucket, region }: typeof a, isNewKey: boolean) =>
      void world.circuits.wait({ ids: observationCircuits({ bucket, region }), isNewKey }, 600_000, never).then((permit) => {
        begun.push(bucket);
        world.answered(a, 'k');
        permit?.leave();
      });
    for (const target of buckets) wait(target, true);
    wait(b, false);
    await world.run(10_000);
    // a new key need not wait for the trial, and then the bucket goes first that has not failed
    expect(begun).toEqual(['c', 'b', 'd', 'e']);
  });

  it('ends after its time, and with the signal', async () => {
    const world = setUp();
    world.answered(a, 'k', 'bucket.missing');
    const stopping = new AbortController();
    const ends: unknown[] = [];
    void world.circuits.wait({ ids: observationCircuits(a), isNewKey: false }, 3_000, never).then((permit) => ends.push(permit));
    void world.circuits
      .wait({ ids: observationCircuits(a), isNewKey: false }, 600_000, stopping.signal)
      .catch((error: unknown) => ends.push(error instanceof Error && error.message));
    await world.run(3_500);
    expect(ends).toEqual([undefined]);
    stopping.abort(new Error('stop'));
    await world.run(500);
    expect(ends).toEqual([undefined, 'stop']);
  });

  it('gives its permit to the next when it leaves without a result', async () => {
    const world = setUp();
    world.answered(a, 'k', 'bucket.missing');
    await world.run(5_000);
    const attempt = { ids: observationCircuits(a), isNewKey: false };
    const first = world.circuits.take(attempt);
    expect(world.circuits.take(attempt)).toBeUndefined();
    first?.leave();
    expect(world.circuits.take(attempt)).toBeDefined();
  });
});

it('a bucket whose request had no answer counts as failing alone, until the circuit of their endpoint opens', () => {
  const world = setUp();
  for (const key of ['k', 'l', 'm']) world.answered(a, key, 's3.unavailable');
  expect([a, b].map(world.circuits.isFailing)).toEqual([true, false]);
  world.answered(b, 'k', 's3.unavailable');
  expect(world.open()).toEqual(['endpoint us-east-1']);
  expect([a, b, { ...b, bucket: 'c' }, far].map(world.circuits.isFailing)).toEqual([true, true, true, false]);
});

it('a message of a bucket that is not served costs the same however many wait for it', async () => {
  const world = setUp();
  let readings = 0;
  const clock = { ...world.clock, monotonicMs: () => (readings += 1) };
  const circuits = createTestCircuits({ clock, telemetry: world.telemetry });
  circuits.indexFailed('a', faultOf('bucket.index-blocked'), { sentAtMs: 0, isWhole: true });
  const arrive = async (): Promise<number> => {
    const before = readings;
    void circuits.wait({ ids: indexCircuits('a'), isNewKey: false }, 600_000, new AbortController().signal);
    await setImmediate();
    return readings - before;
  };
  const first = await arrive();
  for (let count = 0; count < 1_000; count += 1) await arrive();
  // each attempt that is asked reads the clock
  expect(await arrive()).toBeLessThanOrEqual(first);
});

it('a circuit for which nothing was tried for ten minutes is forgotten', async () => {
  const world = setUp();
  world.answered(a, 'k', 'bucket.missing');
  await world.run(590_000);
  expect(world.open()).toEqual(['bucket a']);
  await world.run(30_000);
  expect(world.open()).toEqual([]);
});

it('a circuit that is forgotten during a trial, and opens again, does not count that trial’s permit as its own', async () => {
  const world = setUp();
  world.answered(a, 'k', 'bucket.missing');
  const hanging = world.circuits.take({ ids: observationCircuits(a), isNewKey: true });
  await world.run(620_000);
  expect(world.open()).toEqual([]);
  world.answered(a, 'k', 'bucket.missing');
  hanging?.leave();
  await world.run(5_000);
  expect(world.circuits.take({ ids: observationCircuits(a), isNewKey: false })).toBeDefined();
});

it('a timer that is over a little early does not cost the trial: nothing else may come that wakes what waits', async () => {
  const world = setUp({ earlyMs: 0.9 });
  world.answered(a, 'k', 'bucket.missing');
  world.circuits.take({ ids: observationCircuits(a), isNewKey: true })?.leave();
  let begun = 0;
  void world.circuits
    .wait({ ids: observationCircuits(a), isNewKey: false }, 39_600_000, new AbortController().signal)
    .then(() => (begun += 1));
  await world.run(10_000);
  expect(begun).toBe(1);
});

it('a thousand failures of one outage set one timer', () => {
  const world = setUp();
  for (let count = 0; count < 1_000; count += 1) world.fail('a');
  expect(world.clock.sleepers()).toBe(1);
});

it('a request of enrichment that has the permit of its bucket’s trial decides it', async () => {
  const world = setUp();
  world.answered(a, 'k', 'bucket.missing');
  await world.run(5_000);
  const enrich = (fault?: Fault) => {
    const permit = world.circuits.take({ ids: enrichmentCircuits(a), isNewKey: false });
    const sentAtMs = world.clock.monotonicMs();
    if (permit !== undefined)
      world.circuits.storageAnswered(a, { key: 'k', sentAtMs, enriches: true, ...(fault !== undefined && { fault }) });
    permit?.leave();
    return permit !== undefined;
  };
  expect(enrich(faultOf('bucket.missing'))).toBe(true);
  // the next trial is due later
  expect(enrich()).toBe(false);
  await world.run(10_000);
  for (let count = 0; count < 8; count += 1) enrich();
  await world.run(500);
  expect(world.open()).not.toContain('bucket a');
});
