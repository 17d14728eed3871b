import { describe, expect, it } from 'vitest';
import type { Telemetry } from '../../../src/pipeline/ports/telemetry.ts';
import { createLiveLoad } from '../../../src/pipeline/serving/live-load.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';

function setUp() {
  const clock = createFakeClock();
  const load = createLiveLoad({ clock, heldMax: 100, bulkConcurrency: 2 });
  const told: string[] = [];
  const fake = createFakeTelemetry();
  // plain functions, as the real one's
  const telemetry: Telemetry = Object.assign(
    {},
    ...(['bulkQueue', 'bulkSent', 'heads', 'held', 'eventLag'] as const).map((name) => ({
      [name]: (...args: unknown[]) => {
        told.push(name);
        Reflect.apply(fake[name], fake, args);
      },
    })),
  );
  return { clock, load, told, live: load.watching(telemetry) };
}

const sent = { actions: 1, sizeBytes: 1, durationMs: 20, result: 'ok' } as const;

describe('the live path', () => {
  it('is not pressed by what it gets through', () => {
    const { load, live } = setUp();
    expect(load.isBusy()).toBe(false);
    live.bulkQueue({ actionsQueued: 10, requestsInFlight: 1 });
    live.bulkSent(sent);
    live.heads({ queued: 0, inFlight: 5 });
    live.held(50);
    expect(load.isBusy()).toBe(false);
  });

  it('is pressed while writes or looks wait for their turn, and while much is held', () => {
    const { load, live } = setUp();
    live.bulkQueue({ actionsQueued: 1, requestsInFlight: 2 });
    expect(load.isBusy()).toBe(true);
    live.bulkQueue({ actionsQueued: 0, requestsInFlight: 2 });
    expect(load.isBusy()).toBe(false);
    live.heads({ queued: 1, inFlight: 5 });
    expect(load.isBusy()).toBe(true);
    live.heads({ queued: 0, inFlight: 5 });
    live.held(51);
    expect(load.isBusy()).toBe(true);
  });

  it.each([{ durationMs: 501 }, { result: 'index.overloaded' as const }])('is pressed for two seconds after %o', async (change) => {
    const { clock, load, live } = setUp();
    live.bulkSent({ ...sent, ...change });
    expect(load.isBusy()).toBe(true);
    await clock.advance(2_000);
    expect(load.isBusy()).toBe(false);
  });

  it('tells its facts on', () => {
    const { live, told } = setUp();
    live.bulkQueue({ actionsQueued: 1, requestsInFlight: 2 });
    live.bulkSent(sent);
    live.heads({ queued: 1, inFlight: 5 });
    live.held(1);
    live.eventLag(1);
    expect(told).toEqual(['bulkQueue', 'bulkSent', 'heads', 'held', 'eventLag']);
  });
});
