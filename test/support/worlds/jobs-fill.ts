/** What tests of re-index jobs fill their bucket with, and how slowly it is listed. */
import type { JobsWorld } from './jobs.ts';

interface Shares {
  /** Objects that the index does not know. */
  readonly bucket?: number;
  readonly both?: number;
  /** Documents without an object. */
  readonly index?: number;
}

/** Numbered keys of each kind. */
export async function fill(world: JobsWorld, shares: Shares, prefix = ''): Promise<void> {
  for (const where of ['bucket', 'both', 'index'] as const) {
    for (let number = 0; number < (shares[where] ?? 0); number += 1) {
      await world.has(`${prefix}${where}-${String(number).padStart(5, '0')}`, where);
    }
  }
}

/** Pages that take so long that a job is seen on its way. */
export function slowPages(world: JobsWorld, pageMs = 1_000, pageSize = 20): void {
  world.s3.pageSize = pageSize;
  world.s3.onPage = () => world.clock.sleep(pageMs);
}
