import { withoutPasswords } from './passwords.ts';

/**
 * The catalogue of faults: everything that can fail about a message, a record or a request, with its scope and advice.
 * Whether something is tried again is decided here, never in a `catch`.
 *
 * Scopes:
 * - `shared`: a service that all buckets share does not work. Receiving stops and held messages
 *   stay held until a probe succeeds.
 * - `bucket`: the index of one bucket, or the bucket itself, is blocked, missing or denied. Only its records are parked.
 * - `own`: this one record fails. Its message is deferred until its last permitted receive, then dead-lettered.
 * - `never`: it can never succeed. The message is dead-lettered immediately.
 */
export type FaultScope = 'shared' | 'bucket' | 'own' | 'never';

interface FaultEntry {
  readonly scope: FaultScope;
  /** What to do about it, for the operator of a daemon as well as for the user of a command; shown with every report. */
  readonly advice: string;
}

export const faults = {
  // ── the index store ──
  /** No connection, a time-out, or 502/503/504 of the whole request. */
  'index.unreachable': {
    scope: 'shared',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and can be reached from here.',
  },
  /** 401 or 403 for the credentials in use (not a block). */
  'index.denied': { scope: 'shared', advice: 'Check the credentials in TALLY_INDEX_URL and the role that they map to.' },
  /** OpenSearch pushed back (429 of the whole request or of an item's thread pool). */
  'index.overloaded': {
    scope: 'shared',
    advice: 'Wait: this usually passes. If it lasts, add data nodes or lower TALLY_BULK_CONCURRENCY.',
  },
  /** A cluster-wide write block, flood stage, or a block on the state index. */
  'index.blocked': { scope: 'shared', advice: 'Free disk space in the cluster, or remove its write block.' },
  /** The state index is missing or not upgraded yet, or a record in it does not have Tally's format. */
  'index.state-missing': {
    scope: 'shared',
    advice: 'Start `tally serve` once: it creates what is missing. If it has run before, check TALLY_INDEX_URL and TALLY_INDEX_PREFIX.',
  },
  /** The SQLite file is corrupt, or it is not an index of Tally. */
  'index.damaged': {
    scope: 'shared',
    advice: 'Check TALLY_INDEX_URL. Restore a damaged index file from a backup, or move it away and build a new index with a re-index.',
  },
  /** The store was upgraded by a newer version of Tally. */
  'index.newer': { scope: 'shared', advice: 'Run the newest version of Tally that has used this index store, or a later one.' },
  /** One index has a write block or is closed. */
  'bucket.index-blocked': {
    scope: 'bucket',
    advice: 'Remove the write block from the index of this bucket, or open the index again. The records of the bucket wait until then.',
  },
  /** The index or alias of a connected bucket is missing. */
  'bucket.index-missing': {
    scope: 'bucket',
    advice: 'Connect the bucket again with `tally bucket add NAME`: this creates the missing index. Then re-index the bucket.',
  },
  /** The primary shard of one index is not active. */
  'bucket.index-unavailable': { scope: 'bucket', advice: 'Check the shard allocation of the index of this bucket.' },
  /** strict_dynamic_mapping_exception: the index is older than this version; a restart upgrades it. */
  'bucket.index-outdated': { scope: 'bucket', advice: 'Restart one worker of the newest version: it upgrades the mappings of the index.' },
  /** The store will never take this document (mapping error of one item). */
  'index.rejected': {
    scope: 'never',
    advice: 'Report this as a bug: the index store refused a document that Tally built. The original message is in the dead-letter queue.',
  },

  // ── S3 ──
  /** 5xx, a time-out or no connection. */
  's3.unavailable': {
    scope: 'shared',
    advice: 'S3 does not answer, or answers with 5xx. Check the network, the endpoint and the AWS status page; then try again.',
  },
  /** 503 SlowDown or 429. */
  's3.throttled': {
    scope: 'shared',
    advice: 'Wait: S3 limits the request rate, which usually passes. If it lasts, lower TALLY_S3_HEAD_CONCURRENCY.',
  },
  /** The credentials are missing, expired or wrong (not a denied object). */
  's3.credentials': { scope: 'shared', advice: 'Check the AWS credentials of this process: they are missing, expired or not accepted.' },
  /** The bucket does not exist, or is in another region than its record names. */
  'bucket.missing': {
    scope: 'bucket',
    advice:
      'Check the name and the region of the bucket. If a connected bucket was deleted, disconnect it with `tally bucket remove NAME`.',
  },
  /** Neither HEAD nor LIST is permitted for the object. */
  'object.denied': {
    scope: 'own',
    advice: 'Allow this process s3:GetObject and s3:ListBucket on the bucket, and the permissions that its enrichment needs.',
  },
  /** The answer carried no Date header, so it proves nothing about time. */
  'object.undated': { scope: 'own', advice: 'Check the proxy in front of the S3 endpoint: its answers must carry a Date header.' },
  /** Any other refusal of one object. */
  'object.failed': {
    scope: 'own',
    advice: 'Read the reason, which names the request. Tally tries a message again until its last permitted receive, then dead-letters it.',
  },

  /** GetBucketLifecycleConfiguration is not permitted: what the rules are going to expire is not known. */
  'lifecycle.denied': {
    scope: 'own',
    advice:
      'Allow this process s3:GetLifecycleConfiguration on the bucket. Until then only the expirations that S3 reports with each object are followed.',
  },

  // ── listings ──
  /** The listing has keys out of UTF-8 order, repeated keys, or keys outside of the request: nothing may be concluded from it. */
  'listing.disorder': {
    scope: 'own',
    advice:
      'The S3 endpoint lists keys out of order, so that nothing can be compared with its listing. Nothing was deleted. Use an endpoint that lists in UTF-8 order.',
  },
  /** A page could not be read completely. */
  'listing.incomplete': {
    scope: 'own',
    advice:
      'The listing ended early or could not be read. Nothing was deleted, and the range is tried again. If this lasts, check the S3 endpoint and any proxy in front of it.',
  },

  // ── queues ──
  'queue.unreachable': {
    scope: 'shared',
    advice:
      'Check TALLY_QUEUE_URL, the network, and the permissions sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.',
  },
  /** A message can never succeed, and no dead-letter queue is known: the message stays until the redrive policy moves it. */
  'queue.no-dead-letter': {
    scope: 'own',
    advice:
      'No dead-letter queue is known. Give the bucket queue a redrive policy with maxReceiveCount 20, or set TALLY_DEAD_LETTER_QUEUE_URL.',
  },

  // ── the registry, as the command line's --registry reaches it ──
  /** No connection, or no answer in time. */
  'registry.unreachable': {
    scope: 'own',
    advice: 'Check that `tally serve` runs with the role http at that address (TALLY_REGISTRY_URL or --registry).',
  },
  /** Another program answers there, or a version of Tally whose answers this one does not know. */
  'registry.unknown-answer': {
    scope: 'own',
    advice: 'Check that a Tally of this version runs at that address (TALLY_REGISTRY_URL or --registry).',
  },

  // ── messages and records ──
  'message.not-json': {
    scope: 'never',
    advice: 'The message is not a bucket event. Find out what sends it to the bucket queue, then discard it.',
  },
  /** SQS takes no message without a body, so this one cannot be sent to the dead-letter queue. */
  'message.empty': {
    scope: 'own',
    advice: 'The message has no body. Delete it by hand, or wait until the redrive policy of the bucket queue moves it.',
  },
  /** The dead-letter queue refuses messages of this size (its MaximumMessageSize), even without attributes. */
  'message.too-large': {
    scope: 'own',
    advice:
      'Raise MaximumMessageSize of the dead-letter queue to that of the bucket queue. The message stays in the bucket queue until then.',
  },
  'message.unknown-wrapper': {
    scope: 'never',
    advice: 'The message has none of the formats that Tally knows. Check how the events of the bucket reach the queue.',
  },
  'message.too-deep': {
    scope: 'never',
    advice: 'The message has more than two SNS envelopes. Check the chain of topics in front of the bucket queue.',
  },
  'message.unknown-topic': {
    scope: 'never',
    advice:
      'No connected bucket names this topic. Connect the bucket with `tally bucket add NAME --source topic --topic ARN`, then replay the message.',
  },
  'message.confirmation-failed': {
    scope: 'own',
    advice: 'Allow this process sns:ConfirmSubscription. If the token is older than three days, create the subscription again.',
  },
  /** SQS moved the message to the dead-letter queue by its redrive policy; why it was received so often is not known. */
  'message.moved': {
    scope: 'never',
    advice: 'Check that maxReceiveCount is 20 or more and that workers are not killed while they handle messages; then replay the message.',
  },
  'record.invalid': {
    scope: 'never',
    advice: 'Read the reason: a field is missing or of the wrong type. Find out what sends such records.',
  },
  'record.bucket-invalid': { scope: 'never', advice: 'The record names no valid bucket. Find out what sends such records.' },
  'record.key-missing': {
    scope: 'never',
    advice: 'The record names no key. Find out what sends such records. The bucket has a loss gap until it is re-indexed.',
  },
  'record.key-invalid': {
    scope: 'never',
    advice: 'The key is empty or longer than the 1,024 bytes that S3 allows. Find out what sends such records.',
  },
  'record.version-unknown': {
    scope: 'never',
    advice: 'The event has a major version other than 2. Update Tally, then replay the message.',
  },

  // ── the process itself ──
  'internal.unexpected': { scope: 'own', advice: 'Report this as a bug, with the log lines around it. The message is kept.' },
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

/** The one error class that carries a fault through a `throw`. Adapters throw nothing else. Passwords of URLs in its reason are masked. */
export class FaultError extends Error implements Fault {
  readonly code: FaultCode;
  readonly reason: string;

  constructor(code: FaultCode, reason: string, options?: ErrorOptions) {
    const shown = withoutPasswords(reason);
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

/** The advice for the operator of a running daemon, which resumes without a restart after some faults. */
export function adviceWhileServing(code: FaultCode): string {
  const { advice } = faults[code];
  return passing.has(code) ? `${advice} Ingest resumes when this has passed, without a restart.` : advice;
}

/** The scope of a fault, from the catalogue. */
export function scopeOf(code: FaultCode): FaultScope {
  return faults[code].scope;
}

/** Turns an error into a fault. Anything but a {@link FaultError} is `internal.unexpected`. Passwords in URLs are masked. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return { code: error.code, reason: error.reason };
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { code: 'internal.unexpected', reason: withoutPasswords(text) };
}
