/** What counts as one address when failures are counted. */

/** How much of an address's text is kept. An IPv6 address has at most 45 characters. */
const TEXT_LENGTH_MAX = 64;
const GROUPS = 8;
/** The first 64 bits: one network, and often one machine, has all addresses of a /64. */
const GROUPS_KEPT = 4;

/** The address itself for IPv4, even if mapped into IPv6, and the /64 for IPv6. Any other text stays as it is. */
export function addressGroupOf(address: string): string {
  const text = (address.slice(0, TEXT_LENGTH_MAX).split('%')[0] ?? '').toLowerCase();
  const groups = /^[0-9a-f:.]*:[0-9a-f:.]*$/.test(text) ? groupsOf(text) : undefined;
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
  // as the host of a URL it gets its normal form, in which no part is an IPv4 address
  const [head, tail] = (URL.parse(`http://[${text}]`)?.hostname.slice(1, -1).split('::') ?? []).map((part) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)),
  );
  if (head === undefined || tail === undefined) return head;
  return [...head, ...Array.from({ length: GROUPS - head.length - tail.length }, () => 0), ...tail];
}
