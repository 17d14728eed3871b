/** What a registry serves, on stores, an S3, queues and an AWS in memory: its subjects, and its operations on them. */
import { createCheckConnection } from '../../../src/connect/watch.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import { createProcesses } from '../../../src/observing/processes.ts';
import { createOperations } from '../../../src/registry/operations/operations.ts';
import { createDeadLetters } from '../../../src/repair/dead-letters.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import type { Store } from '../../../src/store/store.ts';
import { connectionsOn, createFakeAws } from '../fakes/aws-parts.ts';
import { fakeDeadLetterQueues } from '../fakes/dead-letter-queues.ts';
import { createFakeQueues, createFakeStorage, type FakeClock, type FakeTelemetry } from '../fakes/ports.ts';

export const QUEUE = 'http://queues/events';
export const LETTERS = 'http://queues/dead';

interface Options {
  readonly store: Pick<Store, 'objects' | 'state' | 'audit' | 'usage'>;
  readonly clock: FakeClock;
  readonly telemetry: FakeTelemetry;
  /** In place of those of a process without an issuer. */
  readonly keys?: Parameters<typeof createOperations>[0]['keys'];
}

export function createSubjects({
  store,
  clock,
  telemetry,
  keys = { clock, liveKeys: { forget: () => undefined, forgetAll: () => undefined }, rules: { allowed: [], adminEmails: [] } },
}: Options) {
  const common = { ...store, clock, telemetry };
  const [storage, queues, aws] = [createFakeStorage(clock), createFakeQueues(clock), createFakeAws()];
  const gaps = createGapReports(common);
  const subjects = {
    storage,
    gaps,
    connectBucket: createConnectBucket({ ...common, storage, gaps }),
    connections: connectionsOn(aws, { state: store.state, storage, clock }),
    jobs: createReindexJobs(common),
    processes: createProcesses(common),
    deadLetters: createDeadLetters({
      ...common,
      queues,
      gaps,
      queueWatch: fakeDeadLetterQueues({ queueUrl: LETTERS, of: [QUEUE] }),
      bucketQueueUrls: [QUEUE],
    }),
  };
  const operations = createOperations({
    ...common,
    ...subjects,
    keys,
    checkConnection: createCheckConnection({ ...common, ...subjects }),
    compareIntervalMs: 604_800_000,
    everyoneReads: false,
    webhookUrl: (bucket) => `http://HOST:8083/events/${bucket}`,
  });
  return { ...subjects, queues, aws, operations };
}
