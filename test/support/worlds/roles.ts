/** The roles of a process, as serve.ts puts them together, of the ports and the clock that a test gives them. */
import { defined } from '../../../src/base/defined.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { createIngestRole } from '../../../src/indexer/indexer.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import { createQueueWatch } from '../../../src/observing/queue-watch.ts';
import { createBackgroundWriter } from '../../../src/repair/background-writer.ts';
import { createDeadLetters } from '../../../src/repair/dead-letters.ts';
import { createReindexRole, type ReindexParts, type ReindexRole } from '../../../src/repair/jobs.ts';
import { createReconcileTurn } from '../../../src/repair/reconcile-turn.ts';
import type { BucketListing, ObjectStorage } from '../../../src/aws/storage.ts';
import type { Store } from '../../../src/store/store.ts';
import { createTestCircuits } from '../fakes/circuits.ts';

export const QUEUE = 'http://queues/bucket';
export const DEAD_LETTERS = 'http://queues/dead';

type IngestParts = Parameters<typeof createIngestRole>[0];
type Own = 'store' | 'storage' | 'queues' | 'receiver' | 'handover' | 'clock' | 'telemetry' | 'limits';

/** The role `ingest`. Events are not counted, and confirmations succeed, unless the parts say otherwise. */
export function createIngest(parts: Pick<IngestParts, Own> & Partial<IngestParts>, stopping: AbortController) {
  const { store, storage, queues, clock, telemetry } = parts;
  const common = { state: store.state, clock, telemetry };
  const bucketQueueUrls = [QUEUE];
  const gaps = createGapReports(common);
  const connect = createConnectBucket({ ...common, objects: store.objects, storage, gaps });
  const queueWatch = createQueueWatch({ ...common, queues, bucketQueueUrls, deadLetterQueueUrl: undefined });
  const circuits = createTestCircuits({ ...common, probeCluster: () => store.objects.probe(), stopped: stopping.signal });
  const role = createIngestRole(
    {
      isAws: true,
      circuits,
      queueWatch,
      bucketQueueUrls,
      connect,
      gaps,
      counter: { event: () => undefined },
      confirmSubscription: async () => undefined,
      sendDeadLetter: createDeadLetters({ ...common, queues, gaps, queueWatch, bucketQueueUrls }).send,
      ...parts,
    },
    stopping,
  );
  return {
    circuits,
    connect,
    gaps,
    role,
    start: async (): Promise<void> => {
      await queueWatch.start(stopping.signal);
      role.start();
    },
  };
}

interface RepairParts extends Omit<ReindexParts, 'store' | 'listing' | 'turn' | 'circuits'> {
  readonly store: Pick<Store, 'state' | 'objects' | 'scan'>;
  readonly s3: ObjectStorage & BucketListing;
  readonly turn?: ReindexParts['turn'] | undefined;
  /** Default: it succeeds. */
  readonly probeCluster?: () => Promise<void>;
  readonly stopped?: AbortSignal;
}

/** The role `reindex`. */
export function createRepair({ store, s3, turn, probeCluster, stopped, ...own }: RepairParts): ReindexRole {
  const { clock, telemetry } = own;
  const { state, objects, scan } = store;
  const circuits = createTestCircuits({ clock, telemetry, ...defined({ probeCluster, stopped }) });
  const limits = { actionsMax: 1_000, bytesMax: 5_000_000, concurrency: 2 };
  const { writeAll } = createBackgroundWriter({ clock, telemetry, circuits, objects, limits, liveIsBusy: () => false });
  const ownTurn = turn ?? createReconcileTurn({ clock, telemetry, circuits, objects, scan, listing: s3, storage: s3, writeAll });
  return createReindexRole({ ...own, store: { state, scan }, listing: s3, turn: ownTurn, circuits });
}
