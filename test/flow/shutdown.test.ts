import { expect, test } from 'vitest';
import { openFlow } from '../support/flow.ts';

test('smoke', async () => {
  await using flow = await openFlow('opensearch');
  const daemon = await flow.start({ TALLY_LOG_LEVEL: 'debug' });
  const { world } = flow;
  world.send(world.put('a'), world.put('b c'), world.put('d'), world.remove('d'));
  await flow.converged(daemon, 10_000);
  console.log(daemon.log, await daemon.metric('process_resident_memory_bytes'));
  console.log(await daemon.stop());
});
