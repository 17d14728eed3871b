/**
 * Recognises bulk deletes of which the audit trail reports each key as well: the events of those single deletes have the request
 * ID of the DeleteObjects call. Such objects are already removed from the index, so the gap of that call may wait for a day. The
 * memory covers this process only: a call whose single deletes reach other workers only is repaired at once, like any other.
 */
import { LRUCache } from 'lru-cache';
import type { BulkDelete } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { GapReports } from './reports.ts';

/** Single deletes that are remembered until their call arrives, by request ID. The events of one call arrive within minutes of each other. */
const SINGLES_MAX = 20_000;
/** How many calls are remembered. */
const CALLS_MAX = 1_000;
/** The next attempt after the store failed. */
const RETRY_INTERVAL_MS = 10_000;

export interface ReportedKeys {
  /** Notes a bulk delete. Returns whether its keys are reported one by one, as far as is known yet. */
  bulk(call: BulkDelete): boolean;
  /** The gap of the bulk delete is stored. What a single delete has proved since bulk() is stored on it in the background. */
  bulkStored(call: BulkDelete): void;
  /** Notes the delete of one key. What this proves about an open gap is stored in the background. */
  single(bucket: string, requestId: string): void;
}

interface Call extends BulkDelete {
  isGapStored: boolean;
  /** A single delete of the call was seen. */
  isReported: boolean;
  /** When the proof may be stored next, by the monotonic clock; Infinity: it is stored. */
  storeAtMs: number;
}

/** Creates an empty memory. */
export function createReportedKeys(dependencies: { readonly gaps: Pick<GapReports, 'keysReported'>; readonly clock: Clock }): ReportedKeys {
  const { gaps, clock } = dependencies;
  const calls = new LRUCache<string, Call>({ max: CALLS_MAX });
  const singles = new LRUCache<string, true>({ max: SINGLES_MAX });

  function callOf(bulk: BulkDelete): Call {
    const name = nameOf(bulk);
    const known = calls.get(name);
    if (known !== undefined) return known;
    const call: Call = { ...bulk, isGapStored: false, isReported: singles.delete(name), storeAtMs: 0 };
    calls.set(name, call);
    return call;
  }

  async function store(call: Call): Promise<void> {
    call.storeAtMs = clock.monotonicMs() + RETRY_INTERVAL_MS;
    const isStored = await gaps.keysReported(call).then(
      () => true,
      () => false,
    );
    if (isStored) call.storeAtMs = Infinity;
  }

  function storeProof(call: Call): void {
    if (call.isGapStored && call.isReported && clock.monotonicMs() >= call.storeAtMs) void store(call);
  }

  return {
    bulk: (call) => callOf(call).isReported,
    bulkStored(stored) {
      const call = callOf(stored);
      call.isGapStored = true;
      storeProof(call);
    },
    single(bucket, requestId) {
      const name = nameOf({ bucket, requestId });
      const call = calls.get(name);
      if (call === undefined) {
        singles.set(name, true);
        return;
      }
      call.isReported = true;
      storeProof(call);
    },
  };
}

function nameOf({ bucket, requestId }: Pick<BulkDelete, 'bucket' | 'requestId'>): string {
  // neither has a space
  return `${bucket} ${requestId}`;
}
