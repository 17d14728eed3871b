/** A daemon whose SQLite file is moved while it works. */
import { rename } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { openFlow } from '../support/worlds/flow.ts';

test('Fix: a SQLite file that is moved away under load: no message is acknowledged for it, and all is indexed once it is back', async () => {
  await using flow = await openFlow('sqlite');
  const { world } = flow;
  const path = (flow.env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', '');
  const daemon = await flow.start({ TALLY_INGEST_VISIBILITY_S: '60' });
  world.send(world.put('before'));
  await flow.converged(daemon);

  await rename(path, `${path}.away`);
  const keys = Array.from({ length: 200 }, (_, at) => `during/${at}`);
  for (const key of keys) world.send(world.put(key));
  await until('not ready, and says why', async () => JSON.stringify(await daemon.readyz()).includes('index.replaced'));
  const { visible, inFlight } = world.messages();
  expect(visible.length + inFlight.length).toBe(keys.length);

  await rename(`${path}.away`, path);
  await flow.converged(daemon);
  await until('ready again', async () => (await daemon.readyz())?.status === 200);
  expect(world.deadLetters()).toEqual([]);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
});
