import { describe, expect, it } from 'vitest';
import { createLiveLoad } from '../../src/observing/live-load.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const load = createLiveLoad({ clock, telemetry, heldMax: 100, bulkConcurrency: 2 });
  return { clock, telemetry, load };
}

const sent = { durationMs: 20, isTaken: true };

describe('the live path', () => {
  it('is not pressed by what it gets through, which the gauges show', () => {
    const { load, telemetry } = setUp();
    expect(load.isBusy()).toBe(false);
    load.bulkQueue({ actionsQueued: 10, requestsInFlight: 1 });
    load.bulkSent(sent);
    load.heads({ queued: 0, inFlight: 5 });
    load.held(50);
    expect(load.isBusy()).toBe(false);
    expect(telemetry.recorded('set')).toEqual([
      ['tally_bulk_queued_actions', 10],
      ['tally_bulk_in_flight_requests', 1],
      ['tally_head_queued_requests', 0],
      ['tally_head_in_flight_requests', 5],
      ['tally_held_messages', 50],
    ]);
  });

  it('is pressed while writes or HEAD requests wait for their turn, and while much is held', () => {
    const { load } = setUp();
    load.bulkQueue({ actionsQueued: 1, requestsInFlight: 2 });
    expect(load.isBusy()).toBe(true);
    load.bulkQueue({ actionsQueued: 0, requestsInFlight: 2 });
    expect(load.isBusy()).toBe(false);
    load.heads({ queued: 1, inFlight: 5 });
    expect(load.isBusy()).toBe(true);
    load.heads({ queued: 0, inFlight: 5 });
    load.held(51);
    expect(load.isBusy()).toBe(true);
  });

  it.each([{ durationMs: 501 }, { isTaken: false }])('is pressed for two seconds after %o', async (change) => {
    const { clock, load } = setUp();
    load.bulkSent({ ...sent, ...change });
    expect(load.isBusy()).toBe(true);
    await clock.advance(2_000);
    expect(load.isBusy()).toBe(false);
  });
});
