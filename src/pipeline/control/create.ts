/** Joins the control plane's verbs. What ingest uses as well (connecting, dead letters) is made once, outside. */
import type { ConnectBucket } from '../buckets/connect.ts';
import type { Control } from './control.ts';
import { createDisconnectBucket } from './disconnect-bucket.ts';
import { createExplain } from './explain.ts';
import { createListGaps } from '../gaps/reports.ts';
import { createListBuckets, requireBucket } from '../buckets/list.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { SendTask } from '../reindex-jobs/tasks.ts';
import { createReindexJobs } from './reindex-jobs.ts';
import { createSearch } from './search.ts';

interface ControlDependencies {
  readonly store: Pick<Store, 'objects' | 'state'>;
  readonly storage: ObjectStorage;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Absent: there is no work queue here. */
  readonly sendTask?: SendTask | undefined;
  readonly connectBucket: ConnectBucket;
  readonly deadLetters: Control['deadLetters'];
}

/** Creates the control plane. Its verbs throw RequestError for what the caller can correct, and faults. */
export function createControl(dependencies: ControlDependencies): Control {
  const { store, storage, clock, telemetry, sendTask, connectBucket, deadLetters } = dependencies;
  const { objects, state } = store;
  const jobs = createReindexJobs({ state, clock, telemetry, sendTask });
  return {
    search: createSearch({ objects }),
    explain: createExplain({ state, objects, storage }),
    buckets: {
      list: createListBuckets({ state }),
      get: (bucket, signal) => requireBucket(state, bucket, signal),
      add: (request, by, signal) => connectBucket.connect(request, by, signal),
      remove: createDisconnectBucket({ state, objects, jobs }),
    },
    gaps: createListGaps({ state }),
    jobs,
    deadLetters,
  };
}
