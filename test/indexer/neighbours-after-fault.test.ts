/**
 * A bucket that does not answer, beside one that did not answer at times either and does now, on the virtual clock. The circuit of
 * their region opens, and no new event of the neighbour comes that could close it: what was hidden must do so itself.
 */
import { expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { isLong } from '../support/breadth.ts';
import { createRandom } from '../support/random/seeded.ts';
import { syntheticRecord } from '../support/worlds/ingest.ts';
import { FAULTY, NEAR } from '../support/worlds/port-faults.ts';
import type { PortFault } from '../support/worlds/worker-network.ts';
import { createWorkersWorld } from '../support/worlds/workers.ts';

const SECOND_MS = 1_000;
/** Two attempts of two seconds. */
const HANGS_MS = 4_000;
const ROUNDS = 20;
/** What a killed worker had in hand is received again after a minute. What fails while the neighbour does is hidden for 30 s, and for a minute when it comes back beside the attempt that closes the circuit. */
const SERVED_MS = 100 * SECOND_MS;
/** In few worlds others have the attempt twice, and it is hidden for 30, 60 and 120 s. */
const SERVED_AT_LATEST_MS = 225 * SECOND_MS;
const WORLDS = isLong ? 60 : 15;

/** Every request for the bucket hangs, and for a time two in five of the neighbour's. Others take up to `slowMs`. */
function hanging(random: ReturnType<typeof createRandom>): PortFault {
  const nearForMs = random.integer(0, 15) * SECOND_MS;
  const slowMs = random.integer(1, 3_000);
  let beganAtMs: number | undefined;
  return {
    async s3({ bucket }, clock) {
      beganAtMs ??= clock.nowMs();
      const isNearHanging = clock.nowMs() - beganAtMs < nearForMs && random.integer(1, 5) <= 2;
      if (bucket !== FAULTY.bucket && !isNearHanging) return clock.sleep(random.integer(1, slowMs));
      await clock.sleep(HANGS_MS);
      throw new FaultError('s3.unavailable', 'a fault of the test');
    },
  };
}

/** Sends inexact events of both buckets, kills the worker, and sends more. Returns how long the neighbour's took; Infinity if one is left. */
async function play(seed: number): Promise<{ readonly longestMs: number; readonly opened: readonly string[] }> {
  const random = createRandom(seed);
  const sentAtMs = new Map<string, number>();
  let longestMs = 0;
  const world = await createWorkersWorld({
    workers: 1,
    pollers: 4,
    buckets: [FAULTY, NEAR],
    indexed(bucket, key) {
      if (bucket !== NEAR.bucket) return;
      longestMs = Math.max(longestMs, world.clock.nowMs() - (sentAtMs.get(key) ?? Infinity));
      sentAtMs.delete(key);
    },
  });
  const fault = (): void => {
    for (const network of [...world.networks, world.repairNetwork]) network.fault = hanging(random);
  };
  let count = 0;
  const send = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      count += 1;
      const key = `inexact-${count}`;
      sentAtMs.set(key, world.clock.nowMs());
      for (const { bucket } of [FAULTY, NEAR]) {
        world.storage.put(bucket, key);
        world.send('inexact', syntheticRecord(key, { bucket, eventTimeMs: world.clock.nowMs() }));
      }
      await world.run(SECOND_MS / 2);
    }
  };

  fault();
  await send(ROUNDS);
  await world.run(60 * SECOND_MS);
  await send(1);
  await world.restart('kill');
  fault();
  await send(ROUNDS);
  await world.run(400 * SECOND_MS);
  world.end();
  return { longestMs: sentAtMs.size > 0 ? Infinity : longestMs, opened: [...world.opened] };
}

it('Fix: a bucket that does not answer keeps no neighbour from being served, as soon as it answers and its messages are back', async () => {
  const opened = new Set<string>();
  const tookMs: number[] = [];
  for (let seed = 1; seed <= WORLDS; seed += 1) {
    const played = await play(seed);
    for (const circuit of played.opened) opened.add(circuit);
    tookMs.push(played.longestMs);
  }
  expect([...opened].sort()).toEqual(expect.arrayContaining([`bucket ${FAULTY.bucket}`, `endpoint ${NEAR.region}`]));
  expect(Math.max(...tookMs)).toBeLessThanOrEqual(SERVED_AT_LATEST_MS);
  expect(tookMs.filter((each) => each > SERVED_MS).length).toBeLessThanOrEqual(WORLDS / 10);
});
