import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A port of 127.0.0.1 that nothing has now, for what must know its port before it starts. */
export async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return port;
}
