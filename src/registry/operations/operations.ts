/**
 * The operations of the control plane: one function for each row of the contract.
 *
 *   request ──► server.ts (guards, bounds) ──► control-plane.ts (the row: who calls, is it permitted, is it well-formed)
 *           ──► the operation here, audited where it changes something ──► its answer, shown as the row says
 *
 * An operation of more than a few lines is a file beside this one. Parts that the data path uses too (connecting, dead letters) are
 * created outside.
 */
import type { Bucket, ShownBucket, Activity } from '../contract/bucket.ts';
import { bucketView, fillAdvice, readerView, unconnectedView } from '../contract/buckets.ts';
import type { CheckedOperations } from '../contract/contract.ts';
import { deadLetterView } from '../contract/dead-letters.ts';
import { gapView } from '../contract/gaps.ts';
import type { Job } from '../contract/job.ts';
import type { JobChange } from '../contract/jobs.ts';
import type { UserChange } from '../contract/users.ts';
import type { Readable } from '../../store/readable.rules.ts';
import type { BucketRecord } from '../../records/bucket.ts';
import type { BucketStatus } from '../../records/bucket-status.ts';
import type { AuditEvent } from '../../base/audit.ts';
import { nameOfActor, type Actor } from '../../base/actor.ts';
import { RequestError } from '../../base/request-error.ts';
import {
  createStoredGrants,
  createReadableBy,
  seesAll,
  type ReadableBy,
  createAccessOperations,
  ownAccess,
  type ReadOwnAccess,
} from '../../identity/grants/grants.ts';
import { getEvents, listBuckets, listGaps } from './lists.ts';
import { requireBucket, requireReadable, createBucketStatuses, type BucketStatuses } from '../../observing/buckets.ts';
import type { ConnectBucket } from '../../connect/connect.ts';
import type { Processes } from '../../observing/processes.ts';
import type { GapReports } from '../../observing/gaps.ts';
import { createAudited, listAudit } from '../../identity/audit.ts';
import { createKeyOperations } from '../../identity/key-operations.ts';
import type { LoginRules } from '../../identity/claims.rules.ts';
import { createPeople } from '../../identity/users.ts';
import type { DeadLetters } from '../../repair/dead-letters.ts';
import type { ObjectStorage } from '../../aws/storage.ts';
import type { Store, WithPorts } from '../../store/store.ts';
import { readRecord, refs, listAllRecords } from '../../store/stored.ts';
import type { CheckConnection } from '../../connect/watch.ts';
import { addBucket, disconnectBucket } from './buckets.ts';
import { newWebhookToken } from '../../connect/sources/webhook.ts';
import type { Connections } from '../../connect/connections.ts';
import { diagnosisView, planView } from '../contract/connections.ts';
import { doctor } from '../../connect/diagnose.ts';
import { explain } from '../../search/explain.ts';
import type { ReindexJobs } from '../../repair/job-requests.ts';
import { listChanges } from '../../search/changes.ts';
import { createSearch, getUsage } from '../../search/search.ts';
import { z } from 'zod';
import { hasEnded, jobSchema } from '../../records/job.ts';
import type { LiveKeys } from '../../identity/authenticate-key.ts';

interface Subjects extends Pick<Store, 'objects' | 'state' | 'audit' | 'usage'>, WithPorts<'clock' | 'telemetry'> {
  readonly storage: ObjectStorage;
  readonly jobs: ReindexJobs;
  readonly gaps: GapReports;
  readonly connectBucket: ConnectBucket;
  readonly checkConnection: CheckConnection;
  readonly deadLetters: Omit<DeadLetters, 'send'>;
  readonly connections: Connections;
  readonly processes: Pick<Processes, 'troubles'>;
  /** The settings about the issuer and about administrators, and the clock by which credentials are valid. */
  readonly keys: WithPorts<'clock'> & { readonly liveKeys: Pick<LiveKeys, 'forget' | 'forgetAll'>; readonly rules: LoginRules };
  /** The time between scheduled comparisons of a whole bucket; 0: none. */
  readonly compareIntervalMs: number;
  /** The address to which stores post a bucket's events. */
  readonly webhookUrl: (bucket: string) => string;
  /** Whether every user reads everything, as TALLY_READERS says. */
  readonly everyoneReads: boolean;
}

type ReadOperations = Pick<CheckedOperations, 'searchObjects' | 'listChanges' | 'getUsage' | 'explainObject' | 'listBuckets' | 'getBucket'>;
type LetterOperations = Pick<CheckedOperations, 'listDeadLetters' | 'getDeadLetter' | 'replayDeadLetters' | 'discardDeadLetters'>;
type PeopleOperations = Pick<CheckedOperations, 'listUsers' | 'changeUser'>;

/** Creates the operations. They throw RequestError for what the caller can correct, and faults. Every operation that changes something is audited. */
export function createOperations(subjects: Subjects): CheckedOperations & { readonly ownAccess: ReadOwnAccess } {
  const { state, jobs, deadLetters, connections } = subjects;
  const audited = createAudited(subjects);
  const grants = createStoredGrants(subjects);
  const readableBy = createReadableBy({ ...subjects, grants });
  const statuses = createBucketStatuses(subjects);
  const identity = { ...subjects, ...subjects.keys, audited, grants };
  const viewOf = async (bucket: string, signal: AbortSignal) => {
    const record = await requireBucket(state, bucket, signal);
    return bucketView(record, await statuses.of(record, 'everything', signal));
  };
  const connectEvent = async (bucket: string, signal: AbortSignal) =>
    (await readRecord(state, refs.bucket(bucket), signal)) === undefined ? 'BucketConnect' : 'BucketChange';
  return {
    ...readOperations({ ...subjects, statuses, readableBy }),
    addBucket: audited(
      ({ body }, signal) => connectEvent(body.bucket, signal),
      async ({ body }, { actor, signal }) => {
        const added = await addBucket(subjects, body, nameOfActor(actor), signal);
        const { record, connection, token, jobId, isChanged, isFillWanted } = added;
        return {
          connection,
          webhook: token === undefined ? undefined : { url: subjects.webhookUrl(record.bucket), token },
          ...(await viewOf(record.bucket, signal)),
          changed: isChanged,
          job_id: jobId,
          advice: isFillWanted ? fillAdvice(record) : undefined,
        };
      },
      ({ job_id }) => ({ job_id }),
    ),
    rotateToken: audited('BucketTokenRotate', async ({ params: { bucket } }, { signal }) => {
      const { source } = await requireBucket(state, bucket, signal);
      const token = await newWebhookToken(subjects, bucket);
      if (token === undefined)
        throw new RequestError(
          'connect.blocked',
          `${bucket} gets its events through ${source}, which needs no token: only a webhook has one`,
        );
      return { bucket, url: subjects.webhookUrl(bucket), token };
    }),
    removeBucket: audited('BucketRemove', async ({ params: { bucket }, query }, { signal }) => {
      const kept = await connections.remove(bucket, { keepAws: query.keep_aws === 'true' }, signal);
      await disconnectBucket(subjects, bucket, signal);
      return { bucket, kept };
    }),
    async planBucket({ params, query: { wired_by_hand: byHand, ...query } }, { signal }) {
      const asked = { ...params, ...query, ...(byHand !== undefined && { wired_by_hand: byHand === 'true' }) };
      const { plan, record } = await connections.plan(asked, signal);
      return planView(plan, record);
    },
    changeNotification: audited(
      async ({ body }) => (body.paused ? 'BucketPause' : 'BucketResume'),
      ({ params: { bucket }, body }, { signal }) => (body.paused ? connections.pause(bucket, signal) : connections.resume(bucket, signal)),
    ),
    diagnoseBucket: async ({ params: { bucket } }, { signal }) => diagnosisView(bucket, await doctor(subjects, bucket, signal)),
    getEvents: (_, { signal }) => getEvents(subjects, signal),
    async listGaps({ query }, { signal }) {
      const { items, ...rest } = await listGaps(subjects, query, signal);
      return { ...rest, items: items.map((gap) => gapView(gap, subjects.clock.nowMs())) };
    },
    startReindex: audited(
      'ReindexStart',
      async ({ params, body: { repair, ...body } }, { actor, signal }) => {
        const by = nameOfActor(actor);
        if (repair) await connections.repair(params.bucket, signal);
        return jobs.request({ ...params, ...body }, by, signal);
      },
      ({ id }) => ({ job_id: id }),
    ),
    listJobs: ({ query }) => jobs.list(query),
    getJob: ({ params }, { signal }) => jobs.get(params.id, signal),
    changeJob: audited(
      async ({ body }) => jobEvents['state' in body ? body.state : body.deletions],
      ({ params, body }, { actor, signal }) => changedJob(jobs, { ...params, body, by: nameOfActor(actor) }, signal),
      ({ id }) => ({ job_id: id }),
    ),
    ...letterOperations(deadLetters, audited),
    ...createKeyOperations(identity),
    listAudit: ({ query }, { signal }) => listAudit(subjects.audit, query, signal),
    ...createAccessOperations(identity),
    ownAccess: (actor, signal) => ownAccess(readableBy, actor, signal),
    ...peopleOperations(createPeople(identity), audited),
  };
}

const jobEvents = {
  paused: 'ReindexPause',
  running: 'ReindexResume',
  cancelled: 'ReindexCancel',
  allowed: 'ReindexAllow',
  declined: 'ReindexDecline',
} as const satisfies Readonly<Record<string, AuditEvent>>;

interface WantedChange {
  readonly id: string;
  readonly body: JobChange;
  readonly by: string;
}

function changedJob(jobs: ReindexJobs, { id, body, by }: WantedChange, signal: AbortSignal): Promise<Job> {
  switch ('state' in body ? body.state : body.deletions) {
    case 'paused':
      return jobs.pause(id, signal);
    case 'running':
      return jobs.resume(id, signal);
    case 'cancelled':
      return jobs.cancel(id, signal);
    case 'allowed':
      return jobs.allow(id, by, signal);
    case 'declined':
      return jobs.decline(id, signal);
  }
}

interface ReadParts extends Subjects {
  readonly statuses: BucketStatuses;
  readonly readableBy: ReadableBy;
}

/** Operations for everyone who may read anything. Answers contain only what the caller may read. */
function readOperations(parts: ReadParts): ReadOperations {
  const { state, statuses, readableBy } = parts;
  const search = createSearch(parts);
  return {
    async searchObjects({ query }, { actor, signal }) {
      const { as_of: asOf, ...found } = await search(query, await readableBy(actor, signal), signal);
      return { ...found, ...(asOf && { as_of: asOf.map((each) => ({ ...each, status: statusFor(actor, each.status) })) }) };
    },
    listChanges: async ({ query }, { actor, signal }) => listChanges(parts, query, await readableBy(actor, signal), signal),
    getUsage: async ({ query }, { actor, signal }) => getUsage(parts, query, await readableBy(actor, signal), signal),
    async explainObject({ params, query }, { actor, signal }) {
      const explanation = await explain(parts, { ...params, key: query.key, readable: await readableBy(actor, signal) }, signal);
      return { ...explanation, bucket_status: statusFor(actor, explanation.bucket_status) };
    },
    async listBuckets({ query }, { actor, signal }) {
      const readable = await readableBy(actor, signal);
      const isWhole = seesAll(actor) && query.cursor === undefined;
      const [{ connected, unconnected, next }, seen] = await Promise.all([
        listBuckets(parts, query, readable, signal),
        isWhole ? activityOf(parts) : undefined,
      ]);
      return {
        items: connected.map(({ record, status }) => shownTo(actor, readable, record, status)),
        unconnected: seesAll(actor) ? unconnected.map(unconnectedView) : [],
        activity: seen,
        next,
      };
    },
    async getBucket({ params: { bucket } }, { actor, signal }) {
      const readable = await readableBy(actor, signal);
      const record = await requireReadable(state, { bucket, readable }, signal);
      return shownTo(actor, readable, record, await statuses.of(record, readable, signal));
    },
  };
}

/** A status as this caller may see it: only administrators see what to do about it. */
function statusFor(actor: Actor, { act, ...status }: Bucket['status']): Bucket['status'] {
  return seesAll(actor) ? { ...status, act } : status;
}

/** A bucket as this caller may see it. */
function shownTo(actor: Actor, readable: Readable, record: BucketRecord, status: BucketStatus): ShownBucket {
  return seesAll(actor) ? bucketView(record, status) : readerView(record, status, readable);
}

/** Operations on dead letters. */
function letterOperations(deadLetters: Subjects['deadLetters'], audited: ReturnType<typeof createAudited>): LetterOperations {
  return {
    listDeadLetters: async ({ query }, { signal }) => ({ items: (await deadLetters.list(query.limit, signal)).map(deadLetterView) }),
    getDeadLetter: async ({ params }, { signal }) => {
      const letter = await deadLetters.show(params.id, signal);
      return { ...deadLetterView(letter), body: letter.body };
    },
    replayDeadLetters: audited(
      'DeadLettersReplay',
      async ({ body }, { signal }) => {
        const { count, remaining } = await deadLetters.replay(body, signal);
        return { replayed: count, remaining };
      },
      (answer) => answer,
    ),
    discardDeadLetters: audited(
      'DeadLettersDiscard',
      async ({ body }, { signal }) => {
        const { count, remaining } = await deadLetters.discard(body, signal);
        return { discarded: count, remaining };
      },
      (answer) => answer,
    ),
  };
}

function userEventOf(wanted: UserChange): AuditEvent {
  if ('role' in wanted) return wanted.role === 'admin' ? 'UserGrant' : 'UserGrantWithdraw';
  return wanted.disabled ? 'UserDisable' : 'UserEnable';
}

/** Administrators' operations on users. */
function peopleOperations(people: ReturnType<typeof createPeople>, audited: ReturnType<typeof createAudited>): PeopleOperations {
  return {
    listUsers: ({ query }, { signal }) => people.list(query, signal),
    changeUser: audited(
      async ({ body }) => userEventOf(body),
      ({ params, body }, { actor }) => people.change(params.id, body, nameOfActor(actor)),
      ({ user }) => (user === undefined ? {} : { email: user.email }),
    ),
  };
}

/** Only what is counted: a job has many other fields, and thousands may be stored. */
const stateOfJob = z.object({ state: jobSchema.shape.state });

/**
 * How much is at work and how much waits, apart from the buckets themselves, from what is known or read in one request. Throws the store's
 * fault.
 */
async function activityOf({ state, deadLetters }: Pick<Subjects, 'state' | 'deadLetters'>): Promise<Activity> {
  const jobs = await listAllRecords(state, 'job', stateOfJob);
  return { jobs: jobs.filter((job) => !hasEnded(job)).length, dead_letters: deadLetters.known() };
}
