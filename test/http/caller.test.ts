import type { Socket } from 'node:net';
import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { nameOfActor } from '../../src/domain/identity/actor.ts';
import { callerOf } from '../../src/http/caller.ts';

const callerAt = (remoteAddress: string | undefined) => callerOf({ socket: { remoteAddress } as Socket });

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
  ['::ffff:abcd', '::ffff:abcd'],
])('a request from %s comes from %s, and from no known user', (remoteAddress, address) => {
  const actor = callerAt(remoteAddress);
  expect(actor).toEqual({ kind: 'local', host: hostname(), address });
  expect(nameOfActor(actor)).toBe(`anonymous@${hostname()}`);
});

it('a request whose connection has ended has no address', () => {
  expect(callerAt(undefined)).toEqual({ kind: 'local', host: hostname() });
});
