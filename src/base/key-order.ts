/** The order of keys in S3 and in both stores: by UTF-8 bytes, unlike JavaScript's string order. */

/** Compares two keys by their UTF-8 bytes, without encoding them. Returns a negative number, zero or a positive one. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const unitA = a.charCodeAt(index);
    const unitB = b.charCodeAt(index);
    if (unitA !== unitB) return rankOf(unitA) - rankOf(unitB);
  }
  return a.length - b.length;
}

/** Returns the rank of a UTF-16 unit. Surrogates encode characters above U+FFFF, so they rank after U+E000…U+FFFF. */
function rankOf(unit: number): number {
  if (unit < 0xd8_00) return unit;
  return unit < 0xe0_00 ? unit + 0x20_00 : unit - 0x8_00;
}

const CODE_POINT_MAX = 0x10_ff_ff;
const SURROGATES = { first: 0xd8_00, last: 0xdf_ff } as const;

/**
 * Returns the smallest string, by UTF-8 bytes (the order of code points), that is greater than every string with this prefix;
 * undefined if no string is.
 */
export function firstAfterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === CODE_POINT_MAX) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  const next = last + 1;
  // surrogates are not characters and have no UTF-8 form
  const inSurrogates = next >= SURROGATES.first && next <= SURROGATES.last;
  return String.fromCodePoint(...points, inSurrogates ? SURROGATES.last + 1 : next);
}
