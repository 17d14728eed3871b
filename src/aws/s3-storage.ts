/**
 * Reads what S3 says about objects and buckets. A response's time D is its Date header minus the measured duration of the
 * attempt: a time by S3's clock, never this machine's, no later than the moment at which S3 read the state.
 */
import { LRUCache } from 'lru-cache';
import {
  type S3Client,
  GetBucketVersioningCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  GetObjectTaggingCommand,
  type GetBucketLifecycleConfigurationCommandOutput,
  GetBucketLifecycleConfigurationCommand,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3';
import { FaultError } from '../base/fault.ts';
import { inTime } from '../base/in-time.ts';
import type { Clock } from '../process/clock.ts';
import type { ObjectStorage, ObservedState, BucketLifecycle } from './storage.ts';
import { createAsk, isAbsence, isFromS3, observedAt, type Ask, ownerInput, presentState } from './s3-ask.ts';
import type { HeadOutput } from './s3-head.ts';
import { createS3Listing } from './s3-listing.ts';
import { type S3Answer, type S3Question, type S3Refusal, otherRegionOf, questionText, s3Fault } from './faults.ts';
import type { PresentState } from '../ordering/document.ts';
import { defined } from '../base/defined.ts';
import type { LifecycleRule } from './lifecycle.rules.ts';

interface S3StorageDependencies {
  readonly clientFor: (region: string) => S3Client;
  /** The region to which requests for a bucket's region are sent. */
  readonly region: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

type Target = Parameters<ObjectStorage['readState']>[0];

/**
 * For how long after HeadBucket was sent its 200 proves that a HEAD which begins meanwhile reaches the bucket (ordering rule
 * 5). A store that loses its disk answers 404 to every HEAD. Longer, and more keys would be lost before it is noticed;
 * shorter, and a bucket with steady deletions would receive more HeadBuckets than one in every few seconds.
 */
const CONFIRMED_AGE_MAX_MS = 5_000;
/** How long the first key of a bucket is looked for behind deleted ones: a million, at 1,000 in each page of 60 ms. */
const FIRST_KEY_MS_MAX = 60_000;
/** Far more buckets than any worker has. */
const CONFIRMED_MAX = 10_000;

/** Creates the storage. */
export function createS3Storage({ clientFor, region: defaultRegion, clock }: S3StorageDependencies): ObjectStorage {
  const asking = createAsk(clientFor, clock);
  const { ask, askHead } = asking;
  const listing = createS3Listing({ clientFor, clock });
  /** When the request was sent that each bucket answered last (monotonic). */
  const confirmed = new LRUCache<string, number>({ max: CONFIRMED_MAX });
  const confirming = new Map<string, Promise<void>>();

  /**
   * A HEAD that finds nothing counts only if the bucket answered before it was sent. If the bucket has to be asked afterwards,
   * the HEAD is repeated: the bucket may have been away while the first one was answered, as when a store mounts its disk.
   */
  async function readByHead(target: Target, key: string, signal: AbortSignal | undefined): Promise<ObservedState> {
    const wasConfirmed = isConfirmed(target);
    const seen = await head(target, key, signal);
    if (seen.state.present || seen.isListed || wasConfirmed) return { state: seen.state, observedAtMs: seen.observedAtMs };
    await confirmBucket(target, signal);
    const { state, observedAtMs } = await head(target, key, signal);
    return { state, observedAtMs };
  }

  /** `isListed`: a listing has shown it, which the bucket itself answered. */
  async function head(target: Target, key: string, signal: AbortSignal | undefined): Promise<ObservedState & { readonly isListed?: true }> {
    const question = { ...target, operation: 'HeadObject', key };
    const input = { Bucket: target.bucket, Key: key, ...ownerInput(target) };
    const reply = await askHead(question, input, signal);
    if (reply.ok) {
      const seen = { state: stateOfHead(reply.output), observedAtMs: observedAt(question, reply.answer) };
      return isFromS3(reply.answer) ? seen : checkedByListing(target, key, { seen, signal });
    }
    if (isAbsence(reply.answer) && isFromS3(reply.answer)) {
      return { state: { present: false }, observedAtMs: observedAt(question, reply.answer) };
    }
    if (!isAbsence(reply.answer) && !mustList(question, reply.answer)) throw s3Fault(question, reply);
    return { ...(await readByListing(target, key, signal)), isListed: true };
  }

  /** What a HEAD shows that may not be S3's, if a listing shows the same object; else what the listing shows. */
  async function checkedByListing(
    target: Target,
    key: string,
    { seen, signal }: { readonly seen: ObservedState; readonly signal: AbortSignal | undefined },
  ): Promise<ObservedState & { readonly isListed: true }> {
    const listed = await readByListing(target, key, signal);
    const isSame = seen.state.present && listed.state.present && seen.state.etag !== undefined && seen.state.etag === listed.state.etag;
    return { ...(isSame ? seen : listed), isListed: true };
  }

  /**
   * Reads a key by listing one key with the key as prefix: of all keys with that prefix, the key itself comes first. The
   * strict reader refuses every answer but a complete listing of this bucket and prefix, so an empty one means absence, and
   * shows that the bucket is there. Another key first would also be the answer of an endpoint that lists out of order.
   */
  async function readByListing(target: Target, key: string, signal: AbortSignal | undefined): Promise<ObservedState> {
    // with the key, a failure of this request counts and reads as the object's
    const object = { ...target, key };
    const sentMs = clock.monotonicMs();
    const { objects, observedAtMs } = await listing.page(object, { prefix: key, after: '', limit: 1 }, signal);
    noteConfirmed(target, sentMs);
    const [first] = objects;
    if (first?.key === key) return { state: first.state, observedAtMs };
    const question = { ...object, operation: 'ListObjectsV2' };
    if (first !== undefined) throw new FaultError('object.failed', `${questionText(question)}: the listing begins with another key`);
    return { state: { present: false }, observedAtMs };
  }

  function isConfirmed(target: Target): boolean {
    const sentMs = confirmed.get(idOf(target));
    return sentMs !== undefined && clock.monotonicMs() - sentMs <= CONFIRMED_AGE_MAX_MS;
  }

  function noteConfirmed(target: Target, sentMs: number): void {
    confirmed.set(idOf(target), sentMs);
  }

  /** Resolves when the bucket has answered. Concurrent callers share one request. */
  async function confirmBucket(target: Target, signal: AbortSignal | undefined): Promise<void> {
    // another key may have confirmed it meanwhile
    if (isConfirmed(target)) return;
    const id = idOf(target);
    let request = confirming.get(id);
    if (request === undefined) {
      request = headBucket(target).finally(() => confirming.delete(id));
      confirming.set(id, request);
    }
    await inTime(request, signal);
  }

  async function headBucket(target: Target): Promise<void> {
    const question = { ...target, operation: 'HeadBucket' };
    const command = new HeadBucketCommand({ Bucket: target.bucket, ...ownerInput(target) });
    const sentMs = clock.monotonicMs();
    const reply = await ask(question, command, undefined);
    if (!reply.ok) throw missingBucket(question, reply) ?? deniedBucket(question, reply) ?? s3Fault(question, reply);
    // without a request ID only a listing can confirm the bucket, because it names it
    if (!isFromS3(reply.answer)) await listing.page(target, { prefix: '', after: '', limit: 1, followMsMax: 0 });
    noteConfirmed(target, sentMs);
  }

  /** Lists one key: the cheapest request whose error has a body, which distinguishes credentials from permissions. */
  async function tryListing(target: Target, signal: AbortSignal | undefined): Promise<FaultError | undefined> {
    const question = { ...target, operation: 'ListObjectsV2' };
    const command = new ListObjectsV2Command({ Bucket: target.bucket, MaxKeys: 1, EncodingType: 'url' });
    const reply = await ask(question, command, signal);
    return reply.ok ? undefined : s3Fault(question, reply);
  }

  return {
    ...createS3Details(asking),
    readState: (target, key, signal, how) =>
      how?.byListing === true ? readByListing(target, key, signal) : readByHead(target, key, signal),
    async firstKey(target, signal) {
      const { objects } = await listing.page(target, { prefix: '', after: '', limit: 1, followMsMax: FIRST_KEY_MS_MAX }, signal);
      return objects[0]?.key;
    },
    async regionOf(bucket, signal) {
      const question = { bucket, region: defaultRegion, operation: 'HeadBucket' };
      const command = new HeadBucketCommand({ Bucket: bucket });
      const reply = await ask(question, command, signal);
      const named = reply.answer?.headers['x-amz-bucket-region'];
      // S3 sends the region even with a redirect or a 403
      if (named !== undefined) return named;
      if (reply.ok) {
        // an answer that does not come from S3 must not change the bucket's region
        if (!isFromS3(reply.answer)) await listing.page(question, { prefix: '', after: '', limit: 1, followMsMax: 0 }, signal);
        return defaultRegion;
      }
      const fault = missingBucket(question, reply) ?? s3Fault(question, reply);
      throw fault.code === 'object.denied' ? ((await tryListing(question, signal)) ?? fault) : fault;
    },
    async versioningOf(target, signal) {
      const question = { ...target, operation: 'GetBucketVersioning' };
      const command = new GetBucketVersioningCommand({ Bucket: target.bucket, ...ownerInput(target) });
      const reply = await ask(question, command, signal);
      if (reply.ok) {
        const { Status } = reply.output;
        // an empty answer means that there never was versioning, and so does any page that is not S3's to the SDK
        if (Status === undefined && !isFromS3(reply.answer)) return { status: 'unknown', observedAtMs: 0 };
        const status = Status === 'Enabled' ? 'enabled' : Status === 'Suspended' ? 'suspended' : 'never';
        return { status, observedAtMs: observedAt(question, reply.answer) };
      }
      const fault = s3Fault(question, reply);
      if (fault.code === 'object.denied') return { status: 'unknown', observedAtMs: 0 };
      throw fault;
    },
  };
}

function idOf({ region, bucket }: Target): string {
  return `${region}/${bucket}`;
}

/** Whether only a listing can find out: S3 answers 403 for missing keys too if there is no list permission, and 400 for an object with a customer-provided key. */
function mustList(question: S3Question, answer: S3Answer | undefined): boolean {
  return (answer?.status === 403 || answer?.status === 400) && otherRegionOf(question, answer) === undefined;
}

/** The fault of HeadBucket's 404, which has no body with the code NoSuchBucket. */
function missingBucket(question: S3Question, { answer }: S3Refusal): FaultError | undefined {
  return answer?.status === 404 ? new FaultError('bucket.missing', `${questionText(question)}: the bucket does not exist`) : undefined;
}

/** The fault of HeadBucket's 403 for an object that HEAD does not find: nothing tells a missing key from a missing bucket. */
function deniedBucket(question: S3Question, { answer }: S3Refusal): FaultError | undefined {
  return answer?.status === 403 ? new FaultError('bucket.denied', `${questionText(question)}: HeadBucket is denied`) : undefined;
}

/** Creates the reader of what events do not say of a version, by HEAD and GetObjectTagging, for enrichment. */
function createS3Details({ ask, askHead }: Ask): Pick<ObjectStorage, 'readVersion' | 'readTags'> {
  return {
    async readVersion(location, { key, versionId, etag }, signal) {
      const { bucket } = location;
      const question = { ...location, operation: 'HeadObject', key };
      const condition = etag === undefined ? {} : { IfMatch: `"${etag}"` };
      const input = { Bucket: bucket, Key: key, ...condition, ...versionInput(versionId), ...ownerInput(location) };
      const reply = await askHead(question, input, signal);
      if (reply.ok) {
        const state = stateOfHead(reply.output);
        // some implementations of S3 support neither conditions nor versions, and answer with the current object
        return isVersion(state.versionId, versionId) && (etag === undefined || state.etag === etag) ? state : 'gone';
      }
      // an answer to HEAD has no body that would distinguish a missing bucket from a missing key; in both cases there is nothing to read
      if (GONE.has(reply.answer?.status ?? 0)) return 'gone';
      throw s3Fault(question, reply);
    },
    async readTags(location, { key, versionId }, signal) {
      const { bucket } = location;
      const question = { ...location, operation: 'GetObjectTagging', key };
      const command = new GetObjectTaggingCommand({ Bucket: bucket, Key: key, ...versionInput(versionId), ...ownerInput(location) });
      const reply = await ask(question, command, signal);
      if (reply.ok) {
        const { TagSet, VersionId } = reply.output;
        if (TagSet === undefined) throw new FaultError('object.failed', `${questionText(question)}: the answer contains no tag set`);
        if (VersionId !== undefined && !isVersion(VersionId, versionId)) return 'gone';
        return Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]));
      }
      if (GONE.has(reply.answer?.status ?? 0) && !isMissingBucket(reply)) return 'gone';
      throw s3Fault(question, reply);
    },
  };
}

/** The statuses for a missing key or version, a delete marker, or another etag. */
const GONE: ReadonlySet<number> = new Set([404, 405, 412]);

function versionInput(versionId: string | undefined): { readonly VersionId?: string } {
  return versionId === undefined ? {} : { VersionId: versionId };
}

/** Whether the answer is about the requested version. In a bucket that was never versioned, S3 does not return the version id `null`. */
function isVersion(answered: string | undefined, asked: string | undefined): boolean {
  return asked === undefined || answered === asked || (asked === 'null' && answered === undefined);
}

function isMissingBucket({ error }: S3Refusal): boolean {
  return error instanceof Error && error.name === 'NoSuchBucket';
}

/**
 * The class of an object whose HEAD names none: S3 sends the header for every other class, and compatible stores that know
 * classes do the same. https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
 */
const UNNAMED_CLASS = 'STANDARD';

/** The state that an answer to HEAD describes. */
function stateOfHead(head: HeadOutput): PresentState {
  const expiresAtMs = Date.parse(/expiry-date="([^"]+)"/.exec(head.Expiration ?? '')?.[1] ?? '');
  return {
    ...presentState({ ...head, sizeBytes: head.ContentLength, StorageClass: head.StorageClass ?? UNNAMED_CLASS }),
    // S3 itself returns the version id `null` for objects of a bucket whose versioning is suspended
    ...(head.VersionId !== undefined && { versionId: head.VersionId }),
    ...(!Number.isNaN(expiresAtMs) && { expiresAtMs }),
    ...(head.ContentType !== undefined && { contentType: head.ContentType }),
    userMetadata: userMetadataOf(head.Metadata ?? {}),
  };
}

/** S3 returns values that are not ASCII as encoded words (RFC 2047), which the SDK does not decode. */
function userMetadataOf(metadata: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, decodedWords(value)]));
}

const WORD = String.raw`=\?utf-8\?(?:b\?([a-z0-9+/]*={0,2})|q\?((?:[^?=\s]|=[0-9a-f]{2})*))\?=`;
const WORDS = new RegExp(WORD, 'gi');
const ONLY_WORDS = new RegExp(`^${WORD}(?:\\s+${WORD})*$`, 'i');

/** Decodes a value that consists only of encoded words in UTF-8. Returns any other value unchanged. */
export function decodedWords(value: string): string {
  if (!ONLY_WORDS.test(value)) return value;
  const bytes = [...value.matchAll(WORDS)].map(([, base64, quoted]) =>
    base64 === undefined ? bytesOfQuoted(quoted ?? '') : Buffer.from(base64, 'base64'),
  );
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(bytes));
  } catch {
    return value;
  }
}

function bytesOfQuoted(text: string): Buffer {
  const bytes = text.replaceAll('_', ' ').replaceAll(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

// ── a bucket's lifecycle rules, and its unfinished uploads ─────────────────────────────────────────────────────────

type S3Rule = NonNullable<GetBucketLifecycleConfigurationCommandOutput['Rules']>[number];

/** Creates the reader. Needs s3:GetLifecycleConfiguration, and s3:ListBucketMultipartUploads for uploads. */
export function createS3Lifecycle({ clientFor, clock }: Omit<S3StorageDependencies, 'region'>): BucketLifecycle {
  const { ask } = createAsk(clientFor, clock);
  return {
    async rulesOf(location, signal) {
      const question = { ...location, operation: 'GetBucketLifecycleConfiguration' };
      const command = new GetBucketLifecycleConfigurationCommand({ Bucket: location.bucket, ...ownerInput(location) });
      const reply = await ask(question, command, signal);
      if (reply.ok) {
        // a bucket without rules answers with an error: this is not its configuration
        if (reply.output.Rules === undefined && !isFromS3(reply.answer))
          throw new FaultError('object.failed', `${questionText(question)}: the answer contains no rules and may not come from S3`);
        return (reply.output.Rules ?? []).map(ruleOf);
      }
      if (reply.error instanceof Error && reply.error.name === 'NoSuchLifecycleConfiguration') return [];
      throw refusalOf(question, reply);
    },

    async uploadsOf(location, signal) {
      const question = { ...location, operation: 'ListMultipartUploads' };
      const command = new ListMultipartUploadsCommand({ Bucket: location.bucket, ...ownerInput(location) });
      const reply = await ask(question, command, signal);
      if (!reply.ok) throw refusalOf(question, reply);
      const { Uploads = [], IsTruncated: is_more = false } = reply.output;
      const begun = Uploads.flatMap(({ Initiated }) => (Initiated === undefined ? [] : [Initiated.getTime()]));
      return begun.length === 0 ? undefined : { count: begun.length, is_more, oldest_at: new Date(Math.min(...begun)).toISOString() };
    },
  };
}

function refusalOf(question: S3Question, refusal: S3Refusal): FaultError {
  const fault = s3Fault(question, refusal);
  return fault.code === 'object.denied' ? new FaultError('lifecycle.denied', fault.reason, { cause: fault }) : fault;
}

function ruleOf(rule: S3Rule): LifecycleRule {
  const { ID = '', Status, Expiration } = rule;
  return {
    id: ID,
    isEnabled: Status === 'Enabled',
    ...filterOf(rule),
    ...(Expiration?.Days !== undefined && { expiresAfterDays: Expiration.Days }),
    ...(Expiration?.Date !== undefined && { expiresAtMs: Expiration.Date.getTime() }),
  };
}

/** A filter has one condition, or several under And. A rule of the old form has a prefix and no filter. */
function filterOf(rule: S3Rule): Pick<LifecycleRule, 'prefix' | 'tags' | 'sizeAbove' | 'sizeBelow'> {
  const { Tag, And, ...one } = rule.Filter ?? {};
  // oxlint-disable-next-line typescript/no-deprecated -- S3 returns it for rules of the old form
  const { Prefix = rule.Prefix, ObjectSizeGreaterThan, ObjectSizeLessThan } = { ...one, ...And };
  const tags = [...(Tag === undefined ? [] : [Tag]), ...(And?.Tags ?? [])];
  return {
    prefix: Prefix ?? '',
    tags: Object.fromEntries(tags.map(({ Key = '', Value = '' }) => [Key, Value])),
    ...defined({ sizeAbove: ObjectSizeGreaterThan, sizeBelow: ObjectSizeLessThan }),
  };
}
