import { withoutPasswords } from './passwords.ts';

/**
 * The catalogue of faults: everything that can go wrong with a message, a record or a request, with its scope and advice.
 * Whether something is tried again is decided here, never in a `catch`.
 *
 * Scopes:
 * - `shared`: nothing can be written or asked at all. Receiving stops, what is held stays held, a probe resumes it.
 * - `bucket`: one bucket's index (or the bucket itself) is out of order. Only its records are parked.
 * - `own`: this one record. Its message is deferred until its last permitted receive, then dead-lettered.
 * - `never`: can never succeed. Dead-lettered at once.
 */
export type FaultScope = 'shared' | 'bucket' | 'own' | 'never';

interface FaultEntry {
  readonly scope: FaultScope;
  /** What an operator should do about it: one sentence, shown with every report of the fault. */
  readonly advice: string;
}

export const faults = {
  // ── the index store ──
  /** No connection, a time-out, or 502/503/504 of the whole request. */
  'index.unreachable': {
    scope: 'shared',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and reachable; ingest goes on by itself.',
  },
  /** 401 or 403 for the credentials in use (not a block). */
  'index.denied': { scope: 'shared', advice: 'Check the credentials in TALLY_INDEX_URL and the role they map to.' },
  /** OpenSearch pushed back (429 of the whole request or of an item's thread pool). */
  'index.overloaded': { scope: 'shared', advice: 'Nothing to do unless it lasts: then add data nodes or lower TALLY_BULK_CONCURRENCY.' },
  /** A cluster-wide write block, flood stage, or a block on the state index. */
  'index.blocked': { scope: 'shared', advice: 'Free disk space or remove the cluster write block; ingest goes on by itself.' },
  /** The state index is missing or does not answer as ours. */
  'index.state-missing': {
    scope: 'shared',
    advice: 'Start `tally serve` once: it makes what is missing; else check TALLY_INDEX_URL and TALLY_INDEX_PREFIX.',
  },
  /** The SQLite file is corrupt, or no index of ours at all. */
  'index.damaged': {
    scope: 'shared',
    advice: 'Check TALLY_INDEX_URL; a damaged index file is restored from a backup, or moved away and made anew by a re-index.',
  },
  /** The store was upgraded by a newer version of Tally. */
  'index.newer': { scope: 'shared', advice: 'Run the newest version that has ever used this index store, or a later one.' },
  /** One index has a write block or is closed. */
  'bucket.index-blocked': { scope: 'bucket', advice: 'Remove the write block of this bucket’s index or open it again; its records wait.' },
  /** The index or alias of a connected bucket is missing. */
  'bucket.index-missing': {
    scope: 'bucket',
    advice: 'Run `tally bucket add` for the bucket again: it re-creates what is missing. Then re-index.',
  },
  /** The primary shard of one index is not active. */
  'bucket.index-unavailable': { scope: 'bucket', advice: 'Check the shard allocation of this bucket’s index.' },
  /** strict_dynamic_mapping_exception: the index is older than this version; a restart upgrades it. */
  'bucket.index-outdated': { scope: 'bucket', advice: 'Restart one worker of the newest version: it upgrades the mappings.' },
  /** The store will never take this document (mapping error of one item). */
  'index.rejected': {
    scope: 'never',
    advice: 'Report this: a document that Tally built was refused. The original message is in the dead-letter queue.',
  },

  // ── S3 ──
  /** 5xx, a time-out or no connection. */
  's3.unavailable': { scope: 'shared', advice: 'S3 does not answer or answers 5xx; ingest goes on by itself.' },
  /** 503 SlowDown or 429. */
  's3.throttled': { scope: 'shared', advice: 'S3 asks to slow down; lower TALLY_S3_HEAD_CONCURRENCY if it lasts.' },
  /** The credentials are missing, expired or wrong (not a denied object). */
  's3.credentials': { scope: 'shared', advice: 'Check the AWS credentials of this process.' },
  /** The bucket does not exist, or lives in another region than its record says. */
  'bucket.missing': { scope: 'bucket', advice: 'The bucket is gone or cannot be reached: `tally bucket remove` it, or restore it.' },
  /** Neither HEAD nor LIST is permitted for the object. */
  'object.denied': {
    scope: 'own',
    advice: 'Allow s3:GetObject and s3:ListBucket on the bucket to this process, and what its enrichment needs (README, “Enrichment”).',
  },
  /** The answer carried no Date header, so it proves nothing about time. */
  'object.undated': { scope: 'own', advice: 'The S3 endpoint must answer with a Date header; check the proxy in between.' },
  /** Any other refusal of one object. */
  'object.failed': { scope: 'own', advice: 'See the reason; the message is tried again and then dead-lettered.' },

  /** GetBucketLifecycleConfiguration is not permitted: what the rules are going to expire is not known. */
  'lifecycle.denied': {
    scope: 'own',
    advice:
      'Allow s3:GetLifecycleConfiguration on the bucket to this process; until then only expirations that objects told themselves are followed.',
  },

  // ── listings ──
  /** Keys out of UTF-8 order, repeated, or outside of what was asked for: nothing may be concluded from it. */
  'listing.disorder': {
    scope: 'own',
    advice: 'The S3 endpoint lists keys out of order; only S3’s own order can be compared. Nothing was deleted.',
  },
  /** A page that could not be read whole. */
  'listing.incomplete': {
    scope: 'own',
    advice: 'The listing ended early or could not be read; nothing was deleted. The range is tried again.',
  },

  // ── queues ──
  'queue.unreachable': {
    scope: 'shared',
    advice: 'Check TALLY_QUEUE_URL, the network and the permissions sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility.',
  },
  /** A message can never succeed, and no dead-letter queue is known: it stays until the redrive policy moves it. */
  'queue.no-dead-letter': {
    scope: 'own',
    advice: 'Give the bucket queue a redrive policy, or set TALLY_DEAD_LETTER_QUEUE_URL.',
  },

  // ── the registry, as the command line's --registry reaches it ──
  /** No connection, or no answer in time. */
  'registry.unreachable': {
    scope: 'own',
    advice: 'Check that `tally serve` with the role http runs at that address (TALLY_REGISTRY_URL or --registry).',
  },
  /** Something else answers there, or a version that says what this one does not know. */
  'registry.unknown-answer': {
    scope: 'own',
    advice: 'Check that the address (TALLY_REGISTRY_URL or --registry) is that of a tally of this version.',
  },

  // ── messages and records ──
  'message.not-json': { scope: 'never', advice: 'Something that is no bucket event was sent to the bucket queue.' },
  'message.unknown-wrapper': { scope: 'never', advice: 'The body is none of the wrappers Tally knows; see “Sources” in the README.' },
  'message.too-deep': { scope: 'never', advice: 'SNS envelopes may be nested at most twice.' },
  'message.unknown-topic': {
    scope: 'never',
    advice: 'No connected bucket names this topic: `tally bucket add NAME --topic ARN`, then replay.',
  },
  'message.confirmation-failed': {
    scope: 'own',
    advice: 'SNS refused the confirmation; check sns:ConfirmSubscription and whether the token is older than three days.',
  },
  /** SQS moved the message to the dead-letter queue by its redrive policy; nobody knows why it was received so often. */
  'message.moved': {
    scope: 'never',
    advice: 'A worker was killed at each receive, or maxReceiveCount is too low (20 is recommended); replay it.',
  },
  'record.invalid': { scope: 'never', advice: 'A field is missing or of the wrong type; see the reason.' },
  'record.bucket-invalid': { scope: 'never', advice: 'The record names no possible bucket.' },
  'record.key-missing': { scope: 'never', advice: 'The record names no key; the bucket has a loss gap until it is re-indexed.' },
  'record.key-invalid': { scope: 'never', advice: 'An S3 key has 1 to 1,024 bytes.' },
  'record.version-unknown': { scope: 'never', advice: 'The event is of another major version than 2: update Tally, then replay.' },

  // ── the process itself ──
  'internal.unexpected': { scope: 'own', advice: 'Report this with the log lines around it; the message is kept.' },
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

/** The scope of a fault, from the catalogue. */
export function scopeOf(code: FaultCode): FaultScope {
  return faults[code].scope;
}

/** Turns whatever was thrown into a fault; anything that is not a {@link FaultError} is `internal.unexpected`. Passwords of URLs are masked. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return { code: error.code, reason: error.reason };
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { code: 'internal.unexpected', reason: withoutPasswords(text) };
}
