/** What a search that prints everything keeps in memory. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Operations } from '../../src/registry/contract/contract.ts';
import { createFakeControl, objectDocument } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

const PAGES = 60;
const PAGE_ROWS = 500;
/** From one count of the pages that are kept to the next: a collection of all garbage takes longer than printing a page. */
const COUNTED_EACH = 10;
/** The page that is printed, and the one before it, which the last request may still hold. */
const KEPT_MAX = 2;

it('a search that prints everything keeps no page but the one that it prints, however many there are', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pages: WeakRef<object>[] = [];
  const kept: number[] = [];
  let bytes = 0;

  const searchObjects: Operations['searchObjects'] = async () => {
    // a WeakRef is not cleared within the turn that made it or read it
    await nextTurn();
    if (pages.length % COUNTED_EACH === COUNTED_EACH - 1) {
      collect();
      kept.push(pages.filter((page) => page.deref() !== undefined).length);
    }
    const items = Array.from({ length: PAGE_ROWS }, (_, at) => ({ ...objectDocument, key: `page ${pages.length}, object ${at}` }));
    pages.push(new WeakRef(items));
    return { items, ...(pages.length < PAGES && { next: `after-${pages.length}` }) };
  };
  const world = createCliWorld({
    openControl: async () => ({ ...createFakeControl().operations, searchObjects }),
    // a pipe: what is written is gone
    stdout: { write: (text: string) => (bytes += text.length) > 0 },
  });
  expect(await world.run('search --csv')).toMatchObject({ exitCode: 0, stderr: '' });
  expect(kept).toHaveLength(PAGES / COUNTED_EACH);
  expect(Math.max(...kept)).toBeLessThanOrEqual(KEPT_MAX);
  expect(bytes).toBeGreaterThan(PAGES * PAGE_ROWS * 20);
});
