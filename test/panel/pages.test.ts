/** Each page of the panel is in the tours of test/flow/panel-pages.test.ts. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { panelPages } from '../support/panel/pages.ts';

describe('the pages of the panel', () => {
  it('are in the list of the tours, each of them', () => {
    // the file itself needs a browser
    const names = [...readFileSync('src/panel/browser/place.ts', 'utf8').matchAll(/^ {2}(\w+): \{ title/gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(10);
    expect([...new Set(panelPages.map(({ name }) => name))].toSorted()).toEqual(names.toSorted());
  });
});
