/** Where the process listens: its addresses, and the operator's socket. */
import type { ControlPlane } from '../registry/control-plane.ts';
import { urlOf, type Address, type Listener } from '../registry/server.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { type Settings, ownSocket } from '../settings/settings.ts';

/** The addresses on which the process listens, with the actual ports even if the settings leave them to the system. */
export interface ServedAt {
  readonly healthUrl: string;
  /** Absent: the process does not have the role http. */
  readonly controlUrl?: string;
  /** The webhook receiver. Absent: the process has none. */
  readonly eventsUrl?: string;
  /** The path of the operator's socket. Absent: the process does not have the role http, or another process is listening there. */
  readonly socket?: string;
}

/** Resolves to the URL of the address that was bound. An address that cannot be bound is a mistake in the settings. */
export async function listenAt(listener: Listener, setting: string, { host, port }: Address): Promise<string> {
  try {
    return urlOf(await listener.listen());
  } catch (error) {
    const reason =
      error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
        ? 'is already in use'
        : `cannot be bound (${reasonOf(error)})`;
    throw new StartError(`${setting}: ${host}:${port} ${reason}: set it to another HOST:PORT`);
  }
}

/** Opens the operator's socket. Without it everything else works, so only a path that the settings name must be free. */
export async function listenAtSocket(
  controlPlane: ControlPlane,
  settings: Settings,
  telemetry: Telemetry,
): Promise<Pick<ServedAt, 'socket'>> {
  const socket = ownSocket(settings, process.getuid?.() ?? 0);
  try {
    await controlPlane.listenAtSocket(socket);
    return { socket };
  } catch (error) {
    const reason = `${socket} cannot be bound (${reasonOf(error)})`;
    if (settings.TALLY_SOCKET !== undefined) throw new StartError(`TALLY_SOCKET: ${reason}: set it to another path`);
    telemetry.warn('the operator has no socket', { reason, advice: 'Set TALLY_SOCKET to a path for this process.' });
    return {};
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
