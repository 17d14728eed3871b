import { describe, expect, it } from 'vitest';
import { createTurnProgress } from '../../../src/pipeline/compare/turn-progress.ts';
import type { Ending } from '../../../src/pipeline/compare/settle-slice.ts';

const state = { present: true, etag: 'e', sizeBytes: 1 } as const;

describe('the counts of a turn from which deletions were held back', () => {
  it('contain each write once, also one behind the key at which the turn was cut', () => {
    const progress = createTurnProgress({ after: '' }, { reserve: async (count) => count });
    const held: Ending = { key: 'a', kind: 'phantom', fields: [], effect: 'held' };
    const first = progress.openSlice();
    progress.commit({ listed: [], scanned: [{ key: 'a' }], equal: 0, through: 'a' }, first, { kind: 'ended', endings: [held] });
    const second = progress.openSlice();
    const ending: Ending = { key: 'd', kind: 'missing', fields: [], effect: 'document' };
    second.written([{ finding: { key: 'd', state, kind: 'missing', fields: [], isInexact: false }, ending }]);
    const slice = { listed: [{ key: 'd', state }], scanned: [{ key: 'b' }], equal: 0, through: 'd' };
    progress.commit(slice, second, { kind: 'braked', beforeKey: 'b', waiting: 1, endings: [] });
    const { counts, heldBack } = progress.result();
    expect(counts).toMatchObject({ missing: 1, written: 1, equal: -1, held: 1 });
    expect(heldBack).toMatchObject({ cursor: '', counts: { missing: 1, written: 1, equal: -1, held: 0 } });
  });
});
