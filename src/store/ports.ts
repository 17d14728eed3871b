/** The ports that most of the pipeline is made with. */
import type { AuditStore } from './audit.ts';
import type { Clock } from '../process/clock.ts';
import type { StateStore } from './state.ts';
import type { Telemetry } from '../process/telemetry.ts';

interface Ports {
  readonly state: StateStore;
  /** Where acts are recorded. */
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Those of them that something needs. */
export type WithPorts<Names extends keyof Ports> = Pick<Ports, Names>;
