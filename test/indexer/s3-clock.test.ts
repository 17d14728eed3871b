/** S3's clock is ahead of those of SQS and the workers, or behind them, as that of a self-hosted store may be. */
import { expect, it } from 'vitest';
import { headOf } from '../support/fakes/details.ts';
import { BUCKET, createIngestWorld, nativeRecord, settled } from '../support/worlds/ingest.ts';

it.each([0, 30_000, 61_500, 900_000, -61_500, -900_000])(
  'by %i ms: a key that is put twice within one second of S3’s Date ends as the second put says',
  async (aheadMs) => {
    const world = await createIngestWorld();
    const { storage, clock } = world;
    // how long each HEAD takes: the first 10 ms, the second 400 ms, so that its D is before that of the first
    const durations = [10, 400];
    let heads = 0;
    storage.readState = async ({ bucket }, key) => {
      const durationMs = durations[heads] ?? 10;
      heads += 1;
      const found = await storage.readVersion({ bucket, region: 'us-east-1' }, { key });
      await clock.sleep(durationMs);
      // as the adapter does: Date, in whole seconds by S3's clock, minus the measured duration
      const dateMs = Math.floor((clock.nowMs() + aheadMs) / 1_000) * 1_000;
      return { state: found === 'gone' ? { present: false } : headOf(found), observedAtMs: dateMs - durationMs };
    };
    const put = (): ReturnType<typeof nativeRecord> => {
      const object = storage.put(BUCKET, 'k');
      return nativeRecord('k', { eventTimeMs: clock.nowMs() + aheadMs, object });
    };
    await world.tell(put());
    await world.tell(put(), 60_000);
    await settled();
    expect(world.messages()).toEqual([]);
    expect(await world.gaps()).toEqual([]);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2', settled: true });
  },
);
