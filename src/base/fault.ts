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
import { withoutSecrets, withoutPasswords } from './secrets.ts';

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
  /** The index store cannot be reached, does not answer in time, or answers a whole request with 502, 503 or 504. */
  'index.unreachable': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and reachable from here.',
  },
  /** The index store refuses the credentials (401, or 403 without a block). */
  'index.denied': {
    circuit: 'cluster',
    jobs: 'stop',
    advice: 'Check the credentials in TALLY_INDEX_URL and the role that they map to.',
  },
  /** OpenSearch pushed a whole request back (429), or another process holds the SQLite file's write lock. */
  'index.overloaded': {
    circuit: 'cluster',
    jobs: 'stop',
    advice:
      'Wait: this usually passes. If it lasts, add data nodes or run fewer workers (OpenSearch), or end the program that locks the file (SQLite).',
  },
  /** OpenSearch has a write block on the cluster or on the state index, or SQLite's disk is full. */
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
  /** The state index's configuration keeps it from taking records: a pipeline, its alias or its mapping. */
  'index.misconfigured': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Read the reason, then remove the addition to the state index: a pipeline, a second index behind its alias, or changed mappings.',
  },
  /** The nodes in TALLY_INDEX_URL belong to different clusters. */
  'index.foreign-node': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice: 'Correct TALLY_INDEX_URL: all its nodes must belong to one cluster. Until then, Tally writes nothing.',
  },
  /** The SQLite file is corrupt, or it is not a Tally index. */
  'index.damaged': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Check TALLY_INDEX_URL. If the index file is damaged, restore it from a backup, or move it away and build a new index with a re-index.',
  },
  /** Another Tally version prepared the store in a format that this one cannot read. */
  'index.other-version': {
    circuit: 'cluster',
    opensAtOnce: true,
    jobs: 'stop',
    advice:
      'Run the newest Tally version that has used this index store, or a later one. If that is this one, start a new index: choose a new TALLY_INDEX_PREFIX for OpenSearch, or a new TALLY_INDEX_URL for SQLite, connect the buckets with `tally bucket add NAME`, and delete the old index.',
  },
  /** Other workers changed the same stored record ten times in a row. The store answers, so nothing else waits. */
  'record.contended': {
    advice: 'Wait: this usually passes. If it lasts, report a bug.',
  },
  /** Tally cannot read a stored record: a newer version wrote it, or it is damaged. */
  'record.newer': {
    circuit: 'index',
    opensAtOnce: true,
    jobs: 'wait',
    advice: `Update this worker: a newer Tally version probably wrote this record. Otherwise it is damaged: read ${docsPage('docs/operate/backup-upgrade.md')} before you restore a backup.`,
  },
  /** One index has a write block or is closed. A disk at its flood stage puts such a block on each index with a shard there. */
  'bucket.index-blocked': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      'Remove the write block from the index that the reason names (PUT INDEX/_settings with {"index.blocks.write": null}), or reopen it (POST INDEX/_open). If the reason names the flood stage, free disk space on the data nodes.',
  },
  /** OpenSearch denies access to one index (401, or 403 without a block). */
  'bucket.index-denied': {
    circuit: 'index',
    jobs: 'wait',
    advice: "Allow the role behind the credentials in TALLY_INDEX_URL to read and write this bucket's index.",
  },
  /** OpenSearch kept pushing back (429) writes to one index until they could wait no longer. */
  'bucket.index-overloaded': {
    circuit: 'index',
    jobs: 'wait',
    advice: "Wait: this usually passes. If it lasts, move shards of this bucket's index to less loaded data nodes.",
  },
  /** A bucket's index refuses or drops every document because of its configuration. */
  'bucket.index-misconfigured': {
    circuit: 'index',
    jobs: 'wait',
    advice:
      "Read the reason, then fix this bucket's index: its pipelines, its alias (which must point to this index only) or its mappings.",
  },
  /** A connected bucket's index or alias is missing. */
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
  /** The store will never take this document: the error concerns the document itself, and its index accepts others. */
  'index.rejected': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Report a bug: the index store refused a document that Tally built. The original message is in the dead-letter queue.',
  },

  // ── S3 ──
  /** S3 cannot be reached, does not answer in time, or answers with 5xx. */
  's3.unavailable': {
    circuit: 'endpoint',
    jobs: 'stop',
    advice: 'Check the network, the S3 endpoint and the AWS status page. Tally keeps retrying; repeat a command that failed.',
  },
  /** S3 throttles requests (503 SlowDown, or 429). */
  's3.throttled': {
    circuit: 'bucket',
    jobs: 'stop',
    advice: 'Wait: throttling usually passes. If it lasts, run fewer workers.',
  },
  /** The credentials are missing, expired or wrong (not a denied object). */
  's3.credentials': {
    circuit: 'endpoint',
    opensAtOnce: true,
    jobs: 'stop',
    advice: "Check this process's AWS credentials: they are missing, expired or not accepted.",
  },
  /** The bucket does not exist, or is not in the region that its record names. */
  'bucket.missing': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: "Check the bucket's name and region. If it is connected, `tally doctor NAME` says what to do.",
  },
  /** S3 denies HeadBucket, so Tally cannot tell a missing key from a missing bucket. */
  'bucket.denied': {
    circuit: 'bucket',
    opensAtOnce: true,
    jobs: 'wait',
    advice: 'Allow this process s3:ListBucket on the bucket.',
  },
  /** Many objects are gone although no event reported a deletion, and the bucket shows no object at all. */
  'bucket.unproven': {
    circuit: 'object',
    jobs: 'wait',
    advice:
      'Look at the bucket: its store may have lost its disk, or a different store may answer at its address. Tally deletes no document there unless an event reports it. If the bucket was emptied on purpose, run `tally reindex NAME`, then `tally jobs allow ID`.',
  },
  /** S3 permits neither HEAD nor LIST for the object. */
  'object.denied': {
    circuit: 'object',
    jobs: 'skip',
    advice: 'Allow this process s3:GetObject and s3:ListBucket on the bucket, and the permissions that its enrichment needs.',
  },
  /** S3 refused a request about one object for any other reason, or answered without a Date header, so that nothing shows when the answer was true. */
  'object.failed': {
    advice: 'Read the reason, which names the request, and fix its cause.',
  },

  /** S3 denies GetBucketLifecycleConfiguration, so Tally does not know what the rules will expire. */
  'lifecycle.denied': {
    advice:
      'Allow this process s3:GetLifecycleConfiguration on the bucket. Until then, Tally follows only the expirations that S3 reports with each object.',
  },

  // ── listings ──
  /** A listing has keys out of UTF-8 order, repeated keys, or keys that were not requested, so Tally concludes nothing from it. */
  'listing.disorder': {
    advice: 'Use an S3 endpoint that lists keys in UTF-8 order. Tally deleted nothing.',
  },
  /** A listing ended early, or Tally could not read a page of it completely. */
  'listing.incomplete': {
    advice: 'Wait: Tally deleted nothing and retries this part. If it lasts, check the S3 endpoint and any proxy in front of it.',
  },

  // ── queues ──
  /** The queue does not exist. */
  'queue.missing': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Recreate the queue with `tally setup --apply`, then run `tally bucket add NAME` for each bucket. Events until then are lost, and a re-index repairs them.',
  },
  /** SQS does not answer, or refuses the request. */
  'queue.unreachable': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      'Check TALLY_QUEUE_URL, the network, and the permissions sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.',
  },
  /** Messages have waited in the bucket queue for a minute, and no process receives from it. */
  'queue.not-received': {
    circuit: 'queue',
    jobs: 'stop',
    advice:
      "Start a process with the role ingest (TALLY_ROLES), or check the running one's /readyz and log. The queue deletes the messages once its retention ends.",
  },
  /** A message can never succeed, but Tally knows no dead-letter queue for it. */
  'queue.no-dead-letter': {
    advice: 'Give the bucket queue a redrive policy with maxReceiveCount 100, or set TALLY_DEAD_LETTER_QUEUE_URL.',
  },

  // ── the registry, as the command line's --registry reaches it ──
  /** The registry cannot be reached, or does not answer in time. */
  'registry.unreachable': {
    advice: 'Check that `tally serve` runs with the role http at this address (TALLY_REGISTRY_URL or --registry).',
  },
  /** Another program answers at this address, or a Tally version whose responses this one does not know. */
  'registry.unknown-answer': {
    advice: 'Check that this version of Tally runs at this address (TALLY_REGISTRY_URL or --registry).',
  },

  // ── the issuer of logins ──
  /** The issuer cannot be reached, does not answer in time, or does not answer like an issuer. */
  'issuer.unreachable': {
    advice:
      'Check that TALLY_OIDC_ISSUER is exactly the issuer in its discovery document, and that the registry can reach it (HTTPS_PROXY applies). Existing sessions and API keys keep working.',
  },
  /** The issuer refused the registry's client ID, secret or redirect URI. */
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
  /** AWS did not answer a request that reads or creates part of a connection, or Tally cannot use the answer. */
  'connect.unavailable': {
    advice: 'Read the reason and repeat the command: it continues where it stopped.',
  },
  /** AWS does not accept this process's credentials. */
  'connect.credentials': {
    advice:
      "Renew this process's AWS credentials, for example with `aws sso login`, and repeat the command: it continues where it stopped.",
  },

  // ── messages and records ──
  /** The message's body is not JSON. */
  'message.not-json': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Find out what sends it to the bucket queue, then discard it: it is not a bucket event.',
  },
  /** The dead-letter queue refuses messages of this size (its MaximumMessageSize), even without attributes. */
  'message.too-large': {
    advice: "Raise the dead-letter queue's MaximumMessageSize to the bucket queue's.",
  },
  /** The body is JSON, but not a known format of bucket events, or it is in more than eight envelopes. */
  'message.unknown-wrapper': {
    circuit: 'never',
    jobs: 'fail',
    advice: "Check how the bucket's events reach the queue.",
  },
  /** The message came through a topic that no connected bucket names. */
  'message.unknown-topic': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Connect the bucket with `tally bucket add NAME --source topic --topic ARN`, then replay the message.',
  },
  /** SNS asked Tally to confirm a subscription, then refused the confirmation. */
  'message.confirmation-failed': {
    advice: 'Allow this process sns:ConfirmSubscription. If the token is older than three days, recreate the subscription.',
  },
  /** The message was received too often without being settled: its worker died each time, or another program receives from the queue. */
  'message.received-too-often': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Find out why workers died while processing it (memory, restarts), and whether another program receives from the bucket queue. Fix the cause before you replay it. Tally re-indexes its buckets.',
  },
  /** SQS moved the message to the dead-letter queue by its redrive policy, or a source could not deliver it. The cause is unknown. */
  'message.moved': {
    circuit: 'never',
    jobs: 'fail',
    advice:
      'Check that maxReceiveCount is 100, that workers are not killed while processing messages, and that the bucket queue admits its sources. Then replay the message.',
  },
  /** A record in the message does not describe an object, for example because it names no valid bucket or key. */
  'record.invalid': {
    circuit: 'never',
    jobs: 'fail',
    advice: 'Read the reason, and find out what sends it. If it names a bucket, that bucket has a gap until a re-index.',
  },

  // ── the process itself ──
  /** An error that only a bug in Tally can cause. */
  'internal.unexpected': {
    advice: 'Report a bug, with the log lines around it.',
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
