import { expect, it } from 'vitest';
import { addressOf, cookieIn } from '../../src/registry/caller.ts';
import { rows } from '../../src/registry/contract/contract.ts';
import { createServer } from '../../src/registry/server.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';

/** The address of a request from this peer to a listener behind these proxies. */
async function addressFrom(remoteAddress: string, forwarded?: string | string[], trustedProxies?: readonly string[]) {
  const app = createServer({ telemetry: createFakeTelemetry(), rows, trustedProxies });
  app.get('/livez', (request, reply) => reply.send({ address: addressOf(request) }));
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  return (await app.inject({ url: '/livez', remoteAddress, headers })).json<{ readonly address: string }>().address;
}

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
  ['::ffff:abcd', undefined, '::ffff:abcd'],
  ['10.1.2.3', '', '10.1.2.3'],
  ['10.1.2.3', 'unknown', '10.1.2.3'],
  ['10.1.2.3', '198.51.100.7, not an address, 10.9.9.9', '10.1.2.3'],
  // a peer that is not a proxy may write what it likes
  ['192.0.2.1', '198.51.100.7', '192.0.2.1'],
  ['127.0.0.2', '198.51.100.7', '127.0.0.2'],
])('behind proxies a connection from %s with %j is from %s', async (peer, forwarded, address) => {
  expect(await addressFrom(peer, forwarded, ['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8'])).toBe(address);
});

it('a forwarded address is not believed where no proxy is', async () => {
  expect(await addressFrom('::ffff:127.0.0.1', '203.0.113.9')).toBe('127.0.0.1');
});

it.each([
  ['tally-80=a', 'a'],
  ['x=1; tally-80=a;y=2', 'a'],
  ['xtally-80=a', undefined],
  ['tally-80=a; tally-80=b', undefined],
  [undefined, undefined],
])('cookies: %j has the value %j', (header, value) => expect(cookieIn(header, 'tally-80')).toBe(value));
