/** The command line with its streams in memory, a control plane that answers fixed records, and a clock that stands still. */
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { UNPRINTABLE } from '../../src/base/texts.ts';
import type { CliDependencies } from '../../src/cli/cli.ts';
import { createClient } from '../../src/cli/client/client.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import type { Settings } from '../../src/settings/settings.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

/** What a terminal would act on. */
export function unsafeIn(text: string): readonly string[] {
  return text.match(UNPRINTABLE)?.filter((character) => character !== '\n') ?? [];
}

/** Two hours after everything that the fake control plane tells of. */
const NOW_MS = Date.UTC(2026, 0, 2, 5, 4, 5);

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const REGISTRY_URL = 'http://127.0.0.1:8080';

/** `overrides` replace what commands are given, the environment for one. */
export function createCliWorld(overrides: Partial<CliDependencies> = {}) {
  const fake = createFakeControl();
  const clock = createFakeClock({ startMs: NOW_MS, autoAdvance: true });
  const signals = new EventEmitter();
  const served: Settings[] = [];
  let opened = 0;

  /** The words of a line, and then words that are taken as they are. */
  async function run(line = '', ...words: readonly string[]): Promise<Ran> {
    const args = [...line.split(' ').filter((word) => word !== ''), ...words];
    const out: string[] = [];
    const err: string[] = [];
    const exitCode = await runCli(args, {
      version: '1.2.3',
      env: { TALLY_INDEX_URL: 'sqlite:nowhere' },
      readFile: () => ({ text: 'secret', mode: 0o600 }),
      stdout: { write: (text: string) => out.push(text) },
      stderr: { write: (text: string) => err.push(text) },
      streams: () => ({ stdin: new PassThrough().end(), stdout: new PassThrough() }),
      clock,
      signals,
      machine: 'build-1',
      openClient: async () => createClient({ folder: undefined }),
      registryOf: async ({ TALLY_REGISTRY_URL: url = REGISTRY_URL }) => ({ url }),
      openSetup: async () => {
        throw new Error('this world has no AWS');
      },
      readText: () => '',
      async openControl() {
        opened += 1;
        return fake.operations;
      },
      async serve(settings) {
        served.push(settings);
        return 0;
      },
      ...overrides,
    });
    return { exitCode, stdout: out.join(''), stderr: err.join('') };
  }

  return {
    run,
    /** What the control plane was asked: the operations and their requests. */
    asked: fake.asked,
    /** The next operation fails so. */
    nextFails: (error: Error): void =>
      fake.nextDoes(() => {
        throw error;
      }),
    /** The next operation answers this. */
    nextAnswers: (answer: unknown): void => fake.nextDoes(async () => answer),
    /** The next operation of which nothing was said yet does this. */
    nextDoes: (action: () => Promise<unknown>): void => fake.nextDoes(action),
    /** Ctrl-C. */
    interrupt: (): void => void signals.emit('SIGINT'),
    /** Whether anything would hear a Ctrl-C. */
    isInterruptible: (): boolean => signals.listenerCount('SIGINT') > 0,
    served,
    opened: () => opened,
  };
}
