/** A URL ends at white space, and at a comma before the next URL. */
const ENDS = /(\s|,(?=https?:\/\/))/;

/**
 * The text with the passwords of its URLs masked: `https://user:***@host`. Everything before the last `@` of a URL counts
 * as user and password, because a password that was not percent-encoded may contain any character, even commas and slashes.
 */
export function withoutPasswords(text: string): string {
  return text.includes('://') ? text.split(ENDS).map(masked).join('') : text;
}

/** By positions, because a pattern for all of it would look for the `@` from every `://`, in a time that grows with the square of their number. */
function masked(part: string): string {
  const scheme = part.indexOf('://');
  const at = part.lastIndexOf('@');
  if (scheme === -1 || at < scheme) return part;
  const start = scheme + 3;
  const colon = part.indexOf(':', start);
  const user = colon === -1 ? '' : part.slice(start, colon);
  const isUser = colon !== -1 && colon < at && !/[@/]/.test(user);
  return `${part.slice(0, start)}${isUser ? `${user}:` : ''}***${part.slice(at)}`;
}
