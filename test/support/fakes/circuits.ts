/** The real circuits over a fake clock and telemetry. Their probe succeeds unless it is given. */
import type { Clock } from '../../../src/process/clock.ts';
import type { Telemetry } from '../../../src/process/telemetry.ts';
import { circuitMessages, createCircuits, type Circuits } from '../../../src/observing/circuits.ts';
import type { FakeTelemetry } from './ports.ts';

interface TestCircuits {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
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

/** The circuits that were reported to have opened or closed, in order, each by its level and its name. */
export function circuitsReported(telemetry: FakeTelemetry, what: 'opened' | 'closed'): readonly string[] {
  const lines = telemetry.recorded(what === 'opened' ? 'error' : 'info');
  return lines.flatMap(([message, { bucket, region } = {}]) => {
    const [level] = Object.entries(circuitMessages).find(([, messages]) => messages[what] === message) ?? [];
    const name = [bucket, region].find((each) => typeof each === 'string') ?? '';
    return level === undefined ? [] : `${level} ${name}`.trim();
  });
}
