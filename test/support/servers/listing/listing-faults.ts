/** Faults of the listing server: what goes wrong, for which requests, and how often. */
import { z } from 'zod';
import { createRandom } from '../../random/seeded.ts';

export const operations = ['list', 'head', 'head-bucket', 'versioning', 'location', 'lifecycle'] as const;
export type Operation = (typeof operations)[number];

export const faultKinds = [
  /** 503 SlowDown. */
  'slow-down',
  /** `status` and `code`. */
  'error',
  /** The connection is reset before an answer. */
  'reset',
  // ── of a listing's page only
  /** The body ends in the middle of an object, and is as long as its header says. */
  'cut-xml',
  /** The connection ends in the middle of the body. */
  'cut-body',
  /** Says neither that more follows nor that it does not. */
  'no-end',
  /** Says that nothing follows, and something does. */
  'early-end',
  /** Holds no key, and says that more follows. */
  'empty',
  /** Two neighbours have changed places. */
  'swapped',
  /** In the order of JavaScript's strings. */
  'utf16-order',
  /** One key twice. */
  'repeated',
  /** The first page again, whatever was asked. */
  'restarted',
  /** The last key is another one, after it in order, that does not have the prefix. */
  'foreign',
] as const;
export type FaultKind = (typeof faultKinds)[number];

export const faultSchema = z.object({
  kind: z.enum(faultKinds),
  /** Default: listings only. */
  operations: z.array(z.enum(operations)).default(['list']),
  bucket: z.string().exactOptional(),
  /** Only listings whose page begins at or above this key: something fails in the middle. */
  fromKey: z.string().exactOptional(),
  /** Which part of the matching requests, by chance. Default: all. */
  share: z.number().min(0).max(1).default(1),
  /** How many requests at most. Default: without end. */
  times: z.number().int().positive().exactOptional(),
  status: z.number().int().default(403),
  code: z.string().default('AccessDenied'),
});
export type Fault = z.input<typeof faultSchema>;
export type ActiveFault = z.output<typeof faultSchema>;

/** What a request asks for. */
export interface ListingRequest {
  readonly operation: Operation;
  readonly bucket: string;
  /** Of a HEAD the key; of a listing the key after which its page begins. */
  readonly key: string;
  readonly prefix: string;
}

export interface Faults {
  /** Replaces all faults. */
  set(faults: readonly Fault[]): void;
  /** One more, after the others; what is returned removes it. */
  add(fault: Fault): () => void;
  /** The first fault that this request meets; it is counted. */
  meet(request: ListingRequest): ActiveFault | undefined;
}

/** Creates the faults: none. */
export function createFaults(): Faults {
  const random = createRandom(5);
  let active: { readonly fault: ActiveFault; left: number }[] = [];

  function activeOf(fault: Fault) {
    return { fault: faultSchema.parse(fault), left: fault.times ?? Infinity };
  }

  return {
    set(faults) {
      active = faults.map(activeOf);
    },
    add(fault) {
      const added = activeOf(fault);
      active = [...active, added];
      return () => {
        active = active.filter((each) => each !== added);
      };
    },
    meet(request) {
      const met = active.find(
        ({ fault, left }) => left > 0 && matches(fault, request) && random.integer(1, 1_000_000) <= fault.share * 1_000_000,
      );
      if (met !== undefined) met.left -= 1;
      return met?.fault;
    },
  };
}

function matches(fault: ActiveFault, { operation, bucket, key }: ListingRequest): boolean {
  return (
    fault.operations.includes(operation) &&
    (fault.bucket === undefined || fault.bucket === bucket) &&
    (fault.fromKey === undefined || Buffer.compare(Buffer.from(key), Buffer.from(fault.fromKey)) >= 0)
  );
}
