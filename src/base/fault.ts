/**
 * Faults: everything that can go wrong with a message, a record or a request to S3, SQS or the index. Each has a code, listed here once.
 *
 *   an adapter throws FaultError ──► its code ──► the circuit that it concerns: what waits, and what is a dead letter
 *                                           ├──► what jobs and sweeps do: wait, try again, fail
 *                                           └──► what an operator reads: advice, and a place in docs/reference/error-codes.md
 *
 * Whether a failure may pass is decided here, and in no `catch`. Mistakes of callers are listed in request-error.ts.
 */
import { shellWord } from './commands.ts';
import { docsPage } from './doc-pages.ts';
import { withoutSecrets } from './masked-secrets.ts';
import { withoutPasswords } from './passwords.ts';

/**
 * The circuits that a fault may concern (src/observing/circuits.ts), outer ones first:
 * - `cluster`: the index store. Nothing is received and messages in hand wait until a probe succeeds.
 * - `index`: the index of one bucket, or the bucket's record. The records of that bucket wait.
 * - `endpoint`: S3 in one region. Requests about objects of its buckets wait; exact events do not need S3.
 * - `bucket`: one bucket in S3. Requests about its objects wait.
 * - `queue`: SQS. Receiving stops by itself, because it fails.
 *
 * Two values name no circuit:
 * - `object`: this one record fails, and its message alone is deferred until its last receive, then dead-lettered.
 * - `never`: it can never succeed. The message is dead-lettered immediately.
 */
export type FaultCircuit = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'queue' | 'object' | 'never';

/**
 * What a re-index job does about a fault, and with it sweeps and the set-up of the store.
 *
 * - `stop`: a service that all buckets share does not work. A job keeps its place and waits; a sweep leaves the bucket; set-up ends.
 * - `wait`: this bucket, or its index, does not work. Its jobs keep their place and wait; a sweep leaves the bucket; set-up
 *   continues with the other buckets.
 * - `skip`: permission is missing, for one object or for all. A job waits; a sweep continues with the next object.
 * - `retry`: this object or this listing fails. A job tries again, and fails after three attempts without progress; a sweep
 *   continues with the next object.
 * - `fail`: it can never succeed. A job fails.
 */
export type JobAnswer = 'stop' | 'wait' | 'skip' | 'retry' | 'fail';

interface FaultEntry {
  readonly circuit: FaultCircuit;
  /** One such answer opens the circuit: it cannot be about one request only. Other faults must be repeated. */
  readonly opensAtOnce?: true;
  readonly jobs: JobAnswer;
  /** What to do about it, for the operator of a daemon as well as for the user of a command; shown with every report. */
  readonly advice: string;
}

/**
 * The catalogue of faults: everything that can fail about a message, a record or a request, with the circuit that it concerns
 * and advice. Whether something waits, is tried again or is rejected is decided here, never in a `catch`.
 */
export const faults = {
  // ── the index store ──
  /** No connection, a time-out, or 502/503/504 of the whole request. */
  'index.unreachable': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and can be reached from here.',
  },
  /** 401 or 403 for the credentials in use (not a block). */
  'index.denied': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Check the credentials in TALLY_INDEX_URL and the role that they map to.',
  },
  /** OpenSearch pushed a whole request back (429), or another process holds the write lock of the SQLite file. */
  'index.overloaded': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Wait: this usually passes. If it lasts, add data nodes, or run fewer workers.',
  },
  /** A cluster-wide write block, a block on the state index, or a full disk under SQLite. */
  'index.blocked': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Free disk space where the index store keeps its data. If OpenSearch has set a write block, remove it then.',
  },
  /** The state index is missing. */
  'index.state-missing': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Start the service: it creates what is missing. If it has run before, check TALLY_INDEX_URL and TALLY_INDEX_PREFIX. If they are right, the index is lost: restore a snapshot, and the service continues; or restart it to begin with an empty index.',
  },
  /** The state index takes no records because of its configuration: a pipeline, its alias or its mapping. */
  'index.misconfigured': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Read the reason, then remove what was added to the state index: a pipeline, a second index behind its alias, or other mappings.',
  },
  /** A node of TALLY_INDEX_URL belongs to another cluster than the other nodes. */
  'index.foreign-node': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Correct TALLY_INDEX_URL: all of its nodes must belong to one cluster. Nothing is written until they do.',
  },
  /** The SQLite file is corrupt, or it is not an index of Tally. */
  'index.damaged': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Check TALLY_INDEX_URL. Restore a damaged index file from a backup, or move it away and build a new index with a re-index.',
  },
  /** An older version of Tally has prepared the store, in a form that this one does not read. */
  'index.older': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Begin a new index: give it another name in TALLY_INDEX_PREFIX on OpenSearch, or in TALLY_INDEX_URL on SQLite, connect the buckets with `tally bucket add NAME`, and delete the old one.',
  },
  /** A newer version of Tally has prepared the store. */
  'index.newer': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Run the newest version of Tally that has used this index store, or a later one.',
  },
  /** Other workers changed the same stored record ten times in a row. The store answers, so nothing else waits. */
  'record.contended': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Wait: this usually passes. If it lasts, many workers store the same record at the same time; report it as a bug.',
  },
  /** A stored record cannot be read: a newer version of Tally wrote it, or it is damaged. */
  'record.newer': {
    circuit: 'index',
    opensAtOnce: true,
    jobs: 'wait',
    advice:
      'A newer version of Tally wrote this record, or it is damaged. Update this worker. The records of the bucket wait until then; other buckets are not affected.',
  },
  /** One index has a write block or is closed. The flood stage of a disk is such a block, on each index with a shard there. */
  'bucket.index-blocked': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      'Remove the write block from the index that the reason names (PUT INDEX/_settings with {"index.blocks.write": null}), or open it again (POST INDEX/_open). If the reason names the flood stage, free disk space on the data nodes. The records of the bucket wait until then.',
  },
  /** 401 or 403 for one index (not a block). */
  'bucket.index-denied': {
    circuit: 'index',
    jobs: 'wait',
    advice: 'Allow the role of the credentials in TALLY_INDEX_URL to read and write the index of this bucket.',
  },
  /** OpenSearch pushed writes to one index back (429) for as long as they could wait. */
  'bucket.index-overloaded': {
    circuit: 'index',
    jobs: 'wait',
    advice: 'Wait: this usually passes. If it lasts, move shards of the index of this bucket to data nodes with less load.',
  },
  /** The index of one bucket refuses or drops every document because of its configuration. */
  'bucket.index-misconfigured': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      'Read the reason, then mend the index of this bucket: its pipelines, its alias (which must lead to this index alone) or its mappings. The records of the bucket wait until then.',
  },
  /** The index or alias of a connected bucket is missing. */
  'bucket.index-missing': {
    circuit: 'index',
    jobs: 'wait',
    advice: 'Connect the bucket again with `tally bucket add NAME`: this creates the missing index. A re-index follows by itself.',
  },
  /** The cluster has as many shards as it may have (cluster.max_shards_per_node), so that no index can be created. */
  'bucket.index-limit': {
    circuit: 'index',
    jobs: 'wait',
    advice: `Each bucket has one index, with a shard for each of TALLY_INDEX_SHARDS and its replicas. Add a data node, raise cluster.max_shards_per_node, or lower TALLY_INDEX_REPLICAS; ${docsPage('docs/operate/sizing-cost.md#number-of-buckets')} says what a bucket costs.`,
  },
  /** The primary shard of one index is not active. */
  'bucket.index-unavailable': { circuit: 'index', jobs: 'wait', advice: 'Check the shard allocation of the index of this bucket.' },
  /** The store will never take this document: an error about the document itself, while its index accepts others. */
  'index.rejected': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Report this as a bug: the index store refused a document that Tally built. The original message is in the dead-letter queue.',
  },

  // ── S3 ──
  /** 5xx, a time-out or no connection. */
  's3.unavailable': {
    circuit: 'endpoint',
    jobs: 'stop',
    advice: 'S3 does not answer, or answers with 5xx. Check the network, the endpoint and the AWS status page; then try again.',
  },
  /** 503 SlowDown or 429. */
  's3.throttled': {
    circuit: 'bucket',
    jobs: 'stop',
    advice: 'Wait: S3 limits the request rate, which usually passes. If it lasts, run fewer workers.',
  },
  /** The credentials are missing, expired or wrong (not a denied object). */
  's3.credentials': {
    circuit: 'endpoint',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Check the AWS credentials of this process: they are missing, expired or not accepted.',
  },
  /** The bucket does not exist, or is in another region than its record names. */
  'bucket.missing': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: 'Check the name and the region of the bucket. If it is connected, `tally doctor NAME` says what to do.',
  },
  /** HeadBucket is denied, so nothing distinguishes a missing key from a missing bucket. */
  'bucket.denied': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: 'Allow this process s3:ListBucket on the bucket. The records of the bucket that need S3 wait until then.',
  },
  /** Many objects are gone that no event reported as deleted, and the bucket shows no object at all. */
  'bucket.unproven': {
    circuit: 'object',
    jobs: 'wait',
    advice:
      'Look at the bucket: its store may have lost its disk, or another store may answer at its address. Nothing more was deleted from the index. If the bucket was emptied on purpose, run `tally reindex NAME`, and then `tally jobs allow ID`.',
  },
  /** Neither HEAD nor LIST is permitted for the object. */
  'object.denied': {
    circuit: 'object',
    jobs: 'skip',
    advice: 'Allow this process s3:GetObject and s3:ListBucket on the bucket, and the permissions that its enrichment needs.',
  },
  /** The answer carried no Date header, so it proves nothing about time. */
  'object.undated': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Check the proxy in front of the S3 endpoint: its answers must carry a Date header.',
  },
  /** Any other refusal of one object. */
  'object.failed': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Read the reason, which names the request. Tally tries a message again until its last receive, then dead-letters it.',
  },

  /** GetBucketLifecycleConfiguration is not permitted: what the rules are going to expire is not known. */
  'lifecycle.denied': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Allow this process s3:GetLifecycleConfiguration on the bucket. Until then only the expirations that S3 reports with each object are followed.',
  },

  // ── listings ──
  /** The listing has keys out of UTF-8 order, repeated keys, or keys outside of the request: nothing may be concluded from it. */
  'listing.disorder': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'The S3 endpoint lists keys out of order, so that nothing can be compared with its listing. Nothing was deleted. Use an endpoint that lists in UTF-8 order.',
  },
  /** A page could not be read completely. */
  'listing.incomplete': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'The listing ended early or could not be read. Nothing was deleted, and the part is tried again. If this lasts, check the S3 endpoint and any proxy in front of it.',
  },

  // ── queues ──
  /** The queue does not exist. */
  'queue.missing': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Make the queue again with `tally setup --apply`, then run `tally bucket add NAME` for each bucket. What S3 reports until then is lost, and a re-index repairs it.',
  },
  /** SQS does not answer, or refuses the request. */
  'queue.unreachable': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Check TALLY_QUEUE_URL, the network, and the permissions sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.',
  },
  /** Messages wait in the bucket queue, and no process has received from it for a minute. */
  'queue.not-received': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Start a process with the role ingest (TALLY_ROLES), or look at the /readyz and the log of the one that runs. The messages wait until the queue deletes them.',
  },
  /** A message can never succeed, and no dead-letter queue is known: its gaps are open, and it stays in its queue. */
  'queue.no-dead-letter': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'No dead-letter queue is known. Give the bucket queue a redrive policy with maxReceiveCount 100, or set TALLY_DEAD_LETTER_QUEUE_URL.',
  },

  // ── the registry, as the command line's --registry reaches it ──
  /** No connection, or no answer in time. */
  'registry.unreachable': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Check that `tally serve` runs with the role http at that address (TALLY_REGISTRY_URL or --registry).',
  },
  /** Another program answers there, or a version of Tally whose answers this one does not know. */
  'registry.unknown-answer': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Check that a Tally of this version runs at that address (TALLY_REGISTRY_URL or --registry).',
  },

  // ── the issuer of logins ──
  /** No connection to the issuer, no answer in time, or an answer that is not one of an issuer. */
  'issuer.unreachable': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Check that TALLY_OIDC_ISSUER is the address of the issuer, exactly as its discovery document names it, and that it can be reached from the registry (HTTPS_PROXY counts). Sessions and API keys work meanwhile.',
  },
  /** The issuer refused the request of the registry: its client id, its secret or its redirect URI. */
  'issuer.refused': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Check TALLY_OIDC_CLIENT_ID and TALLY_OIDC_CLIENT_SECRET, and that the redirect URI at the issuer is TALLY_PUBLIC_URL with /login/callback.',
  },

  // ── the audit ──
  /** The audit record of an act could not be stored before the act, so the act was not begun. */
  'audit.unavailable': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Nothing was done. Read the reason: the index store at TALLY_INDEX_URL must be up and take writes, because it keeps the audit. Then send the request again.',
  },

  // ── connections ──
  /** AWS did not answer a request that reads or makes a part of a connection, or answered what cannot be used. */
  'connect.unavailable': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Read the reason and repeat the command: it continues where it stopped.',
  },
  /** AWS does not accept the credentials of such a request. What they would permit is not the question. */
  'connect.credentials': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'The AWS credentials of this process are missing, expired or not accepted. Renew them, for example with `aws sso login`, and repeat the command: it continues where it stopped.',
  },
  /** A quota of AWS leaves no room for a part of a connection. */
  'connect.quota': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Repeating the command does not help. Read which quota it is in the reason; have it raised in Service Quotas where AWS permits that, or remove what nothing uses any more. Then repeat the command: it continues where it stopped.',
  },

  // ── messages and records ──
  /** The body of the message is not JSON. */
  'message.not-json': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The message is not a bucket event. Find out what sends it to the bucket queue, then discard it.',
  },
  /** The dead-letter queue refuses messages of this size (its MaximumMessageSize), even without attributes. */
  'message.too-large': {
    circuit: 'object',
    jobs: 'retry',
    advice:
      'Raise MaximumMessageSize of the dead-letter queue to that of the bucket queue. The message stays in the bucket queue until then.',
  },
  /** The body is JSON of none of the formats in which bucket events arrive. */
  'message.unknown-wrapper': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The message has none of the formats that Tally knows. Check how the events of the bucket reach the queue.',
  },
  /** The body is in more envelopes than topics and bridges add. */
  'message.too-deep': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The message has more than eight envelopes. Check the chain of topics and bridges in front of the bucket queue.',
  },
  /** The message came through a topic that no connected bucket names. */
  'message.unknown-topic': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'No connected bucket names this topic. Connect the bucket with `tally bucket add NAME --source topic --topic ARN`, then replay the message.',
  },
  /** SNS asked for the confirmation of a subscription, and refused it. */
  'message.confirmation-failed': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Allow this process sns:ConfirmSubscription. If the token is older than three days, create the subscription again.',
  },
  /** The message was received again and again, and never settled: its worker ended each time, or another program receives from the queue. */
  'message.received-too-often': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Look why workers ended while they handled it (memory, restarts), and whether another program receives from the bucket queue. Its buckets are re-indexed. Replay it only once that is mended.',
  },
  /** SQS moved the message to the dead-letter queue by its redrive policy, or a source could not deliver it; why is not known. */
  'message.moved': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Check that maxReceiveCount is 100, that workers are not killed while they handle messages, and that the bucket queue admits its sources; then replay the message.',
  },
  /** An element of a message is no record. */
  'record.invalid': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Read the reason: this is no record of an object. Find out what sends it.',
  },
  /** A record names a bucket whose name S3 does not permit. */
  'record.bucket-invalid': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The record names no valid bucket. Find out what sends such records.',
  },
  /** A record of one object names no key. */
  'record.key-missing': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The record names no key. Find out what sends such records. The bucket has a loss gap until it is re-indexed.',
  },
  /** A record names a key that S3 does not permit. */
  'record.key-invalid': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The key is empty or longer than the 1,024 bytes that S3 allows. Find out what sends such records.',
  },

  // ── the process itself ──
  /** A mistake in Tally. */
  'internal.unexpected': {
    circuit: 'object',
    jobs: 'retry',
    advice: 'Report this as a bug, with the log lines around it. The message is kept.',
  },
} as const satisfies Record<string, FaultEntry>;

export type FaultCode = keyof typeof faults;

/** Whether a text is a code of this catalogue. */
export function isFaultCode(code: string): code is FaultCode {
  return Object.hasOwn(faults, code);
}

/** One occurrence of a fault: its code, and what happened to which thing (no secrets; may hold a key). */
export interface Fault {
  readonly code: FaultCode;
  readonly reason: string;
}

/** The one error class that carries a fault through a `throw`. Adapters throw nothing else. Passwords of URLs in its reason, API keys and tokens are masked. */
export class FaultError extends Error implements Fault {
  readonly code: FaultCode;
  readonly reason: string;

  constructor(code: FaultCode, reason: string, options?: ErrorOptions) {
    const shown = withoutSecrets(withoutPasswords(reason));
    super(`${code}: ${shown}`, options);
    this.name = 'FaultError';
    this.code = code;
    this.reason = shown;
  }
}

/** Faults that end without an operator: the daemon resumes when their cause has gone. */
const passing: ReadonlySet<FaultCode> = new Set([
  'index.unreachable',
  'index.overloaded',
  'index.blocked',
  's3.unavailable',
  's3.throttled',
]);

/** The advice about this bucket: its commands name it. */
export function adviceAbout(code: FaultCode, bucket: string): string {
  return faults[code].advice.replaceAll(' NAME', ` ${shellWord(bucket)}`);
}

/** The advice for the operator of a running daemon, which resumes without a restart after some faults. */
export function adviceWhileServing(code: FaultCode, bucket?: string): string {
  const advice = bucket === undefined ? faults[code].advice : adviceAbout(code, bucket);
  return passing.has(code) ? `${advice} Ingest resumes when this has passed, without a restart.` : advice;
}

/** The circuit that a fault concerns, from the catalogue. */
export function circuitOf(code: FaultCode): FaultCircuit {
  return faults[code].circuit;
}

/** Whether one such fault opens its circuit. */
export function opensAtOnce(code: FaultCode): boolean {
  return 'opensAtOnce' in faults[code];
}

/** What a re-index job does about a fault, from the catalogue. */
export function jobAnswerOf(code: FaultCode): JobAnswer {
  return faults[code].jobs;
}

/** Turns an error into a fault. Anything but a {@link FaultError} is `internal.unexpected`. Passwords in URLs are masked. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return { code: error.code, reason: error.reason };
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { code: 'internal.unexpected', reason: withoutPasswords(text) };
}
