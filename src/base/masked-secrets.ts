/** Masks secrets in texts that are shown or stored, because people sometimes paste a secret in place of an id or a name. */

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
