/** Masks secrets in texts that are shown or stored, because people paste secrets where an id or a name belongs. */

/** An API key (`qk_`), a session's token (`qs_`) or a browser session's (`qb_`), even mistyped or truncated. Fingerprints show at most four characters in a row, so they don't match. */
const SECRETS = /(q[ksb]_)[0-9A-Za-z]{16,}/g;

/** The text with each API key and token masked up to its prefix: `qk_***`. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(SECRETS, '$1***');
}

/** Whether a text contains an API key or a token, so that it must not be stored where it would be shown. */
export function hasSecret(text: string): boolean {
  return withoutSecrets(text) !== text;
}

/** A JSON value with each API key and token in its texts masked. */
export function valueWithoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (Array.isArray(value)) return value.map(valueWithoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [withoutSecrets(name), valueWithoutSecrets(each)]));
}
