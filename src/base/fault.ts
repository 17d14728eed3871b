/**
 * Faults: everything that can go wrong with a message, a record or a request to S3, SQS or the index. Each has a code, listed here once.
 *
 *   an adapter throws FaultError ──► its code ──► the circuit that it concerns: which records wait, and which become dead letters
 *                                           ├──► what jobs and sweeps do: wait, try again, fail
 *                                           └──► what an operator reads: advice, and a place in docs/reference/error-codes.md
 *
 * Whether a failure may pass is decided here, never in a `catch`. Callers' mistakes are listed in request-error.ts.
 */
import { shellWord } from './commands.ts';
import { docsPage } from './doc-pages.ts';
import { withoutSecrets } from './masked-secrets.ts';
import { withoutPasswords } from './passwords.ts';

/**
 * The circuits that a fault may concern (src/observing/circuits.ts), outer ones first:
 * - `cluster`: the index store. Tally receives nothing, and messages in hand wait until a probe succeeds.
 * - `index`: one bucket's index, or the bucket's record. That bucket's records wait.
 * - `endpoint`: S3 in one region. Each of its buckets waits by itself; exact events do not need S3.
 * - `bucket`: one bucket in S3. Requests about its objects wait.
 * - `queue`: SQS. No circuit has to stop the receiving, because it fails itself.
 *
 * Two values name no circuit:
 * - `object`: this one record fails, and its message alone is deferred until its last receive, then dead-lettered.
 * - `never`: it can never succeed. The message is dead-lettered immediately.
 */
export type FaultCircuit = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'queue' | 'object' | 'never';

/**
 * What re-index jobs, sweeps and the store's set-up do about a fault.
 *
 * - `stop`: a service that all buckets share is down. A job keeps its place and waits; a sweep leaves the bucket; set-up ends.
 * - `wait`: this bucket, or its index, is down. Its jobs keep their place and wait; a sweep leaves the bucket; set-up
 *   continues with the other buckets.
 * - `skip`: permission is missing, for one object or for all. A job waits; a sweep continues with the next object.
 * - `retry`: this object or this listing fails. A job tries again, and fails after three attempts without progress; a sweep
 *   continues with the next object.
 * - `fail`: the request can never succeed. A job fails.
 */
export type JobAnswer = 'stop' | 'wait' | 'skip' | 'retry' | 'fail';

interface FaultEntry {
  /** Default: `object`. */
  readonly circuit?: FaultCircuit;
  /** Set if a single fault opens the circuit, because it cannot be about one request only. Other faults must repeat first. */
  readonly opensAtOnce?: true;
  /** Default: `retry`. */
  readonly jobs?: JobAnswer;
  /** What to do about it. Every report shows it, to operators of a daemon and to users of a command. */
  readonly advice: string;
}

/**
 * The catalogue of faults: everything that can fail about a message, a record or a request, with the circuit that it concerns
 * and advice. This catalogue decides whether a record waits, is tried again or is rejected; a `catch` never does.
 */
export const faults = {
  // ── the index store ──
  /** No connection, a time-out, or 502/503/504 of the whole request. */
  'index.unreachable': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and reachable from here.',
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
    advice: 'Wait: this usually passes. If it lasts, add data nodes or run fewer workers.',
  },
  /** A cluster-wide write block, a block on the state index, or a full disk under SQLite. */
  'index.blocked': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Free disk space where the index store keeps its data. If OpenSearch set a write block, remove it afterwards.',
  },
  /** The state index is missing. */
  'index.state-missing': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Start the service, and wait until it is ready: it creates what is missing. If it has run before, check TALLY_INDEX_URL and TALLY_INDEX_PREFIX. If they are right, the index is lost: restore a snapshot, and the service continues; or restart the service to begin with an empty index.',
  },
  /** The state index takes no records because of its configuration: a pipeline, its alias or its mapping. */
  'index.misconfigured': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Read the reason, then remove the addition to the state index: a pipeline, a second index behind its alias, or changed mappings.',
  },
  /** A node of TALLY_INDEX_URL belongs to another cluster than the other nodes. */
  'index.foreign-node': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Correct TALLY_INDEX_URL: all of its nodes must belong to one cluster. Until then, Tally writes nothing.',
  },
  /** The SQLite file is corrupt, or it is not an index of Tally. */
  'index.damaged': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Check TALLY_INDEX_URL. If the index file is damaged, restore it from a backup, or move it away and build a new index with a re-index.',
  },
  /** Another version of Tally has prepared the store, in a form that this one does not read. */
  'index.other-version': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Run the newest Tally version that has used this index store, or a later one. If that is this one, start a new index: choose a new TALLY_INDEX_PREFIX for OpenSearch, or a new TALLY_INDEX_URL for SQLite, connect the buckets with `tally bucket add NAME`, and delete the old index.',
  },
  /** Other workers changed the same stored record ten times in a row. The store answers, so nothing else waits. */
  'record.contended': {
    advice: 'Wait: this usually passes. If it lasts, report a bug: many workers keep storing the same record at the same time.',
  },
  /** A stored record cannot be read: a newer version of Tally wrote it, or it is damaged. */
  'record.newer': {
    circuit: 'index',
    opensAtOnce: true,
    jobs: 'wait',
    advice:
      "A newer Tally version wrote this record, or it is damaged. Update this worker. Until then, the bucket's records wait; other buckets are not affected.",
  },
  /** One index has a write block or is closed. The flood stage of a disk is such a block, on each index with a shard there. */
  'bucket.index-blocked': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      'Remove the write block from the index that the reason names (PUT INDEX/_settings with {"index.blocks.write": null}), or reopen it (POST INDEX/_open). If the reason names the flood stage, free disk space on the data nodes. Until then, the bucket\'s records wait.',
  },
  /** 401 or 403 for one index (not a block). */
  'bucket.index-denied': {
    circuit: 'index',
    jobs: 'wait',
    advice: "Allow the role behind the credentials in TALLY_INDEX_URL to read and write this bucket's index.",
  },
  /** OpenSearch pushed writes to one index back (429) for as long as they could wait. */
  'bucket.index-overloaded': {
    circuit: 'index',
    jobs: 'wait',
    advice: "Wait: this usually passes. If it lasts, move shards of this bucket's index to less loaded data nodes.",
  },
  /** The index of one bucket refuses or drops every document because of its configuration. */
  'bucket.index-misconfigured': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      "Read the reason, then fix this bucket's index: its pipelines, its alias (which must point to this index only) or its mappings. Until then, the bucket's records wait.",
  },
  /** The index or alias of a connected bucket is missing. */
  'bucket.index-missing': {
    circuit: 'index',
    jobs: 'wait',
    advice: 'Run `tally bucket add NAME` again, which creates the missing index. Tally then re-indexes the bucket by itself.',
  },
  /** The cluster has reached its limit of shards (cluster.max_shards_per_node), so no index can be created. */
  'bucket.index-limit': {
    circuit: 'index',
    jobs: 'wait',
    advice: `Each bucket has one index, with TALLY_INDEX_SHARDS shards and their replicas. Add a data node, raise cluster.max_shards_per_node, or lower TALLY_INDEX_REPLICAS; ${docsPage('docs/operate/sizing-cost.md#number-of-buckets')} says what a bucket costs.`,
  },
  /** The primary shard of one index is not active. */
  'bucket.index-unavailable': { circuit: 'index', jobs: 'wait', advice: "Check the shard allocation of this bucket's index." },
  /** The store will never take this document: an error about the document itself, while its index accepts others. */
  'index.rejected': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Report a bug: the index store refused a document that Tally built. The original message is in the dead-letter queue.',
  },

  // ── S3 ──
  /** 5xx, a time-out or no connection. */
  's3.unavailable': {
    circuit: 'endpoint',
    jobs: 'stop',
    advice: 'S3 does not answer, or answers with 5xx. Check the network, the endpoint and the AWS status page, then try again.',
  },
  /** 503 SlowDown or 429. */
  's3.throttled': {
    circuit: 'bucket',
    jobs: 'stop',
    advice: 'Wait: S3 is throttling requests, which usually passes. If it lasts, run fewer workers.',
  },
  /** The credentials are missing, expired or wrong (not a denied object). */
  's3.credentials': {
    circuit: 'endpoint',
    opensAtOnce: true,
    jobs: 'stop',
    advice: "Check this process's AWS credentials: they are missing, expired or not accepted.",
  },
  /** The bucket does not exist, or is in another region than its record names. */
  'bucket.missing': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: "Check the bucket's name and region. If it is connected, `tally doctor NAME` says what to do.",
  },
  /** HeadBucket is denied, so nothing distinguishes a missing key from a missing bucket. */
  'bucket.denied': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: "Allow this process s3:ListBucket on the bucket. Until then, the bucket's records that need S3 wait.",
  },
  /** Many objects are gone that no event reported as deleted, and the bucket shows no objects at all. */
  'bucket.unproven': {
    circuit: 'object',
    jobs: 'wait',
    advice:
      'Look at the bucket: its store may have lost its disk, or a different store may answer at its address. Tally deleted nothing more from the index. If the bucket was emptied on purpose, run `tally reindex NAME`, then `tally jobs allow ID`.',
  },
  /** Neither HEAD nor LIST is permitted for the object. */
  'object.denied': {
    circuit: 'object',
    jobs: 'skip',
    advice: 'Allow this process s3:GetObject and s3:ListBucket on the bucket, and the permissions that its enrichment needs.',
  },
  /** S3 refused one object for any other reason, or its answer has no Date header, so it does not show at what time it was true. */
  'object.failed': {
    advice: 'Read the reason, which names the request. Tally retries the message until its last receive, then dead-letters it.',
  },

  /** GetBucketLifecycleConfiguration is not permitted, so Tally does not know what the rules will expire. */
  'lifecycle.denied': {
    advice:
      'Allow this process s3:GetLifecycleConfiguration on the bucket. Until then, Tally follows only the expirations that S3 reports with each object.',
  },

  // ── listings ──
  /** The listing has keys out of UTF-8 order, repeated keys, or keys outside the request, so nothing may be concluded from it. */
  'listing.disorder': {
    advice:
      "The S3 endpoint lists keys out of order, so its listing can't be compared. Nothing was deleted. Use an endpoint that lists in UTF-8 order.",
  },
  /** A page could not be read completely. */
  'listing.incomplete': {
    advice:
      'The listing ended early or could not be read. Nothing was deleted, and Tally retries this part. If it lasts, check the S3 endpoint and any proxy in front of it.',
  },

  // ── queues ──
  /** The queue does not exist. */
  'queue.missing': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Recreate the queue with `tally setup --apply`, then run `tally bucket add NAME` for each bucket. Events until then are lost; a re-index repairs that.',
  },
  /** SQS does not answer, or refuses the request. */
  'queue.unreachable': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Check TALLY_QUEUE_URL, the network, and the permissions sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.',
  },
  /** Messages are waiting in the bucket queue, and no process has received from it for a minute. */
  'queue.not-received': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Start a process with the role ingest (TALLY_ROLES), or check /readyz and the log of the running one. The messages wait until the queue deletes them.',
  },
  /** A message can never succeed, and no dead-letter queue is known. Tally has opened its gaps and leaves it in its queue. */
  'queue.no-dead-letter': {
    advice:
      'No dead-letter queue is known. Give the bucket queue a redrive policy with maxReceiveCount 100, or set TALLY_DEAD_LETTER_QUEUE_URL.',
  },

  // ── the registry, as the command line's --registry reaches it ──
  /** No connection, or no answer in time. */
  'registry.unreachable': {
    advice: 'Check that `tally serve` runs with the role http at this address (TALLY_REGISTRY_URL or --registry).',
  },
  /** Another program answers there, or a Tally version whose responses this one does not know. */
  'registry.unknown-answer': {
    advice: 'Check that this version of Tally runs at this address (TALLY_REGISTRY_URL or --registry).',
  },

  // ── the issuer of logins ──
  /** No connection to the issuer, no response in time, or a response that is not an issuer's. */
  'issuer.unreachable': {
    advice:
      'Check that TALLY_OIDC_ISSUER is exactly the issuer in its discovery document, and that the registry can reach it (HTTPS_PROXY applies). Existing sessions and API keys keep working.',
  },
  /** The issuer refused the registry's request: its client id, secret or redirect URI. */
  'issuer.refused': {
    advice:
      'Check TALLY_OIDC_CLIENT_ID and TALLY_OIDC_CLIENT_SECRET, and that the redirect URI at the issuer is TALLY_PUBLIC_URL plus /login/callback.',
  },

  // ── the audit ──
  /** Tally could not store the audit record of an action, so it did not begin the action. */
  'audit.unavailable': {
    advice:
      'Nothing was done. Read the reason: the index store at TALLY_INDEX_URL keeps the audit, so it must be up and accept writes. Then send the request again.',
  },

  // ── connections ──
  /** AWS did not answer a request that reads or creates a part of a connection, or its answer cannot be used. */
  'connect.unavailable': {
    advice: 'Read the reason and repeat the command: it continues where it stopped.',
  },
  /** AWS does not accept the credentials for such a request at all, so their permissions do not matter. */
  'connect.credentials': {
    advice:
      'The AWS credentials of this process are missing, expired or not accepted. Renew them, for example with `aws sso login`, and repeat the command: it continues where it stopped.',
  },

  // ── messages and records ──
  /** The message's body is not JSON. */
  'message.not-json': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'The message is not a bucket event. Find out what sends it to the bucket queue, then discard it.',
  },
  /** The dead-letter queue refuses messages of this size (its MaximumMessageSize), even without attributes. */
  'message.too-large': {
    advice: "Raise the dead-letter queue's MaximumMessageSize to the bucket queue's. Until then, the message stays in the bucket queue.",
  },
  /** The body is JSON, but in none of the formats of bucket events, or in more envelopes than topics and bridges could have added. */
  'message.unknown-wrapper': {
    circuit: 'never',
    jobs: 'fail',
    advice: "Tally does not know the message's format. Check how the bucket's events reach the queue.",
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
    advice: 'Allow this process sns:ConfirmSubscription. If the token is older than three days, recreate the subscription.',
  },
  /** The message was received again and again but never settled: its worker died each time, or another program receives from the queue. */
  'message.received-too-often': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Find out why workers died while processing it (memory, restarts), and whether another program receives from the bucket queue. Tally re-indexes its buckets. Replay it only after the cause is fixed.',
  },
  /** SQS moved the message to the dead-letter queue by its redrive policy, or a source could not deliver it. The cause is unknown. */
  'message.moved': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Check that maxReceiveCount is 100, that workers are not killed while processing messages, and that the bucket queue admits its sources. Then replay the message.',
  },
  /** An element of a message is not a record of an object: it names no valid bucket or key, for example. */
  'record.invalid': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Read the reason: this is not a record of an object. Find out what sends it. If it names a bucket, that bucket has a gap until a re-index.',
  },

  // ── the process itself ──
  /** A bug in Tally. */
  'internal.unexpected': {
    advice: 'Report a bug, with the log lines around it. Tally keeps the message.',
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

/** The only error class that carries a fault. Adapters throw no other errors. Its reason shows no API keys, no tokens and no passwords in URLs: they are masked. */
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

/** Returns a fault's advice, with the bucket's name filled into its commands. */
export function adviceAbout(code: FaultCode, bucket = 'NAME'): string {
  return faults[code].advice.replaceAll(' NAME', ` ${shellWord(bucket)}`);
}

/** Returns the circuit that a fault concerns, from the catalogue. */
export function circuitOf(code: FaultCode): FaultCircuit {
  const { circuit = 'object' }: FaultEntry = faults[code];
  return circuit;
}

/** Whether a single fault of this code opens its circuit. */
export function opensAtOnce(code: FaultCode): boolean {
  return 'opensAtOnce' in faults[code];
}

/** Returns what a re-index job does about a fault, from the catalogue. */
export function jobAnswerOf(code: FaultCode): JobAnswer {
  const { jobs = 'retry' }: FaultEntry = faults[code];
  return jobs;
}

/** Turns an error into a fault. Anything but a {@link FaultError} is `internal.unexpected`. Passwords in URLs are masked. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return { code: error.code, reason: error.reason };
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { code: 'internal.unexpected', reason: withoutPasswords(text) };
}
