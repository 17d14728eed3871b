/** Masks secrets in texts that are shown or stored, because people sometimes paste a secret in place of an id or a name, and passwords are in URLs. */

/** An API key (`qk_`), a session's token (`qs_`), a browser session's (`qb_`) or a webhook's (`qe_`), even mistyped or truncated. Fingerprints show at most four characters in a row, so they don't match. */
const SECRETS = /(q[ksbe]_)[0-9A-Za-z]{16,}/g;

/** Masks each API key and token in a text, except for its prefix: `qk_***`. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(SECRETS, '$1***');
}

/** Whether a text contains an API key or a token. Such a text must not be stored anywhere from where it is shown. */
export function hasSecret(text: string): boolean {
  return withoutSecrets(text) !== text;
}

/** Masks each API key and token in the texts of a JSON value. */
export function valueWithoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (Array.isArray(value)) return value.map(valueWithoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [withoutSecrets(name), valueWithoutSecrets(each)]));
}

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
