/** Each status of a bucket and each kind of gap stands on the page that explains them, in the order of the code. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { bucketStates } from '../../src/domain/bucket-status.ts';
import { markKinds } from '../../src/domain/gaps/dirty.ts';

const read = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8');

/** The words in the first cells of the rows of a section. */
function rowsOf(path: string, heading: string): readonly string[] {
  const [, section = ''] = new RegExp(`^#+ ${heading}\n([^]*?)(?=^#)`, 'm').exec(read(path)) ?? [];
  return [...section.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
  );
}

it('of a bucket are all in the table of its status', () => {
  expect(rowsOf('reference/sources.md', 'Status')).toEqual(bucketStates);
});

it('of gaps are all in the table of gaps', () => {
  expect(rowsOf('operate/reindex-gaps.md', 'Gaps').toSorted()).toEqual(expect.arrayContaining([...markKinds]));
});
