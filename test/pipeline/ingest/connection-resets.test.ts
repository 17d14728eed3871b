/**
 * One connection that is reset in 1,000 requests is no fault: what it costs is counted on a virtual clock, over a backlog. Resets
 * of requests to S3, and of those that settle messages, do not arrive here, because the SDK repeats them.
 */
import { expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import { nativeRecord } from '../../support/worlds/ingest.ts';
import { NEAR } from '../../support/worlds/port-faults.ts';
import { createWorkersWorld } from '../../support/worlds/workers.ts';

const MESSAGES = 8_000;
/** Ten times as often as is asked for, so that a short backlog meets enough of them; so ten times as much is permitted. */
const RECEIVES_PER_RESET = 100;
const LOSS_MAX = 0.02 * (1_000 / RECEIVES_PER_RESET);
/** A bulk request has hundreds of documents, so there are few: even more of them are reset. */
const STORE_REQUESTS_PER_RESET = 15;
/** The last messages wait for a retry that nothing else fills. */
const MEASURED = 0.9;

type Requests = Record<'receives' | 'store', { sent: number; reset: number }>;

/** Takes in a backlog with one worker. */
async function takeIn(perReset: Record<keyof Requests, number>) {
  let indexed = 0;
  let measuredMs = 0;
  const world = await createWorkersWorld({
    workers: 1,
    buckets: [NEAR],
    stepMs: 50,
    indexed() {
      indexed += 1;
      if (indexed === MESSAGES * MEASURED) measuredMs = world.clock.monotonicMs();
    },
  });
  const requests: Requests = { receives: { sent: 0, reset: 0 }, store: { sent: 0, reset: 0 } };
  const request = (kind: keyof Requests): void => {
    requests[kind].sent += 1;
    if (requests[kind].sent % perReset[kind] !== 0) return;
    requests[kind].reset += 1;
    throw new FaultError(kind === 'store' ? 'index.unreachable' : 'queue.unreachable', 'ECONNRESET');
  };
  for (const network of world.networks)
    network.fault = { store: () => request('store'), queue: (call) => (call === 'receive' ? request('receives') : undefined) };
  for (let count = 0; count < MESSAGES; count += 1) {
    const eventTimeMs = world.clock.nowMs();
    const object = world.storage.put(NEAR.bucket, `k-${count}`);
    world.send('exact', nativeRecord(`k-${count}`, { bucket: NEAR.bucket, object, eventTimeMs }));
  }
  const beganMs = world.clock.monotonicMs();
  while (world.queue.all.size > 0) await world.run(1_000);
  world.end();
  const { delete: deleted = 0, ...others } = Object.fromEntries(world.counts);
  return { ms: measuredMs - beganMs, requests, deleted, others, opened: [...world.opened], indexed };
}

it('one reset in 1,000 requests costs under 2 % of the throughput, opens no circuit and defers nothing', async () => {
  const undisturbed = await takeIn({ receives: Infinity, store: Infinity });
  const disturbed = await takeIn({ receives: RECEIVES_PER_RESET, store: STORE_REQUESTS_PER_RESET });
  const { requests, others } = disturbed;
  expect(requests.receives.reset).toBeGreaterThan(5);
  expect(requests.store.reset).toBeGreaterThan(0);
  expect(disturbed).toMatchObject({ opened: [], indexed: MESSAGES, deleted: MESSAGES });
  expect(others).toEqual({ 'failed: receive messages': requests.receives.reset });
  expect(disturbed.ms / undisturbed.ms - 1).toBeLessThan(LOSS_MAX);
});
