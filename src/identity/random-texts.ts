/** Random texts for identity, which the pure rules receive as values. */
import { randomBytes } from 'node:crypto';
import { createSecret } from './api-key.rules.ts';
import { base62Of, NAME_BYTES, NAME_DIGITS, SECRET_BYTES, SECRET_DIGITS } from './tokens.rules.ts';

/** A new random name, 22 digits. */
export function randomName(): string {
  return base62Of(randomBytes(NAME_BYTES), NAME_DIGITS);
}

/** A new random secret, 43 digits. */
export function randomSecret(): string {
  return base62Of(randomBytes(SECRET_BYTES), SECRET_DIGITS);
}

/** The secret of a new API key. */
export function newKeySecret(): string {
  return createSecret(randomBytes(SECRET_BYTES));
}
