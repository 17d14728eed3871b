/** The operations on stores in memory. */
import { createProcesses } from '../../../src/observing/processes.ts';
import { createOperations } from '../../../src/registry/operations/operations.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import type { Store } from '../../../src/store/store.ts';
import { createCheckConnection } from '../../../src/connect/watch.ts';

type Subjects = Parameters<typeof createOperations>[0];
type Given = 'clock' | 'telemetry' | 'storage' | 'gaps' | 'connectBucket' | 'deadLetters' | 'connections';

/** Creates them, with what the test gives instead of what a process without an issuer has. */
export function operationsOn({
  store,
  ...given
}: Pick<Subjects, Given> & Partial<Subjects> & { readonly store: Pick<Store, 'objects' | 'state' | 'audit' | 'usage'> }): ReturnType<
  typeof createOperations
> {
  const parts = { ...store, ...given };
  return createOperations({
    jobs: createReindexJobs(parts),
    processes: createProcesses(parts),
    checkConnection: createCheckConnection(parts),
    keys: {
      liveKeys: { forget: () => undefined, forgetAll: () => undefined },
      rules: { allowed: [], adminEmails: [] },
    },
    compareIntervalMs: 604_800_000,
    everyoneReads: false,
    webhookUrl: (bucket) => `http://HOST:8083/events/${bucket}`,
    ...parts,
  });
}
