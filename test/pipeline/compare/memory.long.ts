/** The test of memory-real.test.ts at the sizes that docs/performance.md states: `npm run test:memory`. */
import { describe, expect, it } from 'vitest';
import { memoryModes, openMemoryProbe } from '../../support/memory/reindex-memory.ts';

const SMALL = 100_000;
const LARGE = 2_000_000;
const GROWTH_MAX = 1.15;

describe('what a re-index of a large bucket keeps in memory', () => {
  it.each(memoryModes)(`is the same for ${LARGE} objects as for ${SMALL}: %s`, async (mode) => {
    const probe = await openMemoryProbe();
    try {
      await probe.measure({ mode, objects: 2_000 });
      const small = await probe.measure({ mode, objects: SMALL });
      const large = await probe.measure({ mode, objects: LARGE });
      console.log(`${mode}: ${mib(small.peakBytes)} MiB with ${SMALL} objects, ${mib(large.peakBytes)} MiB with ${LARGE}`);
      expect(large.peakBytes).toBeLessThan(GROWTH_MAX * small.peakBytes);
    } finally {
      await probe.close();
    }
  });
});

function mib(bytes: number): string {
  return (bytes / 1_048_576).toFixed(1);
}
