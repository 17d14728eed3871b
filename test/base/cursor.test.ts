import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor } from '../../src/base/cursor.ts';
import { anyCharacter } from '../support/random/characters.ts';

describe('cursors', () => {
  it('bring back the position they were made of, whatever a key holds', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter }), { maxLength: 4 }), (position) => {
        expect(decodeCursor(encodeCursor(position), position.length)).toEqual(position);
      }),
    );
  });

  it('are taken for the longest bucket and key, each byte of which JSON escapes', () => {
    const position = ['b'.repeat(255), '\u0001'.repeat(1_024)];
    expect(decodeCursor(encodeCursor(position), 2)).toEqual(position);
  });

  it.each([
    ['nothing', ''],
    ['no base64', '***'],
    ['no JSON', Buffer.from('{').toString('base64url')],
    ['no array', Buffer.from('{"length":2}').toString('base64url')],
    ['no text', Buffer.from('[1,2]').toString('base64url')],
    ['another number of parts', encodeCursor(['a'])],
    ['more than any position needs', 'A'.repeat(20_000)],
  ])('are refused as request.invalid when they are %s', (_, cursor) => {
    expect(() => decodeCursor(cursor, 2)).toThrow(expect.objectContaining({ code: 'request.invalid' }));
  });
});
