/** The faults of the matrix of several workers, as the ports tell them: what the adapters make of the answers of real services. */
import { isLong } from '../breadth.ts';
import { FaultError, type FaultCode } from '../../../src/base/fault.ts';
import { refs } from '../../../src/store/stored.ts';
import type { PortFault } from './worker-network.ts';
import type { WorkerBucket } from './workers.ts';

/** The bucket that a fault concerns, one beside it in its region, and one in another region. */
export const FAULTY = { bucket: 'photos', region: 'us-east-1' } as const;
export const NEAR = { bucket: 'near', region: 'us-east-1' } as const;
export const FAR = { bucket: 'far', region: 'eu-central-1' } as const;

/** The object that fails alone, and the prefix that is slowed down. */
export const BROKEN_KEY = 'broken';
export const CHANGED_PREFIX = 'changed/';

/** Connected buckets of a region that no other bucket is in: twice as many as there are HEAD requests at a time. */
const CROWD = Array.from({ length: isLong ? 300 : 64 }, (_, count) => ({ bucket: `crowd-${count}`, region: 'ap-south-1' }));

/** What is sent while a fault lasts: exact and inexact events of the bucket itself and of others, and changes of few keys. `others`: see MatrixFault. */
export const tags = ['exact same', 'exact near', 'inexact near', 'inexact far', 'inexact same', 'changes', 'broken', 'others'] as const;
export type Tag = (typeof tags)[number];

export interface MatrixFault {
  readonly name: string;
  /** Another fault has the same reach and is waited for in the same way: it is left to `npm run test:long`. */
  readonly isVariant?: true;
  /** What the fault concerns, so that it may wait. Nothing else may. */
  readonly concerns: readonly Tag[];
  /** A worker that has the fault alone receives nothing, so the others serve everything. */
  readonly stopsReceiving?: true;
  /** A fresh fault for the network of one process. */
  readonly begin: () => PortFault;
  /** Buckets that only this row has. They get inexact events. */
  readonly others?: readonly WorkerBucket[];
  /** What cannot be served however often it is tried, while others of its bucket can: its receives are its own. Default: none. */
  readonly alone?: Tag;
  /** Letters that are permitted for each worker. Default 0. */
  readonly lettersMax?: number;
}

type S3Fault = NonNullable<PortFault['s3']>;
type Asked = Parameters<S3Fault>[0];

const fail = (code: FaultCode): never => {
  throw new FaultError(code, 'a fault of the test');
};
const OF_OBJECT: readonly Tag[] = ['broken'];
const OF_BUCKET: readonly Tag[] = ['broken', 'changes', 'inexact same'];
const OF_REGION: readonly Tag[] = [...OF_BUCKET, 'inexact near'];
const OF_INDEX: readonly Tag[] = [...OF_BUCKET, 'exact same'];

/** Two attempts of the adapter, of ten seconds each, as for S3 that accepts a connection and says nothing. */
const HANGS_MS = 20_000;
/** Two attempts to connect. */
const UNREACHABLE_MS = 6_000;

const isObject = ({ bucket, key }: Asked): boolean => bucket === FAULTY.bucket && key === BROKEN_KEY;
const isPrefix = ({ bucket, key }: Asked): boolean => bucket === FAULTY.bucket && key?.startsWith(CHANGED_PREFIX) === true;
const isBucket = ({ bucket }: Asked): boolean => bucket === FAULTY.bucket;
const isCrowd = ({ bucket }: Asked): boolean => bucket.startsWith('crowd-');
const isRegion = ({ bucket }: Asked): boolean => bucket !== FAR.bucket;

const storage =
  (matches: (asked: Asked) => boolean, code: FaultCode, afterMs = 0) =>
  (): PortFault => ({
    async s3(asked, clock) {
      if (!matches(asked)) return;
      if (afterMs > 0) await clock.sleep(afterMs);
      fail(code);
    },
  });
const items = (code: FaultCode) => (): PortFault => ({ item: ({ bucket }) => (bucket === FAULTY.bucket ? code : undefined) });

const together =
  (...parts: readonly (() => PortFault)[]) =>
  (): PortFault => {
    const begun = parts.map((begin) => begin());
    return {
      async s3(asked, clock) {
        for (const { s3 } of begun) await s3?.(asked, clock);
      },
      item: (document) => begun.map(({ item }) => item?.(document)).find((code) => code !== undefined),
    };
  };

/** The adapter believes that a document is bad for the first three in a row, and then that its index is. */
function noDocumentFits(): PortFault {
  let refused = 0;
  return {
    item({ bucket, key }) {
      if (bucket !== FAULTY.bucket) return undefined;
      if (key !== '') refused += 1;
      return refused <= 3 ? 'index.rejected' : 'bucket.index-misconfigured';
    },
  };
}

export const portFaults: readonly MatrixFault[] = [
  { name: 'S3 answers 500 for one object', concerns: OF_OBJECT, alone: 'broken', begin: storage(isObject, 's3.unavailable') },
  { name: 'S3 denies one object', isVariant: true, concerns: OF_OBJECT, alone: 'broken', begin: storage(isObject, 'object.denied') },
  { name: 'S3 answers SlowDown for a prefix', concerns: OF_BUCKET, alone: 'changes', begin: storage(isPrefix, 's3.throttled') },
  { name: 'the bucket is gone', concerns: OF_BUCKET, begin: storage(isBucket, 'bucket.missing') },
  { name: 'the bucket is denied', isVariant: true, concerns: OF_BUCKET, begin: storage(isBucket, 'bucket.denied') },
  { name: 'S3 does not answer for the bucket', concerns: OF_BUCKET, begin: storage(isBucket, 's3.unavailable', HANGS_MS) },
  { name: 'the region cannot be reached', concerns: OF_REGION, begin: storage(isRegion, 's3.unavailable', UNREACHABLE_MS) },
  { name: 'the credentials have expired', concerns: [...OF_REGION, 'inexact far'], begin: storage(() => true, 's3.credentials') },
  {
    name: 'many buckets of one region hang',
    concerns: ['others'],
    others: CROWD,
    begin: storage(isCrowd, 's3.unavailable', HANGS_MS),
  },
  { name: 'the index is closed', concerns: OF_INDEX, begin: items('bucket.index-blocked') },
  { name: 'items of the index are answered with 403', isVariant: true, concerns: OF_INDEX, begin: items('bucket.index-denied') },
  { name: 'items of the index are answered with 429', isVariant: true, concerns: OF_INDEX, begin: items('bucket.index-overloaded') },
  {
    name: 'S3 denies a prefix and does not answer for the rest of the bucket, and its index is closed',
    concerns: OF_INDEX,
    begin: together(storage(isPrefix, 'bucket.denied'), storage(isBucket, 's3.unavailable', HANGS_MS), items('bucket.index-blocked')),
  },
  { name: 'no document fits the mapping', concerns: OF_INDEX, begin: noDocumentFits, lettersMax: 3 },
  {
    name: 'the bucket record cannot be read',
    concerns: OF_INDEX,
    begin: () => ({ record: (id, record) => (id === refs.bucket(FAULTY.bucket).id ? { of: 'a newer version' } : record) }),
  },
  { name: 'the cluster answers 503', concerns: tags, stopsReceiving: true, begin: () => ({ store: () => fail('index.unreachable') }) },
  {
    name: 'the cluster has a block',
    isVariant: true,
    concerns: tags,
    stopsReceiving: true,
    begin: () => ({ store: (call) => (call === 'write' ? fail('index.blocked') : undefined) }),
  },
  { name: 'the flood stage', concerns: tags, begin: () => ({ item: () => 'bucket.index-blocked' }) },
  { name: 'SQS answers 503', concerns: tags, stopsReceiving: true, begin: () => ({ queue: () => fail('queue.unreachable') }) },
];
