/** The real circuits over a fake clock and telemetry. Their probe succeeds unless it is given. */
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import type { Telemetry } from '../../../src/pipeline/ports/telemetry.ts';
import { createCircuits, type Circuits } from '../../../src/pipeline/serving/circuits.ts';

interface TestCircuits {
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'circuitOpened' | 'circuitClosed' | 'warn'>;
  readonly probeCluster?: (signal: AbortSignal) => Promise<void>;
  readonly stopped?: AbortSignal;
}

/** Creates circuits that are all closed. */
export function createTestCircuits({
  clock,
  telemetry,
  probeCluster = async () => undefined,
  stopped = new AbortController().signal,
}: TestCircuits): Circuits {
  return createCircuits({ clock, telemetry, probeCluster, stopped });
}
