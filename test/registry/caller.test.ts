import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { nameOfActor } from '../../src/base/actor.ts';
import { addressOf, createCallers, cookieIn } from '../../src/registry/caller.ts';
import { rows } from '../../src/registry/contract/contract.ts';
import { createServer } from '../../src/registry/server.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';

/** What is known of a request from this address to a listener behind these proxies. */
async function requestFrom(remoteAddress: string, forwarded?: string | string[], trustedProxies?: readonly string[]) {
  const app = createServer({ telemetry: createFakeTelemetry(), rows, trustedProxies });
  const actors = createCallers(undefined);
  app.get('/livez', (request, reply) => reply.send({ address: addressOf(request), actor: actors.actorOf(request) }));
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  const answer = await app.inject({ url: '/livez', remoteAddress, headers });
  return answer.json<{ readonly address: string; readonly actor: ReturnType<typeof actors.actorOf> }>();
}

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
  ['::ffff:abcd', '::ffff:abcd'],
])('a request from %s comes from %s, and from no known user', async (remoteAddress, address) => {
  const { actor } = await requestFrom(remoteAddress, '203.0.113.9');
  expect(actor).toEqual({ kind: 'local', host: hostname(), address });
  expect(nameOfActor(actor)).toBe(`anonymous@${hostname()}`);
});

describe('the address of a caller behind proxies', () => {
  const trusted = ['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8'];
  it.each<[peer: string, forwarded: string | string[] | undefined, address: string]>([
    ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['::ffff:10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['127.0.0.1', '198.51.100.7', '198.51.100.7'],
    ['fd00::1', '2001:db8::1', '2001:db8::1'],
    ['10.1.2.3', 'evil, 1.1.1.1, 198.51.100.7, 10.9.9.9', '198.51.100.7'],
    ['10.1.2.3', '198.51.100.7:4711', '198.51.100.7'],
    ['10.1.2.3', '[2001:db8::1]:4711', '2001:db8::1'],
    ['10.1.2.3', '10.4.4.4', '10.4.4.4'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.7, not an address, 10.9.9.9', '10.1.2.3'],
    // a peer that is not a proxy may write what it likes
    ['192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['127.0.0.2', '198.51.100.7', '127.0.0.2'],
  ])('a connection from %s with %j is from %s', async (peer, forwarded, address) => {
    expect((await requestFrom(peer, forwarded, trusted)).address).toBe(address);
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
