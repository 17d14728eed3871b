/** What counts as one address when failures are counted. */

/** The longest text of an address that is kept. An IPv6 address has at most 45 characters. */
const TEXT_LENGTH_MAX = 64;
const GROUPS = 8;
/** The first 64 bits: one network, and often one machine, has all addresses of a /64. */
const GROUPS_KEPT = 4;

/** The address itself for IPv4, also where it is mapped into IPv6, and its /64 for IPv6. Any other text stays as it is. */
export function addressGroupOf(address: string): string {
  const text = (address.slice(0, TEXT_LENGTH_MAX).split('%')[0] ?? '').toLowerCase();
  const groups = text.includes(':') ? groupsOf(text) : undefined;
  if (groups === undefined) return text;
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [groups[6] ?? 0, groups[7] ?? 0].flatMap((group) => [group >> 8, group & 0xff]).join('.');
  return `${groups
    .slice(0, GROUPS_KEPT)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of an IPv6 address; undefined if the text is not one. */
function groupsOf(text: string): readonly number[] | undefined {
  const parts = text.split('::');
  if (parts.length > 2) return undefined;
  const [head, tail] = parts.map(partOf);
  if (head === undefined) return undefined;
  if (parts.length === 1) return head.length === GROUPS ? head : undefined;
  if (tail === undefined || head.length + tail.length >= GROUPS) return undefined;
  return [...head, ...Array.from({ length: GROUPS - head.length - tail.length }, () => 0), ...tail];
}

/** The groups between two colons each. The last may be an IPv4 address, which is two groups. */
function partOf(text: string): readonly number[] | undefined {
  if (text === '') return [];
  const words = text.split(':');
  const groups = words.flatMap((word, place) => {
    if (/^[0-9a-f]{1,4}$/.test(word)) return [Number.parseInt(word, 16)];
    const bytes = place === words.length - 1 ? word.split('.').map(byteOf) : [];
    const [a = -1, b = -1, c = -1, d = -1] = bytes;
    return bytes.length === 4 && Math.min(a, b, c, d) >= 0 ? [a * 256 + b, c * 256 + d] : [-1];
  });
  return groups.includes(-1) ? undefined : groups;
}

function byteOf(text: string): number {
  return /^\d{1,3}$/.test(text) && Number(text) <= 255 ? Number(text) : -1;
}
