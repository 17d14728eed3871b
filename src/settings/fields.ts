/** The kinds of values that settings can have. */
import { z } from 'zod';

/** A whole number from `min` to `max`. */
export const integer = (min: number, max: number, fallback: number) =>
  z
    .string()
    .trim()
    .regex(/^\d{1,12}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .default(fallback);

/** The mistakes of the rules that are broken. */
export const brokenOf = (...rules: readonly (readonly [isBroken: boolean, mistake: string])[]): readonly string[] =>
  rules.flatMap(([isBroken, mistake]) => (isBroken ? [mistake] : []));

const trueOrFalse = z.enum(['true', 'false'], { error: 'must be true or false' });

export const flag = (fallback: boolean) => trueOrFalse.default(fallback ? 'true' : 'false').transform((text) => text === 'true');

/** A flag whose default depends on other settings: undefined when it is not set. */
export const optionalFlag = trueOrFalse.optional().transform((text) => (text === undefined ? undefined : text === 'true'));

/** The items of a comma-separated list, without the empty ones. */
export const itemsOf = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

export const optionalPath = z.string().trim().min(1, 'must be a path').optional();

/** macOS takes no longer path for a socket, and Linux four bytes more. */
const SOCKET_BYTES_MAX = 103;

export const socketPath = optionalPath.refine((path = '') => Buffer.byteLength(path) <= SOCKET_BYTES_MAX, {
  error: `must have at most ${SOCKET_BYTES_MAX} bytes, because systems accept no longer socket path`,
});

const hostPort = z
  .string()
  .trim()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be HOST:PORT');

const addressIn = z
  .string()
  .transform((text) => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replaceAll(/[[\]]/g, ''), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65_535, 'must have a port of at most 65535');

/** HOST:PORT, with IPv6 addresses in brackets. With port 0 the system chooses a free port. */
export const address = (fallback: string) => hostPort.default(fallback).pipe(addressIn);

/** The same; undefined if it is not set. */
export const optionalAddress = hostPort.pipe(addressIn).optional();
