import { describe, expect, it } from 'vitest';
import { withoutCommands } from '../../src/domain/commands.ts';

describe('a text for a program that must be given no command', () => {
  it.each([
    [
      'photos is not connected; `tally bucket list` shows the buckets that are',
      'photos is not connected; a command of Tally shows the buckets that are',
    ],
    ['run `tally jobs resume job-1`, or `tally reindex photos`', 'run a command of Tally, or a command of Tally'],
    ["first\ntally reindex 'my photos' --allow-deletes 7\nthen", 'first\na command of Tally\nthen'],
    ['a tally of 3 photos and `tally`', 'a tally of 3 photos and `tally`'],
  ])('%j becomes %j', (text, left) => expect(withoutCommands(text)).toBe(left));
});
