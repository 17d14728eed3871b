/** Where commands find the registry of this machine, and where a process is it. */
import type { Settings } from './settings.ts';
import { isLoopback } from './identity.ts';

/** The socket of the service (config/systemd/tally.service), which root and the service's user may open. */
const SERVICE_SOCKET = '/run/tally/tally.sock';
/** Where a registry that listens on all addresses is reached from its own machine. */
const LOCAL_HOST = '127.0.0.1';

type Listening = Pick<Settings, 'TALLY_SOCKET' | 'TALLY_HTTP_ADDRESS'>;

/** The socket of a process of this user. The port tells several of them apart, as it does for their addresses. */
export function ownSocket({ TALLY_SOCKET: named, TALLY_HTTP_ADDRESS: { port } }: Listening, userId: number): string {
  return named ?? `/tmp/tally-${userId}-${port}.sock`;
}

/** Where a command of this user looks for a registry that nothing names: the sockets, the nearest first, and the address. */
export function localRegistry(settings: Listening, userId: number): { readonly sockets: readonly string[]; readonly url: string } {
  const { host, port } = settings.TALLY_HTTP_ADDRESS;
  const own = ownSocket(settings, userId);
  const at = isLoopback(host) ? host : LOCAL_HOST;
  return {
    sockets: settings.TALLY_SOCKET === undefined ? [own, SERVICE_SOCKET] : [own],
    url: `http://${at.includes(':') ? `[${at}]` : at}:${port}`,
  };
}
