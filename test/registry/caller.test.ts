import type { FastifyRequest } from 'fastify';
import type { Socket } from 'node:net';
import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { nameOfActor } from '../../src/base/actor.ts';
import { createCallers, createAddressOf, cookieIn } from '../../src/registry/caller.ts';

const requestFrom = (remoteAddress: string | undefined, forwarded?: string | string[]) =>
  ({ socket: { remoteAddress } as Socket, headers: { 'x-forwarded-for': forwarded } }) as unknown as FastifyRequest;
const callerAt = (remoteAddress: string | undefined) => createCallers(undefined).actorOf(requestFrom(remoteAddress, '203.0.113.9'));

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

describe('the address of a caller behind proxies', () => {
  const addressOf = createAddressOf(['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8']);
  it.each<[peer: string, forwarded: string | string[] | undefined, address: string]>([
    ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['::ffff:10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['127.0.0.1', '198.51.100.7', '198.51.100.7'],
    ['fd00::1', '2001:db8::1', '2001:db8::1'],
    ['10.1.2.3', 'evil, 1.1.1.1, 198.51.100.7, 10.9.9.9', '198.51.100.7'],
    ['10.1.2.3', ['1.1.1.1', '198.51.100.7'], '198.51.100.7'],
    ['10.1.2.3', '198.51.100.7:4711', '198.51.100.7'],
    ['10.1.2.3', '[2001:db8::1]:4711', '2001:db8::1'],
    ['10.1.2.3', '10.4.4.4', '10.4.4.4'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.7, not an address, 10.9.9.9', '10.9.9.9'],
    // a peer that is not a proxy may write what it likes
    ['192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['127.0.0.2', '198.51.100.7', '127.0.0.2'],
  ])('a connection from %s with %j is from %s', (peer, forwarded, address) => {
    expect(addressOf(requestFrom(peer, forwarded))).toBe(address);
  });
});

describe('cookies', () => {
  it.each([
    ['tally-80=a', 'a'],
    ['x=1; tally-80=a;y=2', 'a'],
    ['xtally-80=a', undefined],
    ['tally-80=a; tally-80=b', undefined],
    [undefined, undefined],
  ])('%j has the value %j', (header, value) => expect(cookieIn(header, 'tally-80')).toBe(value));
});
