/** The verbs of the control plane, one for each operation that it answers. Parts that ingest uses too (connecting, dead letters) are created outside. */
import { bucketView, fillAdvice, unconnectedView } from '../../api/buckets.ts';
import type { Verbs } from '../../api/contract.ts';
import { gapView } from '../../api/gaps.ts';
import { jobView } from '../../api/jobs.ts';
import { nameOfActor } from '../../domain/identity/actor.ts';
import type { ExpiryRule } from '../../domain/identity/api-key.ts';
import { circuitOfBucket, listCircuits } from '../buckets/circuit-records.ts';
import { createListBuckets, requireBucket } from '../buckets/list.ts';
import type { ConnectBucket } from '../buckets/connect.ts';
import { createListGaps } from '../gaps/reports.ts';
import { createAudited } from '../identity/audited.ts';
import { createKeyVerbs } from '../identity/key-verbs.ts';
import { createAbuseLimits, type AbuseLimits } from '../identity/limits.ts';
import { createListAudit } from '../identity/list-audit.ts';
import { createPeople } from '../identity/people.ts';
import { createUsers } from '../identity/users.ts';
import type { DeadLetters } from '../letters/dead-letters.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { readRecord, refs } from '../records/stored.ts';
import type { SendTask } from '../reindex-jobs/tasks.ts';
import { createAddBucket } from './add-bucket.ts';
import { createDisconnectBucket } from './disconnect-bucket.ts';
import { createExplain } from './explain.ts';
import { createExportState } from './export-state.ts';
import { createReindexJobs } from './reindex-jobs.ts';
import { createSearch } from './search.ts';

interface VerbDependencies {
  readonly store: Pick<Store, 'objects' | 'state' | 'audit'>;
  readonly storage: ObjectStorage;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Absent if there is no work queue. */
  readonly sendTask?: SendTask | undefined;
  readonly connectBucket: ConnectBucket;
  readonly deadLetters: Omit<DeadLetters, 'send'>;
  /** Default: limits of these verbs alone. */
  readonly limits?: Pick<AbuseLimits, 'failed'>;
  /** When API keys end besides their own expiry. Default: at their expiry. */
  readonly keyRule?: ExpiryRule;
  /** Whether the settings make administrators. Default: false. */
  readonly hasAdminRule?: boolean;
}

/** Creates the verbs. They throw RequestError for mistakes that the caller can correct, and faults. Every verb that changes something is audited. */
export function createVerbs(dependencies: VerbDependencies): Verbs {
  const { store, storage, clock, telemetry, sendTask, connectBucket, deadLetters, hasAdminRule = false } = dependencies;
  const { limits = createAbuseLimits({ clock }), keyRule: rule = {} } = dependencies;
  const { objects, state, audit } = store;
  const audited = createAudited({ audit, clock, telemetry });
  const jobs = createReindexJobs({ state, clock, telemetry, sendTask });
  const addBucket = createAddBucket({ state, connectBucket, jobs: sendTask && jobs, telemetry });
  const search = createSearch({ objects, state });
  const explain = createExplain({ state, objects, storage });
  const listBuckets = createListBuckets({ state, clock });
  const disconnectBucket = createDisconnectBucket({ state, objects, jobs, clock });
  const listGaps = createListGaps({ state });
  const listAudit = createListAudit({ audit });
  const exportState = createExportState({ state });
  const keys = createKeyVerbs({ state, users: createUsers({ state }), clock, telemetry, audited, limits, rule });
  const people = createPeople({ state, clock, hasAdminRule });
  const connectEvent = async (bucket: string, signal: AbortSignal) =>
    (await readRecord(state, refs.bucket(bucket), signal)) === undefined ? 'BucketConnect' : 'BucketChange';
  return {
    searchObjects: ({ query }, { signal }) => search(query, signal),
    explainObject: ({ params, query }, { signal }) => explain(params.bucket, query.key, signal),
    async listBuckets(_request, { signal }) {
      const { connected, unconnected } = await listBuckets(signal);
      return {
        items: connected.map(({ record, waitsFor }) => bucketView(record, waitsFor)),
        unconnected: unconnected.map(unconnectedView),
      };
    },
    addBucket: audited(
      ({ body }, signal) => connectEvent(body.bucket, signal),
      async ({ body }, { actor, signal }) => {
        const { record, jobId, isFillWanted } = await addBucket(body, nameOfActor(actor), signal);
        return { ...bucketView(record), job_id: jobId, advice: isFillWanted ? fillAdvice(record) : undefined };
      },
      ({ job_id }) => ({ job_id }),
    ),
    async getBucket({ params }, { signal }) {
      const record = await requireBucket(state, params.bucket, signal);
      return bucketView(record, circuitOfBucket(await listCircuits(state, clock.nowMs()), record));
    },
    removeBucket: audited('BucketRemove', ({ params }, { signal }) => disconnectBucket(params.bucket, signal)),
    async listGaps({ query }, { signal }) {
      const { items, ...rest } = await listGaps(query, signal);
      return { ...rest, items: items.map(gapView) };
    },
    startReindex: audited(
      'ReindexStart',
      async ({ params, body }, { actor, signal }) => jobView(await jobs.request({ ...params, ...body }, nameOfActor(actor), signal)),
      ({ id }) => ({ job_id: id }),
    ),
    async listJobs({ query }, { signal }) {
      const { items, ...rest } = await jobs.list(query, signal);
      return { ...rest, items: items.map(jobView) };
    },
    getJob: async ({ params }, { signal }) => jobView(await jobs.get(params.id, signal)),
    pauseJob: audited('ReindexPause', async ({ params }, { signal }) => jobView(await jobs.pause(params.id, signal))),
    resumeJob: audited('ReindexResume', async ({ params, body }, { signal }) => jobView(await jobs.resume(params.id, body, signal))),
    cancelJob: audited('ReindexCancel', async ({ params }, { signal }) => jobView(await jobs.cancel(params.id, signal))),
    listDeadLetters: async ({ query }, { signal }) => ({ items: await deadLetters.list(query.limit, signal) }),
    getDeadLetter: ({ params }, { signal }) => deadLetters.show(params.id, signal),
    replayDeadLetters: audited(
      'DeadLettersReplay',
      async ({ body }, { signal }) => ({ replayed: await deadLetters.replay(body, signal) }),
      (answer) => answer,
    ),
    discardDeadLetters: audited(
      'DeadLettersDiscard',
      async ({ body }, { signal }) => ({ discarded: await deadLetters.discard(body, signal) }),
      (answer) => answer,
    ),
    ...keys,
    listAudit: ({ query }, { signal }) => listAudit(query, signal),
    listUsers: ({ query }, { signal }) => people.list(query, signal),
    disableUser: audited(
      'UserDisable',
      ({ params }) => people.disable(params.id),
      ({ email }) => ({ email }),
    ),
    enableUser: audited(
      'UserEnable',
      ({ params }) => people.enable(params.id),
      ({ email }) => ({ email }),
    ),
    grantAdmin: audited('UserGrant', ({ body }, { actor }) => people.grant(body, nameOfActor(actor))),
    exportState: audited(
      'StateExport',
      ({ body }, { signal }) => exportState(body, signal),
      ({ items }) => ({ records: items.length }),
    ),
  };
}
