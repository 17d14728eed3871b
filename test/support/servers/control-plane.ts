/** A control plane that listens on a port of its own: ready, with one metric, and without identity. */
import { createControlPlane } from '../../../src/registry/control-plane.ts';
import { createFakeTelemetry } from '../fakes/ports.ts';

type Parts = Parameters<typeof createControlPlane>[0];

/** `parts` replace what it has. */
export async function listenControlPlane(parts: Pick<Parts, 'operations'> & Partial<Parts>) {
  const listener = createControlPlane({
    address: { host: '127.0.0.1', port: 0 },
    readiness: { read: () => ({ ready: true, roles: { http: { ready: true } }, checks: { index: { status: 'ok' } } }) },
    metrics: { metricsText: async () => 'tally_up 1\n', contentType: 'text/plain; version=0.0.4; charset=utf-8' },
    telemetry: createFakeTelemetry(),
    version: '1.2.3',
    loadPanel: async () => new Map(),
    ownAccess: async () => ({ reads: ['*'] }),
    ...parts,
  });
  const { port } = await listener.listen();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () => listener.close(),
    listenAtSocket: (path: string) => listener.listenAtSocket(path),
  };
}

export type ControlPlane = Awaited<ReturnType<typeof listenControlPlane>>;
