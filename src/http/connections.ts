/** Bounds the connections of a listener, so that those that say nothing never keep others out. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Closes the connection that has been idle longest when there are more than `connectionsMax`. A connection without a request
 * under way is idle, also one whose request has not arrived in full. If none is idle, the newest connection is closed.
 */
export function boundConnections(server: Server, connectionsMax: number): void {
  /** In the order in which they became idle. */
  const idle = new Set<Socket>();
  /** Requests under way; a client may send several before it reads an answer. */
  const busy = new Map<Socket, number>();

  server.on('connection', (socket: Socket) => {
    idle.add(socket);
    socket.once('close', () => {
      idle.delete(socket);
      busy.delete(socket);
    });
    // the new connection is the last of the idle ones
    const [oldest] = idle;
    if (idle.size + busy.size > connectionsMax) oldest?.destroy();
  });
  server.on('request', ({ socket }, response) => {
    if (socket.destroyed) return;
    idle.delete(socket);
    busy.set(socket, (busy.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const left = (busy.get(socket) ?? 0) - 1;
      if (left > 0) busy.set(socket, left);
      else busy.delete(socket);
      if (left === 0 && !socket.destroyed) idle.add(socket);
    });
  });
}
