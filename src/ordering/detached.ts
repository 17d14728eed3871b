/**
 * Copies a text so that it shares no memory with the original. V8 stores a part of a longer text, such as a key in an XML page,
 * as a reference into the whole, so keeping the part would keep the whole page in memory.
 */
export function detached(text: string): string {
  const copy = Buffer.from(text, 'utf8').toString('utf8');
  // half of a surrogate pair has no UTF-8 form, so such a text must stay as it is
  return copy === text ? copy : text;
}
