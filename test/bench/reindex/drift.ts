import type { Contents } from './listing/contents.ts';
import type { KeySpace } from './listing/key-space.ts';

/** What a drift did: what a reconcile with an index of before has to find. */
export interface Drift {
  readonly missing: number;
  readonly stale: number;
  readonly phantom: number;
}

/** Changes every n-th object of a bucket, in turn: removed (a phantom), put anew (stale), and a new one beside it (missing). The same in every process. */
export function applyDrift(contents: Contents, space: KeySpace, every: number): Drift {
  const drift = { missing: 0, stale: 0, phantom: 0 };
  for (let at = 0; at < space.count; at += every) {
    const key = space.keyAt(at);
    const kind = (at / every) % 3;
    if (kind === 0) {
      contents.remove(key);
      drift.phantom += 1;
    } else if (kind === 1) {
      contents.put(key);
      drift.stale += 1;
    } else {
      contents.put(`${key}~`);
      drift.missing += 1;
    }
  }
  return drift;
}
