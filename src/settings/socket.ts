/** Where commands find the registry of this machine, and where a process is it. */
import type { Settings } from './settings.ts';
import { isLoopback } from './identity.ts';

/** The socket of the service (config/systemd/tally.service), which root and the service's user may open. */
const SERVICE_SOCKET = '/run/tally/tally.sock';
/** Port and host of TALLY_HTTP_ADDRESS where it is not loopback: the address is then a proxy's, and the socket the operator's. */
const LOCAL_HOST = '127.0.0.1';

/** The socket of a process of this user where TALLY_SOCKET names none. */
export function ownSocket(userId: number): string {
  return `/tmp/tally-${userId}.sock`;
}

/** Where a command of this user looks for a registry that nothing names: the sockets, the nearest first, and the address. */
export function localRegistry(
  { TALLY_SOCKET: named, TALLY_HTTP_ADDRESS: { host, port } }: Settings,
  userId: number,
): { readonly sockets: readonly string[]; readonly url: string } {
  const at = isLoopback(host) ? host : LOCAL_HOST;
  return {
    sockets: named === undefined ? [ownSocket(userId), SERVICE_SOCKET] : [named],
    url: `http://${at.includes(':') ? `[${at}]` : at}:${port}`,
  };
}
