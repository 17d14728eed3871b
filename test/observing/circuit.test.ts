import { describe, expect, it } from 'vitest';
import type { Fault } from '../../src/base/fault.ts';
import { createCircuit } from '../../src/observing/circuit.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

const fault: Fault = { code: 's3.unavailable', reason: '503' };

function setUp() {
  const clock = createFakeClock();
  const circuit = createCircuit(clock);
  /** Makes a trial that ends so; returns whether it could begin. */
  const attempt = (isWell: boolean, isNewKey = false): boolean => {
    if (!circuit.take(isNewKey)) return false;
    if (isWell) circuit.succeeded();
    else circuit.failed(fault, clock.monotonicMs());
    circuit.giveBack();
    return true;
  };
  return { clock, circuit, attempt };
}

describe('an open circuit', () => {
  it('lets one new key try each second, which changes nothing for the others: one attempt after 5 s, doubling to a minute', async () => {
    const { clock, circuit, attempt } = setUp();
    expect(circuit.open(fault)).toBe(true);
    await clock.advance(1);
    expect(attempt(false)).toBe(false);
    expect(attempt(false, true)).toBe(true);
    const trialsAtS: number[] = [];
    for (let second = 1; second <= 300; second += 1) {
      await clock.advance(1_000);
      if (attempt(false)) trialsAtS.push(second);
      else expect(attempt(false, true)).toBe(true);
    }
    expect(trialsAtS).toEqual([5, 15, 35, 75, 135, 195, 255]);
  });

  it('lets one attempt run at a time until one succeeded, then two, four, eight …', async () => {
    const { clock, circuit } = setUp();
    circuit.open(fault);
    await clock.advance(5_000);
    expect([circuit.take(false), circuit.take(false)]).toEqual([true, false]);
    circuit.succeeded();
    circuit.giveBack();
    expect([circuit.take(false), circuit.take(false), circuit.take(false)]).toEqual([true, true, false]);
    circuit.succeeded();
    expect([circuit.take(false), circuit.take(false), circuit.take(false)]).toEqual([true, true, false]);
    for (let count = 0; count < 3; count += 1) expect(circuit.succeeded()).toBe(false);
    expect(circuit.succeeded()).toBe(true);
    expect(circuit.fault).toBeUndefined();
  });

  it('Fix: counts from its first success: after a long outage one failure among the first attempts does not open it again', async () => {
    const { clock, circuit, attempt } = setUp();
    circuit.open(fault);
    for (let minute = 0; minute < 60; minute += 1) {
      await clock.advance(60_000);
      expect(attempt(false)).toBe(true);
    }
    await clock.advance(60_000);
    for (const isWell of [true, true, false, true, true, true]) expect(attempt(isWell)).toBe(true);
    expect(attempt(true)).toBe(true);
    expect(circuit.fault).toBeUndefined();
  });

  it('closes when attempts succeed and none is left, and not before one succeeded', async () => {
    const { clock, circuit, attempt } = setUp();
    circuit.open(fault);
    expect(circuit.closeIfIdle()).toBe(false);
    await clock.advance(5_000);
    expect(attempt(true)).toBe(true);
    expect(circuit.closeIfIdle()).toBe(true);
  });

  it('is not closed by the failure of what was sent before it opened, nor held open longer', async () => {
    const { clock, circuit, attempt } = setUp();
    const sentAtMs = clock.monotonicMs();
    await clock.advance(1_000);
    circuit.open(fault);
    for (let count = 0; count < 9; count += 1) circuit.failed(fault, sentAtMs);
    await clock.advance(5_000);
    expect(attempt(true)).toBe(true);
  });

  it('Fix: lengthens its interval once for each trial, however many items of it fail, and never for what was no trial', async () => {
    const { clock, circuit } = setUp();
    circuit.open(fault);
    await clock.advance(1_000);
    // began before the circuit opened, and was sent later
    for (let count = 0; count < 9; count += 1) circuit.failed(fault, clock.monotonicMs());
    await clock.advance(4_000);
    expect(circuit.take(false)).toBe(true);
    for (let count = 0; count < 9; count += 1) circuit.failed(fault, clock.monotonicMs());
    circuit.giveBack();
    await clock.advance(10_000);
    expect(circuit.take(false)).toBe(true);
  });

  it('keeps its interval when it opens again within a minute, unless more than half succeeded', async () => {
    const { clock, circuit, attempt } = setUp();
    circuit.open(fault);
    await clock.advance(5_000);
    expect(attempt(false)).toBe(true);
    await clock.advance(10_000);
    expect(attempt(true)).toBe(true);
    expect(attempt(false)).toBe(true);
    // half failed: open again with the interval of 10 s
    await clock.advance(9_000);
    expect(attempt(false)).toBe(false);
    await clock.advance(1_000);
    for (let count = 0; count < 6; count += 1) expect(attempt(true)).toBe(true);
    expect(circuit.fault).toBeUndefined();
    circuit.open(fault);
    await clock.advance(5_000);
    expect(attempt(true)).toBe(true);
  });

  it('tells since when it is open, through openings within a minute', async () => {
    const { clock, circuit, attempt } = setUp();
    circuit.open(fault);
    const sinceMs = circuit.sinceMs;
    await clock.advance(5_000);
    for (let count = 0; count < 6; count += 1) attempt(true);
    await clock.advance(30_000);
    circuit.open(fault);
    expect(circuit.sinceMs).toBe(sinceMs);
    await clock.advance(5_000);
    for (let count = 0; count < 6; count += 1) attempt(true);
    await clock.advance(61_000);
    circuit.open(fault);
    expect(circuit.sinceMs).toBe(clock.nowMs());
  });
});
