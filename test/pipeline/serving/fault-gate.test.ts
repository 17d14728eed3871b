import { describe, expect, it } from 'vitest';
import { FaultError, type Fault } from '../../../src/domain/fault.ts';
import { createFaultGate } from '../../../src/pipeline/serving/fault-gate.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { settled } from '../../support/worlds/ingest.ts';

const gone: Fault = { code: 'index.unreachable', reason: 'gone' };
const blocked: Fault = { code: 'index.blocked', reason: 'flood stage' };

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const stopping = new AbortController();
  const gate = createFaultGate({ clock, telemetry, stopped: stopping.signal });
  let answer: Fault | undefined = gone;
  let probes = 0;
  const probe = async (): Promise<void> => {
    probes += 1;
    if (answer !== undefined) throw new FaultError(answer.code, answer.reason);
  };
  const passed: string[] = [];
  const pass = (name: string, signal = new AbortController().signal) =>
    gate.passed(signal).then(
      () => passed.push(name),
      () => passed.push(`${name} aborted`),
    );
  return {
    clock,
    telemetry,
    stopping,
    gate,
    probe,
    passed,
    pass,
    answers: (fault: Fault | undefined) => {
      answer = fault;
    },
    probes: () => probes,
    said: () => telemetry.facts.map(({ name }) => name),
  };
}

describe('the gate', () => {
  it('is open at first and lets everybody through at once', async () => {
    const world = setUp();
    expect(world.gate.isOpen).toBe(true);
    await world.pass('a');
    expect(world.passed).toEqual(['a']);
  });

  it('closes at a fault, is probed every 5 s, and opens for all when the probe answers; each is said once', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    world.gate.trip('index', blocked, world.probe);
    void world.pass('a');
    void world.pass('b');
    await world.clock.advance(14_999);
    expect(world.probes()).toBe(2);
    expect(world.gate.isOpen).toBe(false);
    world.answers(undefined);
    await world.clock.advance(1);
    await settled();
    expect(world.gate.isOpen).toBe(true);
    expect(world.passed).toEqual(['a', 'b']);
    expect(world.telemetry.recorded('paused')).toEqual([['index.unreachable', 'gone']]);
    expect(world.telemetry.recorded('resumed')).toEqual([['index.unreachable', 15_000]]);
  });

  it('shows the fault that keeps it closed now', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    expect(world.gate.closedBy().get('index')).toEqual(gone);
    world.answers(blocked);
    await world.clock.advance(5_000);
    expect(world.gate.closedBy().get('index')).toEqual(blocked);
    expect(world.said()).toEqual(['paused']);
  });

  it('closed by two dependencies opens when both answer', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    world.gate.trip('s3', { code: 's3.unavailable', reason: '503' }, async () => {});
    void world.pass('a');
    await world.clock.advance(5_000);
    expect([...world.gate.closedBy().keys()]).toEqual(['index']);
    expect(world.passed).toEqual([]);
    world.answers(undefined);
    await world.clock.advance(5_000);
    await settled();
    expect(world.passed).toEqual(['a']);
  });

  it('takes a fault of narrower scope for an answer: the dependency is there', async () => {
    const world = setUp();
    world.gate.trip('s3', { code: 's3.unavailable', reason: '503' }, world.probe);
    world.answers({ code: 'bucket.missing', reason: 'no such bucket' });
    await world.clock.advance(5_000);
    expect(world.gate.isOpen).toBe(true);
  });

  it('closes again at the next fault, and says so again', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    world.answers(undefined);
    await world.clock.advance(5_000);
    world.gate.trip('index', gone, world.probe);
    expect(world.said()).toEqual(['paused', 'resumed', 'paused']);
  });

  it('lets go whoever gives up waiting, and nobody else', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    const giving = new AbortController();
    void world.pass('a', giving.signal);
    void world.pass('b');
    giving.abort();
    await settled();
    expect(world.passed).toEqual(['a aborted']);
    void world.pass('late', AbortSignal.abort());
    await settled();
    expect(world.passed).toEqual(['a aborted', 'late aborted']);
    world.answers(undefined);
    await world.clock.advance(5_000);
    await settled();
    expect(world.passed).toEqual(['a aborted', 'late aborted', 'b']);
  });

  it('is not probed any more once the process stops, and stays closed', async () => {
    const world = setUp();
    world.gate.trip('index', gone, world.probe);
    world.stopping.abort();
    world.answers(undefined);
    await world.clock.advance(60_000);
    world.gate.trip('s3', { code: 's3.unavailable', reason: '503' }, world.probe);
    expect(world.probes()).toBe(0);
    expect(world.gate.isOpen).toBe(false);
    expect(world.said()).toEqual(['paused']);
  });
});
