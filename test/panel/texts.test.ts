/** What the sources of the panel say: texts from outside, and pages, each of which is in the tours of test/flow/panel-pages.test.ts. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { panelPages } from '../support/panel/pages.ts';

const SOURCES = globSync('src/panel/browser/*.{ts,tsx}').toSorted();
const source = SOURCES.map((file) => readFileSync(file, 'utf8')).join('\n');

describe('the panel', () => {
  it('Bug: shows every text from left to right, so that a key reads the same on each page', () => {
    expect(source.match(/<bdi(?! dir="ltr")/g)).toBeNull();
  });

  it('shows no text of an answer without Text, Key, Sentence, Lines or Advice', () => {
    // what comes from outside; fields with a closed set of values are not among it
    const outside =
      /\{(?:\w+\.)*(?:key|reason|user_email|email|fingerprint_text|sentence|requested_by|created_by|topic_arn|prefix|issuer|detail|body|what|why|fix|script|waiting_for|waitingFor)\}/;
    const lines = SOURCES.filter((file) => file.endsWith('.tsx')).flatMap((file) => readFileSync(file, 'utf8').split('\n'));
    expect(lines.filter((line) => outside.test(line) && !/<(?:Text|Key|Sentence|Lines|Advice)\b/.test(line) && !/=\{/.test(line))).toEqual(
      [],
    );
  });
});

it('the pages of the panel are in the list of the tours, each of them', () => {
  // the file itself needs a browser
  const names = [...readFileSync('src/panel/browser/place.ts', 'utf8').matchAll(/^ {2}(\w+): \{ title/gm)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(10);
  expect([...new Set(panelPages.map(({ name }) => name))].toSorted()).toEqual(names.toSorted());
});
