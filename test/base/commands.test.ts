import { describe, expect, it } from 'vitest';
import { shellWord, shellWords, withoutCommands } from '../../src/base/commands.ts';

describe('a text for a program that must be given no command', () => {
  it.each([
    [
      'photos is not connected; `tally bucket list` shows the buckets that are',
      'photos is not connected; a command of Tally shows the buckets that are',
    ],
    ['run `tally jobs resume job-1`, or `tally reindex photos`', 'run a command of Tally, or a command of Tally'],
    ["first\ntally reindex 'my photos' --prefix 7\nthen", 'first\na command of Tally\nthen'],
    ['a tally of 3 photos and `tally`', 'a tally of 3 photos and `tally`'],
  ])('%j becomes %j', (text, left) => expect(withoutCommands(text)).toBe(left));
});

describe('a word for a shell', () => {
  it.each([
    ['a-b/c.d', 'a-b/c.d'],
    ['', "''"],
    ["it's $(a)", String.raw`'it'\''s $(a)'`],
    ['Käse.txt', "'Käse.txt'"],
    ["a\n'\\\u001b[2J\u0085", String.raw`$'a\x0a\'\\\x1b[2J\xc2\x85'`],
    ['a\u202eb', String.raw`$'a\xe2\x80\xaeb'`],
  ])('of %j is %s', (text, word) => expect(shellWord(text)).toBe(word));

  it('ends no command in a text, and begins none', () => {
    const text = `run \`${shellWords('tally', 'reindex', 'photos', '--prefix', 'x`\ntally serve`tally du')}\``;
    expect(text).toBe(String.raw`run ${'`'}tally reindex photos --prefix $'x\x60\x0atally serve\x60tally du'${'`'}`);
    expect(withoutCommands(text)).toBe('run a command of Tally');
  });
});
