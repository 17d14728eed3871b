/**
 * Whether re-index waits for the index. More parts at the same time help while a worker waits for listings or for HEADs; once
 * the index has all the work that it can do, they only make each other wait, and cost requests and memory: each cut needs
 * about ten LIST requests, each turn that ends has listed a page that it did not compare, and each part holds its pages.
 */
import type { Clock } from '../process/clock.ts';
import type { ObjectIndex, ObjectScan } from '../store/store.ts';

/**
 * A bulk request of 1,000 documents takes 30 to 200 ms and a scan page 20 to 60 ms. One that takes this long has waited for others
 * for most of the time.
 */
const SLOW_MS = 1_000;
/** The weight of the latest request in the average: the last ten or so decide, which are the last second or two of a busy worker. */
const WEIGHT = 0.1;

export interface IndexLoad {
  /** Runs a request and measures it, whatever becomes of it. */
  readonly measure: <Answer>(request: () => Promise<Answer>) => Promise<Answer>;
  /** The same for a bulk request. */
  readonly measureWrite: IndexLoad['measure'];
  /** Whether the last requests took so long that more parts would only wait longer, or as many bulk requests run as may run. */
  readonly isSlow: () => boolean;
}

/** Creates the measure of one process. `writesMax`: the most bulk requests that run at the same time. */
export function createIndexLoad(clock: Pick<Clock, 'monotonicMs'>, writesMax: number): IndexLoad {
  let averageMs = 0;
  let writes = 0;
  const load: IndexLoad = {
    async measure(request) {
      const startedMs = clock.monotonicMs();
      try {
        return await request();
      } finally {
        averageMs += WEIGHT * (clock.monotonicMs() - startedMs - averageMs);
      }
    },
    async measureWrite(request) {
      writes += 1;
      try {
        return await load.measure(request);
      } finally {
        writes -= 1;
      }
    },
    isSlow: () => averageMs > SLOW_MS || writes >= writesMax,
  };
  return load;
}

interface MeasuredPorts {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
}

/** The same ports; the requests that comparing sends most are measured: scan pages and bulk requests. */
export function measured({ measure, measureWrite }: IndexLoad, { objects, scan }: MeasuredPorts): MeasuredPorts {
  return {
    objects: { ...objects, write: (...asked) => measureWrite(() => objects.write(...asked)) },
    scan: { ...scan, scan: (...asked) => measure(() => scan.scan(...asked)) },
  };
}
