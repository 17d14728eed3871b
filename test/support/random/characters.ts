/** Any character, half of a surrogate pair apart, and ASCII often. fast-check's own unit `binary` takes a second in each process that uses it. */
import * as fc from 'fast-check';

export const anyCharacter = fc
  .oneof(fc.integer({ max: 0x7f, min: 0 }), fc.integer({ max: 0xd7_ff, min: 0 }), fc.integer({ max: 0x10_ff_ff, min: 0xe0_00 }))
  .map((point) => String.fromCodePoint(point));
