import { expect, it } from 'vitest';
import { createIngestWorld, syntheticRecord } from '../support/worlds/ingest.ts';

it('a bulk delete of a routed bucket marks it, also where the keys are reported one by one', async () => {
  const world = await createIngestWorld({ bucket: { source: 'routed' } });
  const eventTimeMs = world.clock.nowMs() - 60_000;
  for (const key of ['a', 'b']) await world.send(syntheticRecord(key, { eventName: 'DeleteObject', eventTimeMs }));
  await world.send(syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs }));
  await world.run(3_000);
  expect(await world.gaps()).toMatchObject([
    { deletes: 'announced', lastSeenMs: eventTimeMs, reasons: [{ kind: 'bulk-delete', count: 1 }] },
  ]);
});
