/** A control plane that notes down what it is asked, and answers what its tests need, or else the least that the row documents. */
import type { AnyApiKey, ApiKey } from '../../../src/registry/contract/api-keys.ts';
import type { Bucket } from '../../../src/registry/contract/bucket.ts';
import { checkingRequests } from '../requests.ts';
import {
  rowsOfControlPlane,
  type AnyOperation,
  type Context,
  type ControlName,
  type CheckedOperations,
} from '../../../src/registry/contract/contract.ts';
import type { PlanView } from '../../../src/registry/contract/connections.ts';
import { jsonSchemaOf, type JsonSchema } from '../../../src/registry/contract/json-schema.ts';
import type { AuditRecord } from '../../../src/base/audit.ts';
import type { DeadLetter } from '../../../src/registry/contract/dead-letters.ts';
import type { Gap } from '../../../src/registry/contract/gaps.ts';
import type { Job } from '../../../src/registry/contract/job.ts';
import { zeroCounts } from '../../../src/registry/contract/job-view.ts';
import type { JobChange } from '../../../src/registry/contract/jobs.ts';
import type { Explanation } from '../../../src/registry/contract/objects.ts';
import type { Events } from '../../../src/registry/contract/events.ts';
import type { Usage } from '../../../src/registry/contract/usage.ts';
import type { StoredObject } from '../../../src/registry/contract/search.ts';
import type { AnyRequest } from '../../../src/registry/contract/row.ts';
import type { Person, User, UserChange } from '../../../src/registry/contract/users.ts';

const AT = '2026-01-02T03:04:05.000Z';

export const bucketAnswer: Bucket = {
  bucket: 'photos',
  region: 'eu-west-1',
  source: 'notification',
  versioning: { status: 'enabled' },
  enrich: 'none',
  status: { state: 'ok', severity: 'ok', sentence: 'No known difference; compared 4 minutes ago' },
  gaps: 0,
  created_at: AT,
  created_by: 'test',
  checked_at: AT,
};

/** A key that would blank a terminal, turn the reading direction and break a line. */
export const nastyKey = 'a b/ü\u001b[2J\u202e\n"\\.jpg';

export const objectDocument: StoredObject = {
  bucket: 'photos',
  key: nastyKey,
  size: 12,
  etag: 'e1',
  last_modified: AT,
  deleted: false,
  clock: 1_767_323_045_000_000,
  settled: true,
  source: 'native',
  indexed_at: '2026-01-02T03:04:06.000Z',
};

export const usage: Usage = {
  objects: 1_236,
  bytes: 2 ** 31 + 12,
  by: [
    {
      by: 'folder',
      groups: [
        { objects: 1, bytes: 12 },
        { name: `${nastyKey}/`, objects: 1_234, bytes: 2 ** 31, filter: 'prefix:x' },
      ],
      others: { objects: 1, bytes: 0 },
    },
  ],
};

export const events: Events = {
  from: AT,
  to: '2026-01-02T03:14:05.000Z',
  step_s: 300,
  steps: [
    { at: AT, events: 600, lag_p50_ms: 420, lag_p95_ms: 1_250 },
    { at: '2026-01-02T03:09:05.000Z', events: 0 },
  ],
};

export const explanation: Explanation = {
  bucket: 'photos',
  key: 'cat.jpg',
  index: { ...objectDocument, key: 'cat.jpg' },
  storage: { state: { present: false }, observed_at: AT },
  agrees: false,
  sentence: 'The index holds it although S3 does not: its event may be late.',
  bucket_status: { state: 'ok', severity: 'ok', sentence: 'No known difference; compared 4 minutes ago' },
};

export const gap: Gap = {
  id: 'gap:photos:bucket',
  bucket: 'photos',
  state: 'open',
  why: 'dead letter: record.invalid (2 times)',
  reasons: [{ kind: 'loss', count: 2, last_seen_at: AT, example: 'dead letter: record.invalid' }],
  since: AT,
  last_seen_at: AT,
  next: 'a re-index begins',
};

export const job: Job = {
  id: 'job-1',
  bucket: 'photos',
  prefix: '',
  mode: 'apply',
  requested_by: 'test',
  state: 'queued',
  created_at: AT,
};

/** The same an hour later. */
export const runningJob: Job = {
  ...job,
  state: 'running',
  phase: 'comparing',
  started_at: AT,
  covers_before: AT,
  counts: {
    ...zeroCounts,
    listed: 1_000,
    equal: 990,
    missing: 6,
    stale: 4,
    phantom: 2,
    written: 10,
    tombstones: 2,
    list_requests: 5,
  },
  examples: { missing: [{ key: nastyKey }], stale: [{ key: 'b', fields: ['etag', 'size'] }] },
  progress: 0.25,
  objects_per_s: 25_000,
  cost_usd: 0.000_025,
};

/** What a job is after a change. */
const changedJobs = {
  paused: { ...job, state: 'paused' },
  running: job,
  cancelled: { ...job, state: 'cancelled' },
  allowed: { ...job, id: 'job-2' },
  declined: { ...job, state: 'done' },
} as const satisfies Readonly<Record<string, Job>>;

export const deadLetter: DeadLetter = {
  id: 'letter-1',
  sent_at: AT,
  fault: 'message.not-json',
  reason: 'Unexpected token',
  size_bytes: 3,
};

export const planAnswer: PlanView = {
  bucket: 'photos',
  region: 'eu-west-1',
  source: 'notification',
  enrich: 'none',
  account: '123456789012',
  bucket_account: '123456789012',
  installation: '0a1b2c3d',
  connected: true,
  state: 'none',
  token: '0f1e2d3c4b5a6978',
  changes: [
    {
      part: 'notification',
      action: 'create',
      name: 'photos',
      before: { QueueConfigurations: [{ Id: 'theirs\u001b[2J' }] },
      after: { QueueConfigurations: [{ Id: 'theirs\u001b[2J' }], TopicConfigurations: [{ Id: 'tally-0a1b2c3d' }] },
    },
  ],
  foreign: [
    {
      kind: 'destination',
      arn: 'arn:aws:sqs:eu-west-1:123456789012:theirs',
      after: 's3:TestEvent',
      text: 'arn:aws:sqs:eu-west-1:123456789012:theirs gets an s3:TestEvent',
    },
  ],
  findings: [
    {
      code: 'connect.not-made',
      severity: 'broken',
      what: 'photos has no notification with the Id tally-0a1b2c3d',
      why: 'S3 sends no events to Tally',
      fix: 'tally bucket add photos',
      blocks: false,
    },
  ],
};

export const auditRecord: AuditRecord = {
  id: 'audit-0mk3x1a2b-0123456789ab',
  eventtime: AT,
  eventname: 'BucketRemove',
  useridentity: { email: 'alice@build-1', sessionContext: { auth: { type: 'local' } } },
  sourceipaddress: '127.0.0.1',
  date: '2026/01/02',
  outcome: 'failed',
  reason: 'bucket.not-connected: photos is not connected\u001b[2J',
  request_id: 'request-1',
  parameters: { bucket: 'photos' },
};

export const apiKey: ApiKey = {
  id: 'k0123456789abcdefghijAB',
  name: 'nightly export',
  user_email: 'bob@example.com',
  fingerprint: 'qk_abcd…wxyz',
  status: 'ACTIVE',
  created_at: AT,
  expires_at: '2026-04-02T03:04:05.000Z',
  last_used_at: null,
  scopes: ['read'],
};

export const anyApiKey: AnyApiKey = {
  ...apiKey,
  user_id: '0aB1cD2eF3gH4iJ5kL6mN7',
  user_email_verified: true,
  owner_disabled: false,
};

/** No secret: its checksum is a wrong one. */
export const keySecret = `qk_${'s'.repeat(49)}`;

export const userAnswer: User = {
  id: '0aB1cD2eF3gH4iJ5kL6mN7',
  email: 'bob@example.com',
  email_verified: true,
  role: 'user',
  role_source: 'none',
  issuer: 'https://id.example.com',
  sub: 's-bob',
  created_at: AT,
  last_login_at: AT,
};

/** What a person is after a change. */
function changedPerson(wanted: UserChange): Person {
  if ('disabled' in wanted) return { user: wanted.disabled ? { ...userAnswer, disabled_at: AT } : userAnswer };
  const waiting = { email: 'alice@example.com', appointed_by: 'alice@build-1', created_at: AT, expires_at: AT };
  return wanted.role === 'admin' ? { waiting } : {};
}

/** The least that a schema of the contract permits, with one item in each list. A text is the name of its field. */
function leastOf(schema: JsonSchema | boolean | undefined, named: Readonly<Record<string, JsonSchema>>, name = 'text'): unknown {
  if (typeof schema !== 'object') return {};
  const { $ref: reference, const: only, enum: values = [only], anyOf, type, properties = {}, required = [], items, minimum = 0 } = schema;
  if (reference !== undefined) return leastOf(named[reference.split('/').at(-1) ?? ''], named, name);
  if (values[0] !== undefined) return values[0];
  if (anyOf !== undefined) return leastOf(anyOf[0], named, name);
  switch (type) {
    case 'object':
      return Object.fromEntries(required.map((field) => [field, leastOf(properties[field], named, field)]));
    case 'array':
      return [leastOf([items ?? {}].flat()[0], named, name)];
    case 'integer':
    case 'number':
      return Math.max(0, minimum);
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'string':
    case undefined:
      break;
  }
  return schema.format === 'date-time' ? AT : name;
}

export type FakeControl = ReturnType<typeof createFakeControl>;

/** Creates one. Searches have a second page. */
export function createFakeControl() {
  /** What was asked, in order: the operation, and the parts of the request that say something. */
  const asked: [operation: ControlName, request: AnyRequest][] = [];
  /** Who asked, and with which signals. */
  const contexts: Context[] = [];
  const nexts: ((signal: AbortSignal) => Promise<unknown>)[] = [];
  const own: { readonly [Name in ControlName]?: (request: AnyRequest) => Awaited<ReturnType<CheckedOperations[Name]>> } = {
    searchObjects: ({ query }) => ({
      items: [objectDocument],
      ...((query as { cursor?: string }).cursor === undefined && { next: 'page-2' }),
    }),
    getUsage: () => usage,
    getEvents: () => events,
    listChanges: () => ({ items: [objectDocument], cursor: 'WyJwaG90b3MiXQ', more: false }),
    explainObject: () => explanation,
    listBuckets: () => ({
      items: [bucketAnswer],
      unconnected: [{ bucket: 'stray', count: 3, first_seen_at: AT, last_seen_at: AT }],
      activity: { jobs: 2, dead_letters: 3 },
    }),
    getBucket: () => bucketAnswer,
    addBucket: () => ({ ...bucketAnswer, changed: true }),
    removeBucket: () => ({ bucket: 'photos', kept: [] }),
    planBucket: () => planAnswer,
    changeNotification: ({ body }) => {
      const { paused } = body as { readonly paused: boolean };
      return { bucket: 'photos', state: paused ? 'paused' : 'applied', source: 'notification' };
    },
    diagnoseBucket: () => ({ bucket: 'photos', status: 'ok', findings: [] }),
    listGaps: () => ({ items: [gap] }),
    startReindex: () => job,
    getJob: () => job,
    listJobs: () => ({ items: [job], next: 'page-2' }),
    changeJob: ({ body }) => {
      const change = body as JobChange;
      return changedJobs['state' in change ? change.state : change.deletions];
    },
    listDeadLetters: () => ({ items: [deadLetter] }),
    getDeadLetter: () => ({ ...deadLetter, body: '{x}\u001b[2J' }),
    replayDeadLetters: () => ({ replayed: 2, remaining: 0 }),
    discardDeadLetters: () => ({ discarded: 1, remaining: 0 }),
    createApiKey: () => ({ key: apiKey, secret: keySecret }),
    listApiKeys: () => ({ items: [apiKey] }),
    getApiKey: () => apiKey,
    listAllApiKeys: () => ({ items: [anyApiKey] }),
    getAnyApiKey: () => anyApiKey,
    listAudit: () => ({ items: [auditRecord] }),
    listUsers: () => ({ items: [userAnswer], waiting: [] }),
    changeUser: ({ body }) => changedPerson(body as UserChange),
  };

  const checked = Object.fromEntries(
    rowsOfControlPlane.map(({ operation: name, answer }) => {
      const operation: AnyOperation = async (request, context) => {
        asked.push([name, saying(request)]);
        contexts.push(context);
        const action = nexts.shift();
        if (action !== undefined) return action(context.signal);
        if (answer === undefined) return undefined;
        const { schema, named } = jsonSchemaOf(answer);
        return own[name]?.(request) ?? leastOf(schema, named);
      };
      return [name, operation];
    }),
  ) as unknown as CheckedOperations;
  return {
    /** For a listener, which checks requests itself. */
    checked,
    /** For callers. */
    operations: checkingRequests(checked),
    asked,
    contexts,
    /** The next operation of which this was not said yet does this instead. */
    nextDoes: (action: (signal: AbortSignal) => Promise<unknown>): void => {
      nexts.push(action);
    },
  };
}

function saying(request: AnyRequest): AnyRequest {
  return Object.fromEntries(Object.entries(request).filter(([, part]) => part !== undefined && Object.keys(part as object).length > 0));
}
