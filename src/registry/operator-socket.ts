/**
 * The Unix socket beside the control plane's address. The file's mode is the login: only its owner may open it, and
 * that caller is the operator.
 */
import { lstat, mkdir, rm, stat } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';

/** More than one person's commands need at a time. */
const CONNECTIONS_MAX = 32;
/** A daemon on this machine accepts a connection at once even while it is busy, because the kernel does. */
const CONNECT_MAX_MS = 1_000;
const OTHERS_WRITE = 0o002;

export interface OperatorSocket {
  /** Whether a connection came through the socket. */
  has(socket: Socket): boolean;
  /**
   * Begins to listen at the path with the mode 0600, in the place of a socket that a killed process left. Rejects if another
   * process listens there, and with the file system's error.
   */
  listen(path: string, handle: RequestListener): Promise<void>;
  /** Stops listening, ends all connections and removes the file. */
  close(): Promise<void>;
}

/** Creates the socket; nothing listens yet. */
export function createOperatorSocket(): OperatorSocket {
  const connections = new WeakSet<Socket>();
  let server: Server | undefined;

  return {
    has: (socket) => connections.has(socket),
    async listen(path, handle) {
      await makeRoomAt(path);
      const listening = createServer(handle);
      listening.maxConnections = CONNECTIONS_MAX;
      listening.on('connection', (socket: Socket) => connections.add(socket));
      // Node binds before it returns, so no other user can connect in between
      const before = process.umask(0o177);
      const isListening = new Promise<void>((resolve, reject) => listening.once('error', reject).listen({ path }, resolve));
      process.umask(before);
      await isListening;
      server = listening;
    },
    async close() {
      const closing = server;
      if (closing === undefined) return;
      await new Promise<void>((resolve) => {
        closing.close(() => resolve());
        closing.closeAllConnections();
      });
    },
  };
}

async function makeRoomAt(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error('it is not a socket');
  if (await isAnswered(path)) throw new Error('another process is listening there');
  await rm(path, { force: true });
}

/** Whether a process accepts connections at the socket. In a folder that others may write to, the socket must be this user's or root's. */
export async function isAnswered(path: string, userId = process.getuid?.()): Promise<boolean> {
  const [folder, file] = await Promise.all([stat(dirname(path)), lstat(path)].map((found) => found.catch(() => undefined)));
  const isSafe = folder !== undefined && (folder.mode & OTHERS_WRITE) === 0;
  if (!isSafe && file !== undefined && file.uid !== 0 && file.uid !== userId) return false;
  return new Promise((resolve) => {
    const socket = connect({ path, timeout: CONNECT_MAX_MS });
    const end = (answered: boolean) => (): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}
