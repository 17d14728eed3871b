/** Where the operator's Unix socket is. */

/** The socket of a process of this user where TALLY_SOCKET names none. */
export function ownSocket(userId: number): string {
  return `/tmp/tally-${userId}.sock`;
}
