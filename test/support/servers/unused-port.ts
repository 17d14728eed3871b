import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const FIRST_PORT = 20_000;
/** So many ports in a row are not in use by chance. */
const ATTEMPTS_MAX = 100;

const given = new Set<number>();

/**
 * A port of 127.0.0.1 that nothing has now, for what must know its port before it starts. It is below those that the system
 * gives to connections and to listeners on port 0, one of which could have it by then.
 */
export async function unusedPort(): Promise<number> {
  const endPort = firstOfSystem();
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(FIRST_PORT, endPort);
    if (given.has(port) || !(await isUnused(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no port between ${FIRST_PORT} and ${endPort} could be listened on`);
}

/** The first port that the system chooses by itself. */
function firstOfSystem(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {
    // where it is not Linux, the range begins at 49152
    return 32_768;
  }
}

async function isUnused(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  await new Promise((resolve) => void server.close(resolve));
  return true;
}
