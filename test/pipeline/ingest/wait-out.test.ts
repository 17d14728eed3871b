import { describe, expect, it } from 'vitest';
import { faults, FaultError, type Fault, type FaultCode } from '../../../src/domain/fault.ts';
import { createFaultGate } from '../../../src/pipeline/serving/fault-gate.ts';
import type { InHand } from '../../../src/pipeline/ingest/held-set.ts';
import { createParking } from '../../../src/pipeline/serving/parking.ts';
import { createWaitOut, type FaultContext } from '../../../src/pipeline/ingest/wait-out.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { settled } from '../../support/worlds/ingest.ts';

function setUp(options: { readonly holdMs?: number; readonly parkedMax?: number } = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const stopping = new AbortController();
  const gate = createFaultGate({ clock, telemetry, stopped: stopping.signal });
  const probed: string[] = [];
  let isDown = true;
  const probe = (name: string) => async () => {
    probed.push(name);
    if (isDown) throw new FaultError('index.unreachable', 'still gone');
  };
  const parking = createParking({ clock, telemetry, parkedMax: options.parkedMax ?? 100 });
  const probes = { index: probe('index'), storage: ({ bucket, region }: FaultContext) => probe(`storage ${bucket} ${region}`) };
  const waitOut = createWaitOut({ gate, clock, probes, parking });
  const startMs = clock.monotonicMs();
  let slow = 0;
  const hand: InHand = {
    traces: [],
    message: {
      queueUrl: 'q',
      messageId: 'm',
      receiptHandle: 'h',
      body: '',
      sentAtMs: 0,
      firstReceivedAtMs: 0,
      receiveCount: 1,
      attributes: {},
      receivedAtMonotonicMs: 0,
    },
    signal: stopping.signal,
    weight: { turn: () => undefined, opened: () => undefined },
    turnSlow: () => void (slow += 1),
    isLastReceive: false,
    holdLeftMs: () => startMs + (options.holdMs ?? 600_000) - clock.monotonicMs(),
  };
  const ended: unknown[] = [];
  return {
    clock,
    telemetry,
    gate,
    parking,
    probed,
    ended,
    stopping,
    slow: () => slow,
    recover: () => {
      isDown = false;
    },
    wait: (
      code: FaultCode,
      at: FaultContext | 'nowhere' = {
        bucket: 'b',
        region: 'eu-west-1',
      },
    ) =>
      waitOut(faultOf(code), hand, at === 'nowhere' ? undefined : at).then(
        (outcome) => ended.push(outcome ?? 'try again'),
        (error: unknown) => ended.push(error),
      ),
  };
}

const faultOf = (code: FaultCode): Fault => ({ code, reason: 'why' });
const codes = Object.keys(faults) as FaultCode[];
const ofScope = (scope: string) => codes.filter((code) => faults[code].scope === scope);

describe('a fault that is one record’s own', () => {
  it.each(ofScope('own'))('%s: deferred, and nobody else waits', async (code) => {
    const world = setUp();
    await world.wait(code);
    expect(world.ended).toEqual([{ kind: 'deferred', fault: faultOf(code), bucket: 'b' }]);
    expect(world.gate.isOpen).toBe(true);
    expect(world.slow()).toBe(0);
  });

  it.each(ofScope('never'))('%s: rejected', async (code) => {
    const world = setUp();
    await world.wait(code);
    expect(world.ended).toEqual([{ kind: 'rejected', fault: faultOf(code), bucket: 'b' }]);
  });

  it('names no bucket where the work is none’s', async () => {
    const world = setUp();
    await world.wait('message.confirmation-failed', 'nowhere');
    await world.wait('bucket.index-missing', 'nowhere');
    expect(world.ended).toEqual([
      { kind: 'deferred', fault: faultOf('message.confirmation-failed') },
      { kind: 'deferred', fault: faultOf('bucket.index-missing') },
    ]);
  });
});

describe('a shared fault', () => {
  it.each(ofScope('shared'))('%s: waits in the held set until the gate opens, then tries again', async (code) => {
    const world = setUp();
    void world.wait(code);
    await world.clock.advance(60_000);
    expect(world.ended).toEqual([]);
    expect(world.gate.isOpen).toBe(false);
    expect(world.slow()).toBe(1);
    expect(new Set(world.probed)).toEqual(new Set([code.startsWith('s3.') ? 'storage b eu-west-1' : 'index']));
    world.recover();
    await world.clock.advance(5_000);
    await settled();
    expect(world.ended).toEqual(['try again']);
  });

  it('that lasts longer than the message may be held ends as deferred', async () => {
    const world = setUp({ holdMs: 20_000 });
    void world.wait('index.unreachable');
    await world.clock.advance(20_000);
    await settled();
    expect(world.ended).toMatchObject([{ kind: 'deferred', fault: { code: 'index.unreachable' } }]);
    expect(world.clock.sleepers()).toBe(1);
  });

  it('lets the message go when the process stops', async () => {
    const world = setUp();
    void world.wait('index.unreachable');
    await settled();
    world.stopping.abort(new Error('stop'));
    await settled();
    expect(world.ended).toEqual([new Error('stop')]);
  });
});

describe('a fault of one bucket', () => {
  it('parks its records until 30 s after it was first seen, and is said once until a record succeeds', async () => {
    const world = setUp();
    void world.wait('bucket.index-blocked');
    await world.clock.advance(20_000);
    void world.wait('bucket.index-blocked');
    expect(world.parking.parkedBy('b', 'index')).toMatchObject({ code: 'bucket.index-blocked' });
    expect(world.parking.parkedBy('c', 'index')).toBeUndefined();
    await world.clock.advance(9_999);
    expect(world.ended).toEqual([]);
    await world.clock.advance(1);
    await settled();
    expect(world.ended).toEqual(['try again', 'try again']);
    expect(world.parking.parkedBy('b', 'index')).toBeUndefined();
    // still out of order
    void world.wait('bucket.index-blocked');
    await world.clock.advance(30_000);
    expect(world.telemetry.recorded('bucketParked')).toHaveLength(1);
    expect(world.telemetry.recorded('bucketParked')[0]?.[2]).toContain(faults['bucket.index-blocked'].advice);
    world.parking.worked('b', 'index');
    world.parking.worked('b', 'index');
    expect(world.telemetry.recorded('bucketResumed')).toEqual([['b']]);
    void world.wait('bucket.index-blocked');
    expect(world.telemetry.recorded('bucketParked')).toHaveLength(2);
    expect(world.gate.isOpen).toBe(true);
  });

  it('is of its index or of the bucket itself, and each is parked for itself', async () => {
    const world = setUp();
    void world.wait('bucket.missing');
    expect(world.parking.parkedBy('b', 'storage')).toMatchObject({ code: 'bucket.missing' });
    expect(world.parking.parkedBy('b', 'index')).toBeUndefined();
    world.parking.worked('b', 'index');
    expect(world.telemetry.recorded('bucketResumed')).toEqual([]);
  });

  it('defers what there is no room to park, or what was held for long enough', async () => {
    const world = setUp({ parkedMax: 1 });
    void world.wait('bucket.index-missing');
    void world.wait('bucket.index-missing');
    await settled();
    expect(world.ended).toMatchObject([{ kind: 'deferred', fault: { code: 'bucket.index-missing' } }]);
    const late = setUp({ holdMs: 0 });
    await late.wait('bucket.index-missing');
    expect(late.ended).toMatchObject([{ kind: 'deferred' }]);
  });

  it('lets the message go when the process stops, and leaves its place to others', async () => {
    const world = setUp({ parkedMax: 1 });
    void world.wait('bucket.index-outdated');
    world.stopping.abort(new Error('stop'));
    await settled();
    expect(world.ended).toEqual([new Error('stop')]);
  });
});
