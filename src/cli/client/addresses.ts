/** Addresses to which credentials may be sent: https, or http on this machine only. */
import { CommandError } from '../errors.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** No address needs more; it bounds what is stored and shown. */
const ADDRESS_LENGTH_MAX = 2_000;

/** Returns the address of a catalog without the slash at its end. Throws `address.invalid`. */
export function catalogAddress(text: string): string {
  const url = safeUrl(text, 'the address of the catalog');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** Returns the origin of a registry. `what` names the address in the error. Throws `address.invalid`. */
export function registryOrigin(text: string, what = 'the address of the registry'): string {
  const url = safeUrl(text, what);
  if (url.pathname !== '/') throw new CommandError('address.invalid', `${what} must be https://HOST without a path`);
  return url.origin;
}

/** Throws `address.invalid` for an address to which no secret may be sent: by https, or on this machine. `what` names it in the error. */
export function requireSafeAddress(text: string, what: string): void {
  safeUrl(text, what);
}

/** Whether requests to the address are not encrypted and do not leave this machine. */
export function isPlainLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && LOOPBACK.test(hostname);
}

function safeUrl(text: string, what: string): URL {
  const trimmed = text.trim();
  const url = trimmed.length > ADDRESS_LENGTH_MAX || !/^https?:\/\/[^\s\\?#]+$/i.test(trimmed) ? null : URL.parse(trimmed);
  // the text is not repeated, because it may contain a password
  if (url === null) throw new CommandError('address.invalid', `${what} must be an address such as https://catalog.example.com`);
  if (url.username !== '' || url.password !== '') throw new CommandError('address.invalid', `${what} must not contain a user or password`);
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) {
    throw new CommandError('address.invalid', `${what} must use https; http is allowed for this machine only`);
  }
  return url;
}
