import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { memoryModes, openMemoryProbe, type MemoryProbe } from '../support/memory/reindex-memory.ts';

/** Five pages of listing in each of four parts: as many as there are in memory at once. */
const SMALL = 20_000;
const LARGE = 100_000;
/** The 80 further pages would take 28 MiB; what is in memory at the moment of a measurement differs by about 5. */
const GROWTH_MAX_BYTES = 12 * 1_048_576;

/** Where a tenth differs, all is kept for a moment that can be: what is listed, what is in the index, what was observed and is written. */
const modes = isLong ? memoryModes : (['drift of 10 %'] as const);

describe('what a re-index keeps in memory', () => {
  let probe: MemoryProbe;
  beforeAll(async () => {
    probe = await openMemoryProbe();
    // what is compiled and connected once belongs to no measurement
    for (const mode of modes) await probe.measure({ mode, objects: 2_000 });
  });
  afterAll(() => probe?.close());

  it.each(modes)('does not grow with the bucket: %s', async (mode) => {
    const small = await probe.measure({ mode, objects: SMALL });
    const large = await probe.measure({ mode, objects: LARGE });
    expect(large.differences).toBe(5 * small.differences);
    expect(large.peakBytes).toBeLessThan(small.peakBytes + GROWTH_MAX_BYTES);
  });
});
