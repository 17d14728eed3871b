import { describe, expect, it } from 'vitest';
import { createReportedKeys } from '../../../src/pipeline/gaps/reported-keys.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

const AT_MS = 1_800_000_000_000;

function setUp({ hasGap = true }: { readonly hasGap?: boolean } = {}) {
  const clock = createFakeClock();
  const stored: (readonly [string, number])[] = [];
  const keysReported = async (bucket: string, keysToldMs: number): Promise<boolean> => {
    stored.push([bucket, keysToldMs]);
    return hasGap;
  };
  return { clock, stored, told: createReportedKeys({ gaps: { keysReported }, clock }) };
}

describe('keys that are told one by one', () => {
  it.each([0, 1_999, 2_000, -2_000])('are noticed when a single delete bears the time of a bulk delete, %i ms apart', (apartMs) => {
    const before = setUp();
    before.told.single('photos', AT_MS + apartMs);
    expect(before.told.bulk('photos', AT_MS)).toBe(AT_MS);
    const after = setUp();
    expect(after.told.bulk('photos', AT_MS)).toBeUndefined();
    after.told.single('photos', AT_MS + apartMs);
    expect(after.stored).toEqual([['photos', AT_MS + apartMs]]);
    expect(after.told.bulk('photos', AT_MS + 60_000)).toBe(AT_MS + apartMs);
  });

  it.each([
    ['more than two seconds apart', 'photos', 3_000],
    ['in another bucket', 'music', 0],
  ])('are not what happened %s', (_, bucket, apartMs) => {
    const { told, stored } = setUp();
    told.single(bucket, AT_MS + apartMs);
    expect(told.bulk('photos', AT_MS)).toBeUndefined();
    told.single(bucket, AT_MS - apartMs);
    expect(stored).toEqual([]);
  });

  it('are stored once an hour, and again soon where no gap was there yet', async () => {
    for (const [hasGap, waitsMs] of [
      [true, 3_600_000],
      [false, 10_000],
    ] as const) {
      const { told, stored, clock } = setUp({ hasGap });
      told.bulk('photos', AT_MS);
      for (let key = 0; key < 100; key += 1) told.single('photos', AT_MS);
      await clock.advance(waitsMs - 1);
      told.single('photos', AT_MS);
      expect(stored).toHaveLength(1);
      await clock.advance(1);
      told.single('photos', AT_MS);
      expect(stored).toHaveLength(2);
    }
  });

  it('are remembered of a bounded number of seconds and buckets', () => {
    const { told } = setUp();
    told.bulk('photos', AT_MS);
    for (let second = 1; second <= 600; second += 1) told.bulk('photos', AT_MS + second * 10_000);
    told.single('photos', AT_MS);
    expect(told.bulk('photos', AT_MS + 9_000_000)).toBeUndefined();
    told.bulk('first', AT_MS);
    for (let bucket = 0; bucket < 1_000; bucket += 1) told.bulk(`bucket-${bucket}`, AT_MS);
    told.single('first', AT_MS);
    expect(told.bulk('first', AT_MS + 60_000)).toBeUndefined();
  });
});
