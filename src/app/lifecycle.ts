/**
 * The life of a serving process:
 *
 *   starting ──► running ──signal──► stopping ──► stopped (0)
 *      │                                │  ├──── deadline passed, or the stop failed (1)
 *      └─────────────signal─────────────┘  └──── second signal (128 + its number), at once
 *
 * From any state an error that nobody caught ends it at once (1), with one fatal log line. Whatever was in hand comes back
 * after its visibility timeout.
 */
import { constants } from 'node:os';
import { withoutPasswords } from '../domain/passwords.ts';

/** The signals that ask a process to stop. */
const stopSignals = ['SIGTERM', 'SIGINT'] as const;
type StopSignal = (typeof stopSignals)[number];

export interface Lifecycle {
  /** Where signals come from: the process. */
  readonly signals: { on(signal: StopSignal, listener: () => void): unknown };
  readonly app: {
    start(): Promise<void>;
    /** May be called while start() is still going on, and again after that. */
    stop(): Promise<void>;
  };
  readonly shutdownTimeoutMs: number;
  /** Ends the process without waiting for anything. */
  readonly exitNow: (code: number) => void;
  /** Tells people one line about the stop. */
  readonly say: (message: string) => void;
}

/**
 * Starts, waits for SIGTERM or SIGINT, stops within one deadline. Resolves with the exit code: 0 when the stop ended in
 * time, 1 when it failed or did not. Rejects with start()'s error when it failed before a signal came. To be called once
 * in a process: its listeners stay until the process ends.
 */
export async function runUntilStopped(lifecycle: Lifecycle): Promise<number> {
  const asked = stopAsked(lifecycle);
  let isStarting = true;
  const started = lifecycle.app.start().finally(() => {
    isStarting = false;
  });
  await Promise.race([started, asked]);
  await asked;
  return stopWithin(lifecycle, async () => {
    const wasStarting = isStarting;
    await lifecycle.app.stop();
    if (!wasStarting) return;
    // a start that was interrupted rejects with whatever it was waiting for; what one that got through has built must go too
    await started.catch(() => undefined);
    await lifecycle.app.stop();
  });
}

/** Resolves at the first signal; the second one ends the process. */
function stopAsked({ signals, exitNow, say }: Lifecycle): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStopping = false;
  const listen = (signal: StopSignal): void => {
    signals.on(signal, () => {
      if (isStopping) {
        exitNow(128 + constants.signals[signal]);
        return;
      }
      isStopping = true;
      say(`${signal}: stopping; a second signal ends the process at once`);
      resolve();
    });
  };
  stopSignals.forEach(listen);
  return promise;
}

async function stopWithin({ shutdownTimeoutMs, say }: Lifecycle, stop: () => Promise<void>): Promise<number> {
  const { promise: late, resolve } = Promise.withResolvers<number>();
  const timer = setTimeout(() => {
    say(`not stopped within TALLY_SHUTDOWN_TIMEOUT_MS (${shutdownTimeoutMs} ms): what is in hand comes back after its visibility timeout`);
    resolve(1);
  }, shutdownTimeoutMs);
  const stopped = stop().then(
    () => 0,
    (error: unknown) => {
      say(`the stop failed: ${withoutPasswords(String(error))}`);
      return 1;
    },
  );
  try {
    return await Promise.race([stopped, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** From now on an error that nobody caught ends the process with exit code 1, after `write` was given one fatal log line (JSON, passwords masked). */
export function exitOnUncaught({
  write,
  exitNow,
}: {
  readonly write: (line: string) => void;
  readonly exitNow: (code: number) => void;
}): void {
  const end = (what: string) => (error: unknown) => {
    write(`${fatalLine(what, error)}\n`);
    exitNow(1);
  };
  process.on('uncaughtException', end('uncaught exception'));
  process.on('unhandledRejection', end('unhandled rejection'));
}

/** As pino writes the others. */
function fatalLine(msg: string, error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return JSON.stringify({ level: 'fatal', time: new Date().toISOString(), error: withoutPasswords(text), msg });
}
