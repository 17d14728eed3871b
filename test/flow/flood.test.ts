/** A daemon with the memory of a small container, and a queue that holds the worst bodies beside usual events. */
import { expect, test } from 'vitest';
import { usageOf } from '../support/process-usage.ts';
import { until } from '../support/servers/aws.ts';
import { acceptedBodies, heavyBody, rejectedBodies } from '../support/servers/hostile-bodies.ts';
import { indexed, openFlow } from '../support/worlds/flow.ts';

/** What Node chooses with 512 MiB: `docker run --memory=512m node:24 node --max-semi-space-size=16` has a heap limit of 304 MiB, of which this is the old space. */
const OLD_SPACE_MIB = 256;
/** As by default. */
const SETTINGS = { TALLY_INGEST_POLLERS: '8', TALLY_INGEST_VISIBILITY_S: '60', TALLY_INGEST_WAIT_S: '20' };

test('Fix: the memory of a container of 512 MiB suffices for every body that SQS can carry, and usual events are indexed meanwhile', async () => {
  await using flow = await openFlow('sqlite', { maxReceiveCount: 20 });
  const { world } = flow;
  const daemon = await flow.start({ ...SETTINGS, NODE_OPTIONS: `--max-old-space-size=${OLD_SPACE_MIB}` });
  const rejected = Object.values(rejectedBodies());
  const hostile = [...rejected, ...Object.values(acceptedBodies())];
  for (const [number, body] of hostile.entries()) {
    if (number % 3 === 0) world.send(world.put(`usual/${number}`));
    // in their midst, heavy work for the index
    if (number === 18) world.send(heavyBody(world.bucket));
    world.send(body);
  }
  await until('the queue is empty, or the daemon has ended', () => {
    const { visible, inFlight } = world.messages();
    return !daemon.isRunning || visible.length + inFlight.length === 0;
  });
  expect(daemon.isRunning).toBe(true);
  const memoryMiB = usageOf(daemon.pid).peakRssBytes / 1_048_576;
  expect(memoryMiB).toBeLessThan(512);
  // a message that is received again after its visibility time-out may become a second letter
  expect(world.deadLetters().length).toBeGreaterThanOrEqual(rejected.length);
  const found = await indexed(daemon, world.bucket);
  expect([...world.objects().keys()].filter((key) => found?.has(key) !== true)).toEqual([]);
});
