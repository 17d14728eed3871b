/** The actor of a request. */
import { hostname } from 'node:os';
import type { FastifyRequest } from 'fastify';
import type { Actor } from '../domain/identity/actor.ts';

/** While callers are not authenticated, each is a program on this machine; its user is not known. */
export function callerOf({ socket }: Pick<FastifyRequest, 'socket'>): Actor {
  const { remoteAddress } = socket;
  return { kind: 'local', host: hostname(), ...(remoteAddress !== undefined && { address: plainAddress(remoteAddress) }) };
}

/** A listener on IPv6 shows an IPv4 address as ::ffff:127.0.0.1. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
