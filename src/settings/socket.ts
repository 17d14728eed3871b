/** Where the operator's Unix socket is. */

/** The folder that systemd makes for the service (config/systemd/tally.service). */
const SERVICE_SOCKET = '/run/tally/tally.sock';

/** The socket of a process of this user where TALLY_SOCKET names none. */
export function ownSocket(userId: number): string {
  return `/tmp/tally-${userId}.sock`;
}

/** The sockets that a command of this user looks for, the nearest first. */
export function socketsOf({ TALLY_SOCKET: named }: { readonly TALLY_SOCKET?: string | undefined }, userId: number): readonly string[] {
  return named === undefined ? [ownSocket(userId), SERVICE_SOCKET] : [named];
}
