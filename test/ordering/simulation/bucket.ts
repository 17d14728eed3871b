/** One key of an S3 bucket: its versions, and how each operation changes them. It says what S3 would tell of the operation. */
import type { Change } from '../../../src/events/record.ts';
import type { Random } from '../../support/random/seeded.ts';

/** The content of a key: an etag, or null when absent. */
export type Content = string | null;

export type VersioningStatus = 'never' | 'enabled' | 'suspended';

/** What an operation was, as far as events tell of it. */
export interface Operation {
  readonly change: Change;
  readonly name: string;
  readonly etag?: string;
  readonly versionId?: string;
  /** How long before its end the operation began; some sources give that as its time. */
  readonly lastedMs?: number;
  /** The call was denied: it changed nothing, but an audit trail tells of it as of any other. */
  readonly isDenied?: true;
}

interface Version {
  readonly id: string;
  readonly etag: Content;
}

/** The version that a bucket without versioning keeps, and the only one that it replaces. */
const NULL_ID = 'null';
const LASTED = [0, 0, 2_000, 70_000];
/** An expiration is told with the midnight before it. */
const MIDNIGHT = [0, 3_600_000, 36_000_000];

const kinds = ['put', 'put', 'put', 'copy', 'delete', 'delete', 'multipart', 'remove-version', 'denied', 'expire'] as const;

export interface SimBucket {
  readonly status: VersioningStatus;
  readonly content: Content;
  /** Carries out the `index`-th operation at this moment. Returns nothing if no source would tell of it. */
  operate(index: number, atMs: number): Operation | undefined;
  setVersioning(status: VersioningStatus): void;
}

/** Creates an empty bucket. `hasTrail`: calls that change nothing are told too. `tellsExpirations`: the source does. */
export function createSimBucket(
  random: Random,
  options: { readonly status: VersioningStatus; readonly hasTrail: boolean; readonly tellsExpirations: boolean },
): SimBucket {
  const versions: Version[] = [];
  let { status } = options;
  let uploadStartedMs: number | undefined;
  let lastWriteMs = 0;

  /** Puts a version on top. Without versioning, and while it is suspended, it replaces the null version. */
  function push(id: string, etag: Content): string {
    if (status === 'enabled') {
      versions.push({ id, etag });
      return id;
    }
    const held = versions.findIndex((version) => version.id === NULL_ID);
    if (held >= 0) versions.splice(held, 1);
    versions.push({ id: NULL_ID, etag });
    return NULL_ID;
  }

  /** Events name the null version, or no version at all. */
  function named(id: string): { readonly versionId?: string } {
    return id === NULL_ID && (status === 'never' || random.chance(0.5)) ? {} : { versionId: id };
  }

  function store(index: number, atMs: number, name: string, change: Change): Operation {
    lastWriteMs = atMs;
    const etag = `e${index}`;
    const lastedMs = change.kind === 'created' && !change.copied ? 0 : random.pick(LASTED);
    return { change, name, etag, lastedMs, ...named(push(`v${index}`, etag)) };
  }

  /** The upload that started last may win: a completion changes nothing when something was written since its start. */
  function multipart(index: number, atMs: number): Operation | undefined {
    if (uploadStartedMs === undefined) {
      uploadStartedMs = atMs;
      return undefined;
    }
    const isOvertaken = status !== 'enabled' && lastWriteMs > uploadStartedMs;
    const lastedMs = atMs - uploadStartedMs;
    uploadStartedMs = undefined;
    if (isOvertaken) return { change: { kind: 'multipart-completed' }, name: 'CompleteMultipartUpload', etag: `e${index}`, lastedMs };
    return { ...store(index, atMs, 'CompleteMultipartUpload', { kind: 'multipart-completed' }), lastedMs };
  }

  function remove(index: number, atMs: number): Operation | undefined {
    lastWriteMs = atMs;
    if (status !== 'never') return { change: { kind: 'marker-created' }, name: 'DeleteObject', ...named(push(`m${index}`, null)) };
    if (versions.length === 0 && random.chance(0.5)) return undefined;
    versions.length = 0;
    return { change: { kind: 'deleted' }, name: 'DeleteObject' };
  }

  function removeVersion(): Operation | undefined {
    if (status === 'never' || versions.length === 0) return undefined;
    const [version] = versions.splice(random.integer(0, versions.length - 1), 1);
    return { change: { kind: 'deleted' }, name: 'DeleteObject', ...named(version!.id) };
  }

  function expire(index: number, atMs: number): Operation | undefined {
    if (!options.tellsExpirations || (versions.at(-1)?.etag ?? null) === null) return undefined;
    lastWriteMs = atMs;
    const removed = status === 'never' ? {} : named(push(`m${index}`, null));
    if (status === 'never') versions.length = 0;
    return { change: { kind: 'lifecycle-expired' }, name: 'LifecycleExpiration', lastedMs: random.pick(MIDNIGHT), ...removed };
  }

  return {
    get status() {
      return status;
    },
    get content() {
      return versions.at(-1)?.etag ?? null;
    },
    setVersioning(next) {
      status = next;
    },
    operate(index, atMs) {
      const kind = random.pick(kinds);
      switch (kind) {
        case 'put':
        case 'copy':
          return store(index, atMs, kind === 'copy' ? 'CopyObject' : 'PutObject', { kind: 'created', copied: kind === 'copy' });
        case 'multipart':
          return multipart(index, atMs);
        case 'delete':
          return remove(index, atMs);
        case 'remove-version':
          return removeVersion();
        case 'expire':
          return expire(index, atMs);
        case 'denied':
          return options.hasTrail ? { change: { kind: 'deleted' }, name: 'DeleteObject', isDenied: true } : undefined;
      }
    },
  };
}
