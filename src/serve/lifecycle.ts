/**
 * The life of a serving process:
 *
 *   starting ──► running ──signal──► stopping ──► stopped (0)
 *      │                                │  ├──── deadline passed, or the stop failed (1)
 *      └─────────────signal─────────────┘  └──── second signal (128 + its number), at once
 *
 * In any state an uncaught error ends the process at once (1), with one fatal log line. SQS delivers the messages in hand
 * again after their visibility timeout.
 */
import { constants } from 'node:os';
import { withoutPasswords } from '../base/secrets.ts';

/** The signals that stop the process. */
const stopSignals = ['SIGTERM', 'SIGINT'] as const;
type StopSignal = (typeof stopSignals)[number];

export interface Lifecycle {
  /** The source of the signals, which is the process. */
  readonly signals: { on(signal: StopSignal, listener: () => void): unknown };
  readonly app: {
    start(): Promise<void>;
    /** May be called while start() is still running, and again after it has ended. */
    stop(): Promise<void>;
  };
  readonly shutdownTimeoutMs: number;
  /** Ends the process immediately. */
  readonly exitNow: (code: number) => void;
  /** Prints one line about the stop for the user. */
  readonly say: (message: string) => void;
}

/**
 * Starts the app, waits for SIGTERM or SIGINT, and stops the app within one deadline. Resolves with the exit code: 0 when
 * the stop succeeded in time, else 1. Rejects with start()'s error when the start failed before a signal arrived. It may be
 * called only once in a process, because its signal listeners stay until the process ends.
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
    // an interrupted start rejects with an error that does not matter; a start that succeeded nevertheless has more parts to stop
    await started.catch(() => undefined);
    await lifecycle.app.stop();
  });
}

/** Resolves at the first signal. The second signal ends the process. */
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
      say(`Tally received ${signal} and is stopping; a second signal ends it at once`);
      resolve();
    });
  };
  stopSignals.forEach(listen);
  return promise;
}

async function stopWithin({ shutdownTimeoutMs, say }: Lifecycle, stop: () => Promise<void>): Promise<number> {
  const { promise: late, resolve } = Promise.withResolvers<number>();
  const timer = setTimeout(() => {
    say(`Tally did not stop within TALLY_SHUTDOWN_TIMEOUT_MS (${shutdownTimeoutMs} ms) and ends now; SQS redelivers the messages in hand`);
    resolve(1);
  }, shutdownTimeoutMs);
  const stopped = stop().then(
    () => 0,
    (error: unknown) => {
      say(`Tally could not stop cleanly: ${withoutPasswords(String(error))}`);
      return 1;
    },
  );
  try {
    return await Promise.race([stopped, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** From now on an uncaught error ends the process with exit code 1, after `write` was called with one fatal log line (JSON, passwords masked). */
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

/** A log line in the format of the other log lines, which pino writes. */
function fatalLine(msg: string, error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return JSON.stringify({ level: 'fatal', time: new Date().toISOString(), error: withoutPasswords(text), msg });
}
