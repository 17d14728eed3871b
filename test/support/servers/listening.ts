/** Servers on loopback: where they listen, and their end. */
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Resolves with the port. Without one the system chooses it. */
export async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Ends its connections as well. Nothing is left to do for one that is closed. */
export async function closeServer(server: Pick<HttpServer, 'closeAllConnections' | 'close'>): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => void server.close(resolve));
}
