/** What the panel shows of texts from outside. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

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
