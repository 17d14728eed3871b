import { describe, expect, it } from 'vitest';
import { shownCounts } from '../../src/records/counts.ts';
import { createTurnProgress } from '../../src/repair/turn-progress.ts';
import type { Ending } from '../../src/repair/settle-slice.ts';

const state = { present: true, etag: 'e', sizeBytes: 1 } as const;
const missing: Ending = { key: 'd', kind: 'missing', fields: [], isListed: true, effect: 'document' };
const deleted: Ending = { key: 'e', kind: 'phantom', fields: [], isListed: false, effect: 'tombstone' };

describe('the counts of a turn', () => {
  it('contain each write at once, and once: with its slice, or where it is compared again and equal', () => {
    for (const isAgain of [false, true]) {
      const progress = createTurnProgress('');
      progress.written([missing, deleted]);
      const ahead = progress.sofar();
      expect(ahead).toMatchObject({ cursor: '', readsFirst: true, counts: { listed: 0, missing: 1, written: 1, tombstones: 1 } });
      expect(shownCounts(ahead.counts).equal).toBe(0);
      const sides = { listed: [{ key: 'd', state }], through: 'e' };
      if (isAgain) progress.commit({ ...sides, scanned: [{ key: 'd' }] }, []);
      else progress.commit({ ...sides, scanned: [{ key: 'e' }] }, [missing, deleted]);
      const { cursor, readsFirst = false, counts, examples } = progress.sofar();
      expect({ cursor, readsFirst }).toEqual({ cursor: 'e', readsFirst: isAgain });
      expect(shownCounts(counts)).toMatchObject({ listed: 1, equal: 0, missing: 1, written: 1, phantom: 1, tombstones: 1 });
      expect(examples).toEqual({ missing: [{ key: 'd' }], phantom: [{ key: 'e' }] });
    }
  });
});
