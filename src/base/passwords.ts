/** The places where a URL ends: white space, and a comma before another URL. */
const ENDS = /(\s|,(?=https?:\/\/))/;

/**
 * Masks the passwords in a text's URLs: `https://user:***@host`. Everything before the last `@` of a URL counts as user and
 * password, because a password that was not percent-encoded may contain any character, even commas and slashes.
 */
export function withoutPasswords(text: string): string {
  return text.includes('://') ? text.split(ENDS).map(masked).join('') : text;
}

/** Compares positions instead of using one pattern: a pattern would search for the `@` from every `://`, which takes quadratic time. */
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
