import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createAdmission } from '../../src/indexer/receiving.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import type { HeldSet } from '../../src/indexer/held-set.ts';
import type { QueueWatch } from '../../src/observing/queue-watch.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

async function setUp(options: { readonly connected?: boolean } = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = createBreakableStore();
  const stopping = new AbortController();
  const circuits = createTestCircuits({ clock, telemetry, stopped: stopping.signal, probeCluster: () => store.objects.probe() });
  const conditions = { isFull: false, inFlight: 0, isFailing: false };
  const held = {
    get isFull() {
      return conditions.isFull;
    },
  } as HeldSet;
  const queueWatch = {
    get inFlight() {
      return conditions.inFlight;
    },
  } as QueueWatch;
  let lists = 0;
  const state = guarded(store.state, () => (lists += 1), ['list']);
  const connect = () => store.plainState.put({ id: 'bucket:b', kind: 'bucket', record: {} }, null);
  if (options.connected !== false) await connect();
  const admission = createAdmission({
    circuits,
    held,
    queueWatch,
    state,
    clock,
    telemetry,
    inFlightMax: 1e3,
    isFailing: () => conditions.isFailing,
  });
  const admitted: string[] = [];
  return {
    clock,
    telemetry,
    store,
    circuits,
    conditions,
    connect,
    admission,
    admitted,
    lists: () => lists,
    admit: (name: string, signal = new AbortController().signal) =>
      void admission.admit(signal).then(
        () => admitted.push(name),
        () => admitted.push(`${name} aborted`),
      ),
    run: async (forMs: number) => {
      await clock.advance(forMs);
      await settled();
    },
    recorded: () => telemetry.logged('the state of receiving changed').map(({ state: each }) => each),
  };
}

describe('a receive', () => {
  it.each<[string, (world: Awaited<ReturnType<typeof setUp>>, isOn: boolean) => void]>([
    ['held-full', ({ conditions }, isOn) => void (conditions.isFull = isOn)],
    ['in-flight-cap', ({ conditions }, isOn) => void (conditions.inFlight = isOn ? 1_001 : 1_000)],
  ])('begins at once, waits while it is %s, says so once, and begins when that is over', async (state, turn) => {
    const world = await setUp();
    world.admit('first');
    await settled();
    expect([world.admitted, world.recorded(), world.admission.state]).toEqual([['first'], ['on'], 'on']);
    turn(world, true);
    world.admit('a');
    world.admit('b');
    await world.run(60_000);
    expect(world.admitted).toEqual(['first']);
    expect(world.recorded()).toEqual(['on', state]);
    turn(world, false);
    await world.run(200);
    expect(world.admitted).toEqual(['first', 'a', 'b']);
    expect(world.recorded()).toEqual(['on', state, 'on']);
  });

  it('does not begin while no bucket is connected; the store is asked every five seconds', async () => {
    const world = await setUp({ connected: false });
    world.admit('a');
    world.admit('b');
    await world.run(60_000);
    expect(world.admitted).toEqual([]);
    expect(world.recorded()).toEqual(['no-bucket']);
    expect(world.lists()).toBeLessThanOrEqual(13);
    await world.connect();
    await world.run(5_200);
    expect(world.admitted).toEqual(['a', 'b']);
  });

  it('waits while the index store does not answer, and cannot say whether there is a bucket', async () => {
    const world = await setUp();
    world.store.broken.all = new FaultError('index.state-missing', 'no state index');
    world.admit('a');
    await world.run(20_000);
    expect(world.circuits.openOf(['cluster'])).toMatchObject({ fault: { code: 'index.state-missing' } });
    expect(world.recorded()).toEqual(['paused']);
    world.store.broken.all = undefined;
    await world.run(15_200);
    expect(world.admitted).toEqual(['a']);
  });
});
