/**
 * Whether the role http can do what each of its requests needs of the index store: search the objects, and store audit records. The probe of
 * the store shows neither: a role of OpenSearch may lack one of these rights only, and one index may be blocked.
 */
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import type { AuditStore } from '../ports/audit.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import { checkOfFault, createLastLook, type CheckSource } from './readiness.ts';
import type { WithPorts } from '../ports/ports.ts';

interface AccessDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'count'>;
  readonly audit: Pick<AuditStore, 'probe'>;
}

export interface StoreAccess {
  /** Asks for both; to be repeated. Throws the fault of a store that does not answer, which says nothing about rights. */
  readonly look: (signal: AbortSignal) => Promise<void>;
  readonly checks: readonly CheckSource[];
}

/** No object has this key, so that each shard answers at once. */
const NO_OBJECT = { key: '' };

/** It names no bucket, since anyone who reaches the health listener can read it; the log does. */
const OF_ONE = 'the index of a bucket cannot be searched, so searches of all buckets fail; those of other buckets are answered';

export function createStoreAccess({ objects, audit, clock, telemetry }: AccessDependencies): StoreAccess {
  const lastLook = createLastLook(clock, 'what searches and acts need of the index store');
  let searching: Fault | undefined;
  let recording: Fault | undefined;

  async function refusal(operation: string, request: Promise<unknown>, signal: AbortSignal): Promise<Fault | undefined> {
    try {
      await request;
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(error);
      if (fault.code === 'index.unreachable' || fault.code === 'index.overloaded') throw error;
      telemetry.requestFailed(operation, error);
      return fault;
    }
  }

  return {
    async look(signal) {
      searching = await refusal('search all buckets', objects.count(NO_OBJECT, 0, signal), signal);
      recording = await refusal('store an audit record', audit.probe(clock.nowMs(), signal), signal);
      lastLook.looked();
    },
    checks: [
      {
        name: 'search',
        neededBy: ['http'],
        check() {
          const check = lastLook.unknown() ?? checkOfFault(searching);
          const isOfOne = check.status === 'failed' && searching !== undefined && circuitOf(searching.code) === 'index';
          return isOfOne ? { ...check, status: 'warning', detail: OF_ONE } : check;
        },
      },
      { name: 'audit', neededBy: ['http'], check: () => lastLook.unknown() ?? checkOfFault(recording) },
    ],
  };
}
