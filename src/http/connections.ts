/**
 * Bounds the connections of a listener, so that those that say little never keep others out. A connection is served from the
 * moment at which a request has arrived in full, body included, until its answer is complete; otherwise it waits. A client that
 * sends headers and no body, or that does not read what it asked for, waits as much as one that says nothing.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressGroupOf } from '../domain/identity/address-group.ts';

interface Connection {
  readonly network: string;
  /** The requests that are not over; a client may send several before it reads an answer. */
  readonly exchanges: Map<IncomingMessage, ServerResponse>;
}

/**
 * Closes a waiting connection when there are more than `connectionsMax`: of the network that has most of them, the one on which
 * nothing began or ended for longest. So a network takes the room of another only if it has fewer connections than that; behind
 * a reverse proxy, where all come from one address, the oldest goes. If none waits, the newest connection is closed.
 */
export function boundConnections(server: Server, connectionsMax: number): void {
  /** In the order in which something last began or ended on them. */
  const connections = new Map<Socket, Connection>();

  function moveToEnd(socket: Socket): void {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connections.delete(socket);
    connections.set(socket, connection);
  }

  function makeRoom(): void {
    const waiting = [...connections].filter(([, connection]) => !isServed(connection));
    const counts = new Map<string, number>();
    for (const [, { network }] of waiting) counts.set(network, (counts.get(network) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const [oldest] = waiting.find(([, { network }]) => counts.get(network) === most) ?? [];
    oldest?.destroy();
  }

  server.on('connection', (socket: Socket) => {
    connections.set(socket, { network: addressGroupOf(socket.remoteAddress ?? ''), exchanges: new Map() });
    socket.once('close', () => connections.delete(socket));
    if (connections.size > connectionsMax) makeRoom();
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    connections.get(socket)?.exchanges.set(request, response);
    moveToEnd(socket);
    response.once('close', () => {
      connections.get(socket)?.exchanges.delete(request);
      moveToEnd(socket);
    });
  });
}

function isServed({ exchanges }: Connection): boolean {
  return [...exchanges].some(([request, response]) => request.complete && !response.writableEnded);
}

/** Whether a body follows the headers. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
