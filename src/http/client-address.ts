/** Where a request came from, also through reverse proxies. */
import { BlockList, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** The address of the caller; undefined if the connection has ended. */
export type AddressOf = (request: Pick<FastifyRequest, 'socket' | 'headers'>) => string | undefined;

/**
 * Creates the function. `trusted`: the proxies, as CIDRs. If the connection comes from one of them, the caller is the right-most
 * address of X-Forwarded-For that is not one of them: what stands further left was written by the caller, and may be anything.
 */
export function createAddressOf(trusted: readonly string[]): AddressOf {
  const proxies = new BlockList();
  for (const cidr of trusted) {
    const [address = '', length = ''] = cidr.split('/');
    proxies.addSubnet(address, Number(length), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  const isProxy = (address: string): boolean => proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  return function addressOf({ socket, headers }) {
    const peer = socket.remoteAddress === undefined ? undefined : plainAddress(socket.remoteAddress);
    if (peer === undefined || !isProxy(peer)) return peer;
    let caller = peer;
    for (const hop of hopsOf(headers['x-forwarded-for']).toReversed()) {
      // a proxy that we trust wrote it, so a text that is not an address is a mistake of its settings: the proxy is known at least
      if (isIP(hop) === 0) return caller;
      caller = hop;
      if (!isProxy(hop)) return hop;
    }
    return caller;
  };
}

/** Several headers count as one list (RFC 9110, 5.3). */
function hopsOf(header: string | readonly string[] | undefined): readonly string[] {
  const text = typeof header === 'string' ? header : (header ?? []).join(',');
  return text.split(',').map((hop) => plainAddress(withoutPort(hop.trim())));
}

/** Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop)?.[1] ?? hop;
}

/** A listener on IPv6 shows an IPv4 address as ::ffff:127.0.0.1. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
