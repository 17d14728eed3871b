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
  /** Holds no key, and says that more follows. */
  'empty',
  /** Two neighbours have changed places. */
  'swapped',
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
  /** Which part of the matching requests, by chance. Default: all. */
  share: z.number().min(0).max(1).default(1),
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
  /** The first fault that this request meets. */
  meet(request: ListingRequest): ActiveFault | undefined;
}

/** Creates the faults: none. */
export function createFaults(): Faults {
  const random = createRandom(5);
  let active: readonly ActiveFault[] = [];
  return {
    set(faults) {
      active = faults.map((fault) => faultSchema.parse(fault));
    },
    meet: ({ operation }) =>
      active.find((fault) => fault.operations.includes(operation) && random.integer(1, 1_000_000) <= fault.share * 1_000_000),
  };
}
