import { describe, expect, it } from 'vitest';
import { shellWords, withoutCommands } from '../../src/base/commands.ts';

describe('a word for a shell', () => {
  it('ends no command in a text, and begins none', () => {
    const text = `run \`${shellWords('tally', 'reindex', 'photos', '--prefix', 'x`\ntally serve`tally du')}\``;
    expect(text).toBe(String.raw`run ${'`'}tally reindex photos --prefix $'x\x60\x0atally serve\x60tally du'${'`'}`);
    expect(withoutCommands(text)).toBe('run a Tally command');
  });
});
