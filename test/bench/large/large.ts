/** The bench `large`: what a re-index of up to a hundred million objects asks and stores, by any number of workers, in virtual time. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Command } from 'commander';
import { Option } from 'commander';
import { runLarge, type LargeCase, type LargeResult } from '../../support/large/world.ts';
import { keyShapes, type KeyShape } from '../../support/servers/listing/key-space.ts';
import { commandOf, listOf, whole } from '../bench-command.ts';
import { tableText } from '../statistics.ts';

const modes = ['first', 'unchanged'] as const;
const turns = ['whole', 'counted'] as const;

interface LargeOptions {
  readonly objects: readonly number[];
  readonly workers: readonly number[];
  readonly shape: readonly KeyShape[];
  readonly mode: readonly LargeCase['mode'][];
  readonly indexCores: number;
  readonly turns: (typeof turns)[number];
}

/** What one case took of this process, beside its result. */
interface LargeRow {
  readonly result: LargeResult;
  readonly cpuUsPerObject: number;
  /** The most that was in use after a garbage collection, beyond what was before the case began. */
  readonly peakHeapBytes: number;
}

interface LargeReport {
  readonly bench: 'large';
  readonly date: string;
  readonly node: string;
  readonly turns: LargeOptions['turns'];
  readonly rows: readonly LargeRow[];
}

/** The bench's command. */
export const largeBench = commandOf<LargeOptions, LargeReport>({ name: 'large', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description('Requests, stored records, splits, memory and virtual time of re-indexes of large buckets.')
    .addOption(
      new Option('--objects <counts>', 'sizes of the bucket, comma-separated')
        .argParser(countsOf(1_000, 100_000_000))
        .default([1_000_000, 10_000_000, 100_000_000], '1000000,10000000,100000000'),
    )
    .addOption(
      new Option('--workers <counts>', 'numbers of workers, comma-separated').argParser(countsOf(1, 64)).default([1, 8, 64], '1,8,64'),
    )
    .addOption(
      new Option('--shape <names>', 'of the keys, comma-separated')
        .argParser(listOf(keyShapes))
        .default(['deep', 'prefix', 'hash'], 'deep,prefix,hash'),
    )
    .addOption(new Option('--mode <names>', 'comma-separated').argParser(listOf(modes)).default(modes, modes.join(',')))
    .addOption(new Option('--index-cores <count>', 'of the machines of the index').argParser(whole(1, 1_000)).default(64))
    .addOption(new Option('--turns <name>', 'how keys are compared').choices(turns).default('counted'))
    .addHelpText(
      'after',
      `
Modes:
  first      The index is empty.
  unchanged  Index and bucket agree.

Shapes:
  deep       folders of 100 keys within folders of 100
  prefix     all keys in one folder far down
  hash       names of hexadecimal digits without a pattern

Turns:
  whole      The product compares and writes every key: some 2 µs of CPU for each
             that agrees and 7 µs for each that is written.
  counted    A turn makes the same requests and compares nothing, so a hundred
             million objects take less than a minute of CPU. Jobs, ranges, splits,
             state and queue are the product's in both.

Everything runs in this process and in virtual time: each request is answered from
the numbers of its objects after the time that the real one was measured to take
(test/support/large/servers.ts). A worker has a core; the index has as many as
--index-cores says, which all workers share. Afterwards the index must have every
object.`,
    );
}

function countsOf(min: number, max: number): (text: string) => readonly number[] {
  const parse = whole(min, max);
  return (text) => text.split(',').map(parse);
}

async function run(options: LargeOptions, tell: (text: string) => void): Promise<LargeReport> {
  const rows: LargeRow[] = [];
  for (const shape of options.shape) {
    for (const mode of options.mode) {
      for (const objects of options.objects) {
        for (const workers of options.workers) {
          const row = await measure({
            shape,
            mode,
            objects,
            workers,
            indexCores: options.indexCores,
            isHollow: options.turns === 'counted',
          });
          rows.push(row);
          tell(reportText({ bench: 'large', date: '', node: '', turns: options.turns, rows: [row] }));
        }
      }
    }
  }
  return { bench: 'large', date: new Date().toISOString(), node: process.version, turns: options.turns, rows };
}

async function measure(wanted: LargeCase): Promise<LargeRow> {
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
  return { result, cpuUsPerObject: (cpuSince(cpuBefore) - looksUs) / wanted.objects, peakHeapBytes: peakBytes - beforeBytes };
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

const head = [
  'shape',
  'mode',
  'objects',
  'workers',
  'time s',
  'objects/s',
  'LIST',
  'probes',
  'scans',
  'bulks',
  'turns',
  'ranges',
  'splits',
  'reads',
  'swaps',
  'conflicts',
  'listed records',
  'looks',
  'index %',
  'slots %',
  'tail s',
  'heap MiB',
  'CPU µs/object',
];

function reportText({ rows }: LargeReport): string {
  return tableText([head, ...rows.map(cellsOf)]);
}

function cellsOf({ result, cpuUsPerObject, peakHeapBytes }: LargeRow): readonly string[] {
  const { shape, mode, objects, workers, tookS, requests, job, state, indexBusy, slotsBusy, tailS } = result;
  const swaps = Object.values(state.puts).reduce((sum, puts) => sum + puts, 0);
  const numbers = [
    objects,
    workers,
    tookS,
    objects / tookS,
    requests.lists,
    requests.listProbes,
    requests.scans,
    requests.bulks,
    result.turns,
    job.rangesDone ?? 0,
    result.splits,
    state.gets,
    swaps,
    state.conflicts,
    state.listedEntries,
    state.looks,
    indexBusy * 100,
    slotsBusy * 100,
    tailS,
    peakHeapBytes / 1_048_576,
  ];
  return [shape, mode, ...numbers.map((number) => Math.round(number).toLocaleString('en')), cpuUsPerObject.toFixed(2)];
}
