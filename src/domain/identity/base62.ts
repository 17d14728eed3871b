/** Bytes as base62 digits: text without signs, which is selected by a double click and needs no escapes in URLs and shells. */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE = 62n;

/** The number that the bytes are (big-endian) as exactly `length` digits. Digits that do not fit are left out at the front. */
export function base62Of(bytes: Uint8Array, length: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`);
  let text = '';
  for (let digit = 0; digit < length; digit += 1) {
    text = `${DIGITS[Number(rest % BASE)] ?? ''}${text}`;
    rest /= BASE;
  }
  return text;
}
