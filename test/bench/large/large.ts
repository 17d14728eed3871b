/** The bench `large`: what a re-index of up to a hundred million objects asks and stores, in virtual time. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { runLarge, type LargeCase, type LargeResult } from './world.ts';
import { keyShapes, type KeyShape } from '../reindex/listing/key-space.ts';
import { commandOf, countOption, countsOption, namesOption } from '../bench-command.ts';
import { tableText } from '../report.ts';

const modes = ['first', 'unchanged'] as const;

interface LargeOptions {
  readonly objects: readonly number[];
  readonly shape: readonly KeyShape[];
  readonly mode: readonly LargeCase['mode'][];
  readonly indexCores: number;
}

/** The bench's command. */
export const largeBench = commandOf<LargeOptions>({
  name: 'large',
  description: 'Requests, stored records, memory and virtual time of re-indexes of large buckets.',
  options: [
    countsOption('--objects <counts>', 'sizes of the bucket', [1_000, 100_000_000], [1_000_000, 10_000_000]),
    namesOption('--shape <names>', 'of the keys', keyShapes, ['deep', 'prefix', 'hash']),
    namesOption('--mode <names>', 'what the index holds', modes),
    countOption('--index-cores <count>', 'of the machines of the index', [1, 1_000], 8),
  ],
  help: `
Modes: first: the index is empty; unchanged: index and bucket agree.
Shapes: deep: folders of 100 keys within folders of 100; prefix: all keys in one
folder far down; hash: hexadecimal digits without a pattern.

The product compares and writes every key: some 2 µs of CPU for each that agrees
and 7 µs for each that is written.

Everything runs in this process and in virtual time: each request is answered from
the numbers of its objects after the time that the real one was measured to take
(test/bench/large/servers.ts). The process has a core; the index has as many
as --index-cores says. Afterwards the index must have every
object.`,
  run,
});

async function run(options: LargeOptions, tell: (text: string) => void) {
  const cases: object[] = [];
  const { indexCores } = options;
  for (const shape of options.shape) {
    for (const mode of options.mode) {
      for (const objects of options.objects) {
        const row = await measure({ shape, mode, objects, indexCores });
        cases.push(row);
        tell(tableText([row]));
      }
    }
  }
  return { cases };
}

async function measure(wanted: LargeCase) {
  const heapBytes = createHeapLook();
  const beforeBytes = heapBytes();
  let peakBytes = beforeBytes;
  const cpuBefore = process.cpuUsage();
  let looksUs = 0;
  const result = await runLarge({
    ...wanted,
    onProgress: (share) => {
      // every twentieth: a look at the heap takes longer than many pages
      if (Math.round(share * 100) % 5 !== 0) return;
      const lookBefore = process.cpuUsage();
      peakBytes = Math.max(peakBytes, heapBytes());
      looksUs += cpuSince(lookBefore);
    },
  });
  check(result);
  const { objects, tookS, requests, state } = result;
  return {
    shape: result.shape,
    mode: result.mode,
    objects,
    tookS,
    objectsPerS: objects / tookS,
    lists: requests.lists,
    probes: requests.listProbes,
    scans: requests.scans,
    bulks: requests.bulks,
    turns: result.turns,
    reads: state.gets,
    swaps: Object.values(state.puts).reduce((sum, puts) => sum + puts, 0),
    conflicts: state.conflicts,
    listedRecords: state.listedEntries,
    looks: state.looks,
    indexPercent: result.indexBusy * 100,
    slotsPercent: result.slotsBusy * 100,
    tailS: result.tailS,
    /** The most that was in use after a garbage collection, beyond what was before the case began. */
    heapMib: (peakBytes - beforeBytes) / 1_048_576,
    cpuUsPerObject: (cpuSince(cpuBefore) - looksUs) / objects,
  };
}

function check({ objects, documents, job, requests, faults }: LargeResult): void {
  const { listed = 0, missing = 0, equal = 0 } = job.counts ?? {};
  if (documents !== objects || listed !== objects || missing + equal !== objects)
    throw new Error(`the index has ${documents} of ${objects} objects: ${JSON.stringify({ counts: job.counts, requests, faults })}`);
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Collects garbage and says what is left. */
function createHeapLook(): () => number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return () => {
    if (typeof collect === 'function') collect();
    return process.memoryUsage().heapUsed;
  };
}
