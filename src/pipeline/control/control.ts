/** What the control plane can do. The HTTP routes and the commands of the command line are both thin clients of this. */
import type { BucketRecord, BucketSource, EnrichMode, UnconnectedRecord } from '../../domain/bucket.ts';
import type { ObjectDocument, ObjectState } from '../../domain/documents/document.ts';
import type { Fault } from '../../domain/fault.ts';
import type { GapRecord } from '../../domain/gaps/gap.ts';
import type { JobMode } from '../../domain/reindex/job.ts';
import type { JobView } from '../../domain/reindex/job-view.ts';

/** One page of a list; `next` is absent on the last page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

export interface PageRequest {
  readonly limit?: number;
  readonly cursor?: string;
}

export interface SearchRequest extends PageRequest {
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly q?: string;
  readonly extension?: string;
}

export interface Explanation {
  readonly bucket: string;
  readonly key: string;
  /** What the index holds, tombstones included; absent when it holds nothing. */
  readonly index?: ObjectDocument;
  /** What S3 says now, or the fault it answered with. */
  readonly storage: { readonly state: ObjectState; readonly observedAt: string } | { readonly fault: Fault; readonly advice: string };
  /** The clocks that decide: the document's (microseconds), the bucket's floor, and the clock that this very look would write at (D − M). */
  readonly clocks: { readonly document?: number; readonly floor: number; readonly observation?: number };
  readonly agrees: boolean | 'unknown';
  /** One sentence: why a search finds the object, or does not. */
  readonly sentence: string;
}

export interface AddBucketRequest {
  readonly bucket: string;
  readonly source?: BucketSource;
  readonly topicArn?: string;
  readonly enrich?: EnrichMode;
}

export interface BucketList {
  readonly connected: readonly BucketRecord[];
  readonly unconnected: readonly UnconnectedRecord[];
}

export interface ReindexRequest {
  readonly bucket: string;
  readonly prefix?: string;
  /** Default `apply`. */
  readonly mode?: JobMode;
  /** Documents that lack a field that LIST gives are written too. */
  readonly fill?: boolean;
  /** No floor and no wait: such a job certifies nothing and closes no gap. */
  readonly now?: boolean;
  /** Re-create the bucket's notification first: refused, with the reason. */
  readonly repair?: boolean;
  /** Tombstones allowed whatever the brake says. */
  readonly allowDeletes?: number;
}

/** A dead letter as read from the dead-letter queue. `fault` and `reason` are absent for letters that SQS itself moved. */
export interface DeadLetter {
  readonly id: string;
  readonly sentAt: string;
  readonly fault?: string;
  readonly reason?: string;
  /** What Tally knew: queue, MessageId, when first received, which records. */
  readonly context?: Readonly<Record<string, unknown>>;
  readonly sizeBytes: number;
}

export interface Control {
  search(request: SearchRequest, signal?: AbortSignal): Promise<Page<ObjectDocument>>;
  explain(bucket: string, key: string, signal?: AbortSignal): Promise<Explanation>;
  readonly buckets: {
    /** All connected buckets and unconnected names, by name. */
    list(signal?: AbortSignal): Promise<BucketList>;
    get(bucket: string, signal?: AbortSignal): Promise<BucketRecord>;
    /** Connects; of a bucket that is connected already it changes source, topic and enrich, where given. */
    add(request: AddBucketRequest, by: string, signal?: AbortSignal): Promise<BucketRecord>;
    /** Disconnects and deletes the bucket's documents. The bucket itself is never touched. */
    remove(bucket: string, signal?: AbortSignal): Promise<void>;
  };
  gaps(
    request: PageRequest & { readonly bucket?: string; readonly state?: GapRecord['state'] },
    signal?: AbortSignal,
  ): Promise<Page<GapRecord>>;
  readonly jobs: {
    /**
     * Throws `job.conflict` (with `jobId`) while the bucket has an apply job, `job.repair-refused`, `job.limit`,
     * `bucket.not-connected`, `request.invalid`.
     */
    request(request: ReindexRequest, by: string, signal?: AbortSignal): Promise<JobView>;
    get(id: string, signal?: AbortSignal): Promise<JobView>;
    /** The oldest first, without their examples. */
    list(request: PageRequest, signal?: AbortSignal): Promise<Page<JobView>>;
    /** Throws `job.not-cancellable` when it has ended. */
    cancel(id: string, signal?: AbortSignal): Promise<JobView>;
    /** Throws `job.not-pausable` when it is neither queued nor running. */
    pause(id: string, signal?: AbortSignal): Promise<JobView>;
    /**
     * `allowDeletes`: so many tombstones more than it has reserved. Throws `job.not-resumable` when it is not paused, or
     * held by the brake and allowDeletes is not given; `job.conflict` when another apply job has the bucket meanwhile.
     */
    resume(id: string, request: { readonly allowDeletes?: number }, signal?: AbortSignal): Promise<JobView>;
  };
  readonly deadLetters: {
    /** Looks at up to `limit` letters (default 100, at most 1,000) without removing them. */
    list(request: { readonly limit?: number }, signal?: AbortSignal): Promise<readonly DeadLetter[]>;
    show(id: string, signal?: AbortSignal): Promise<DeadLetter & { readonly body: string }>;
    /** Sends the original bodies back to the bucket queue, then removes the letters. All letters, or those named. Returns how many. */
    replay(ids: readonly string[] | 'all', signal?: AbortSignal): Promise<number>;
    discard(ids: readonly string[] | 'all', signal?: AbortSignal): Promise<number>;
  };
}
