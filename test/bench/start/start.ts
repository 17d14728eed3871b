/** The bench `start`: how long `tally --help` takes, and how long a registry on SQLite takes from its start until it is ready. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { Option } from 'commander';
import { writeProgram } from '../../../config/tooling/package.ts';
import { commandOf, whole } from '../bench-command.ts';
import { ANY_PORT, servedAt, startProcess, until, type Environment } from '../processes.ts';
import { medianOf, quantileOf, tableText } from '../statistics.ts';

interface StartOptions {
  readonly rounds: number;
}

interface StartRow {
  readonly form: string;
  readonly what: string;
  readonly goalMs: number;
  readonly medianMs: number;
  readonly p90Ms: number;
  /** User and system time of all threads until then. */
  readonly cpuMs?: number;
}

interface StartReport {
  readonly bench: 'start';
  readonly date: string;
  readonly node: string;
  readonly rounds: number;
  readonly rows: readonly StartRow[];
}

const HELP_MS = 200;
const READY_MS = 700;

/** The bench's command. */
export const startBench = commandOf<StartOptions, StartReport>({ name: 'start', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description(
      'The duration of `tally --help`, and of `tally serve --embedded` from its start until /readyz answers 200: from sources and from the package, with and without what an earlier start has compiled.',
    )
    .addOption(new Option('--rounds <count>', 'of all starts').argParser(whole(1, 1_000)).default(15));
}

/** One of the starts that are compared: they take turns. */
interface Case {
  readonly form: string;
  readonly main: string;
  readonly env: Environment;
}

interface Took {
  readonly ms: number;
  readonly cpuMs?: number;
}

async function run({ rounds }: StartOptions, tell: (text: string) => void): Promise<StartReport> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-bench-start-'));
  try {
    tell('building the package');
    await writeProgram(folder);
    const mains = {
      sources: fileURLToPath(new URL('../../../src/tally.js', import.meta.url)),
      package: join(folder, 'dist/program/tally.js'),
    };
    const cases = Object.entries(mains).flatMap(([form, main]): Case[] => [
      { form, main, env: {} },
      { form: `${form}, nothing compiled`, main, env: { NODE_DISABLE_COMPILE_CACHE: '1' } },
    ]);
    const measured = cases.flatMap((each) => [
      { ...each, what: 'help', goalMs: HELP_MS, start: timeOfHelp, took: [] as Took[] },
      { ...each, what: 'serve until ready', goalMs: READY_MS, start: timeUntilReady, took: [] as Took[] },
    ]);
    for (let round = 0; round <= rounds; round += 1) {
      tell(`round ${round} of ${rounds}`);
      for (const { main, env, start, took } of measured) {
        const result = await start(main, env);
        // the first round compiles
        if (round > 0) took.push(result);
      }
    }
    const rows = measured.map(({ form, what, goalMs, took }) => rowOf({ form, what, goalMs }, took));
    return { bench: 'start', date: new Date().toISOString(), node: process.version, rounds, rows };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function rowOf(row: Pick<StartRow, 'form' | 'what' | 'goalMs'>, took: readonly Took[]): StartRow {
  const durations = took.map(({ ms }) => ms);
  const cpu = took.flatMap(({ cpuMs }) => cpuMs ?? []);
  return { ...row, medianMs: medianOf(durations), p90Ms: quantileOf(durations, 0.9), ...(cpu.length > 0 && { cpuMs: medianOf(cpu) }) };
}

async function timeOfHelp(main: string, env: Environment): Promise<Took> {
  const beganMs = performance.now();
  const help = startProcess([main, '--help'], env);
  await help.ended;
  const ms = performance.now() - beganMs;
  if (!help.text().includes('Usage: ')) throw new Error(`no help: ${help.text()}`);
  return { ms };
}

const EVERY_MS = 2;

async function timeUntilReady(main: string, env: Environment): Promise<Took> {
  const data = await mkdtemp(join(tmpdir(), 'tally-bench-start-'));
  const addresses = { TALLY_HTTP_ADDRESS: ANY_PORT, TALLY_HEALTH_ADDRESS: ANY_PORT, TALLY_EMBEDDED_ADDRESS: ANY_PORT };
  const beganMs = performance.now();
  // the option of the first line of tally.js
  const daemon = startProcess(['--max-semi-space-size=16', main, 'serve', '--embedded'], {
    ...env,
    ...addresses,
    TALLY_EMBEDDED_DATA: data,
  });
  try {
    const { healthUrl } = await servedAt(daemon, EVERY_MS);
    const isReady = async (): Promise<boolean> => (await fetch(new URL('/readyz', healthUrl))).ok;
    await until('the registry to be ready', isReady, { everyMs: EVERY_MS });
    return { ms: performance.now() - beganMs, cpuMs: daemon.usage().cpuUs / 1_000 };
  } finally {
    await daemon.stop();
    await rm(data, { recursive: true });
  }
}

function reportText({ rows, node, date, rounds }: StartReport): string {
  const cells = rows.map(({ form, what, goalMs, medianMs, p90Ms, cpuMs }) => [
    form,
    what,
    medianMs.toFixed(0),
    p90Ms.toFixed(0),
    cpuMs?.toFixed(0) ?? '',
    `< ${goalMs}`,
    medianMs < goalMs ? 'yes' : 'NO',
  ]);
  const table = tableText([['form', 'start', 'median ms', 'p90 ms', 'CPU ms', 'goal', 'met'], ...cells]);
  return `start, Node ${node}, ${date}, ${rounds} rounds\n\n${table}`;
}
