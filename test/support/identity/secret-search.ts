/** Looks for secrets in everything that was written. */

/** Secrets by their names. */
export type Secrets = Readonly<Record<string, string>>;
/** What was written, by the place where it was found. */
export type Written = Readonly<Record<string, string>>;

/** Secrets of fewer characters would be found by chance. */
const LENGTH_MIN = 20;

/** Returns `SECRET in PLACE` for each secret in each place, as it is, in a URL, in JSON, in base64, and the half of it that is random. */
export function secretsIn(written: Written, secrets: Secrets): readonly string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    if (secret.length < LENGTH_MIN) throw new Error(`${name} is too short for a search: ${secret.length} characters`);
    const forms = formsOf(secret);
    return Object.entries(written).flatMap(([place, text]) => (forms.some((form) => text.includes(form)) ? [`${name} in ${place}`] : []));
  });
}

function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const half = secret.slice(-Math.max(LENGTH_MIN, Math.floor(secret.length / 2)));
  return [
    secret,
    half,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    bytes.toString('base64').slice(0, -4),
    bytes.toString('hex'),
  ];
}
