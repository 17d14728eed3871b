/**
 * A copy of the text that shares no memory with it. V8 keeps a part of a longer text, such as a key of an XML page, as a
 * reference into the whole: a part that is kept for longer keeps all of the page in memory.
 */
export function detached(text: string): string {
  const copy = Buffer.from(text, 'utf8').toString('utf8');
  // a half of a surrogate pair has no UTF-8 form; such a text must stay as it is
  return copy === text ? copy : text;
}
