/** The bench `start`: how long `tally --help` takes, and how long a registry on SQLite takes from its start until it is ready. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeProgram } from '../../../config/tooling/package.ts';
import { commandOf, countOption } from '../bench-command.ts';
import { ANY_PORT, servedAt, startProcess, until, type Environment } from '../processes.ts';
import { atMost, medianOf, quantileOf } from '../report.ts';

interface StartOptions {
  readonly rounds: number;
}

const HELP_MS = 200;
const READY_MS = 700;

/** The bench's command. */
export const startBench = commandOf<StartOptions>({
  name: 'start',
  description:
    'The duration of `tally --help`, and of `tally serve --embedded` from its start until /readyz answers 200: from sources and from the package, with and without what an earlier start has compiled.',
  options: [countOption('--rounds <count>', 'of all starts', [1, 1_000], 15)],
  run,
});

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

async function run({ rounds }: StartOptions, tell: (text: string) => void) {
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
    const rows = measured.map(({ form, what, goalMs, took }) => {
      const durations = took.map(({ ms }) => ms);
      const cpu = took.flatMap(({ cpuMs }) => cpuMs ?? []);
      return {
        form,
        start: what,
        goalMs,
        medianMs: medianOf(durations),
        p90Ms: quantileOf(durations, 0.9),
        // user and system time of all threads until then
        ...(cpu.length > 0 && { cpuMs: medianOf(cpu) }),
      };
    });
    return {
      starts: rows,
      targets: rows.map(({ form, start, medianMs, goalMs }) => atMost(`${form}, ${start}: median, ms`, medianMs, goalMs)),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
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
