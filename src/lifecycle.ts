/**
 * The life of a serving process:
 *
 *   starting ──► running ──signal──► stopping ──► stopped (0)
 *      │                               │  └──── deadline passed (1)
 *      └── signal ─────────────────────┘  └──── second signal (128 + its number), at once
 */
import { constants } from 'node:os';

/** The signals that ask a process to stop. */
const stopSignals = ['SIGTERM', 'SIGINT'] as const;
type StopSignal = (typeof stopSignals)[number];

/** Where signals come from: the process, or an emitter in tests. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown;
  off(signal: StopSignal, listener: () => void): unknown;
}

export interface Lifecycle {
  readonly start: () => Promise<void>;
  /** May be called while start() is still going on. The signal is aborted at the deadline. */
  readonly stop: (signal: AbortSignal) => Promise<void>;
  readonly signals: SignalSource;
  readonly shutdownTimeoutMs: number;
  /** Ends the process without waiting for anything. */
  readonly exitNow: (code: number) => void;
  readonly say: (message: string) => void;
}

/**
 * Starts, waits for SIGTERM or SIGINT, stops within one deadline. Resolves with the exit code: 0 when the stop ended in
 * time, 1 when it failed or did not. Rejects with start()'s error when it failed before a signal came.
 */
export async function runUntilStopped(lifecycle: Lifecycle): Promise<number> {
  const { promise: asked, listeners } = listen(lifecycle);
  try {
    let isStarting = true;
    const started = lifecycle.start().finally(() => {
      isStarting = false;
    });
    await Promise.race([started, asked]);
    await asked;
    return await stopWithin(lifecycle, async (signal) => {
      const wasStarting = isStarting;
      await lifecycle.stop(signal);
      if (!wasStarting) return;
      // a start that was interrupted rejects with whatever it was waiting for; one that got through must be undone again
      await started.catch(() => undefined);
      await lifecycle.stop(signal);
    });
  } finally {
    for (const [signal, listener] of listeners) lifecycle.signals.off(signal, listener);
  }
}

/** Resolves at the first signal; the second one ends the process. */
function listen({ signals, exitNow, say }: Lifecycle): {
  readonly promise: Promise<void>;
  readonly listeners: readonly (readonly [StopSignal, () => void])[];
} {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStopping = false;
  const listeners = stopSignals.map((signal) => {
    const listener = (): void => {
      if (isStopping) {
        exitNow(128 + constants.signals[signal]);
        return;
      }
      isStopping = true;
      say(`${signal}: stopping; a second signal ends the process at once`);
      resolve();
    };
    signals.on(signal, listener);
    return [signal, listener] as const;
  });
  return { promise, listeners };
}

async function stopWithin({ shutdownTimeoutMs, say }: Lifecycle, stop: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const deadline = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<number>();
  // not AbortSignal.timeout: its timer would not keep a process alive that has nothing else left to do
  const timer = setTimeout(() => {
    const message = `the stop did not end within ${shutdownTimeoutMs} ms; messages in hand come back after their visibility timeout`;
    deadline.abort(new Error(message));
    say(message);
    resolve(1);
  }, shutdownTimeoutMs);
  const stopped = stop(deadline.signal).then(
    () => 0,
    (error: unknown) => {
      if (!deadline.signal.aborted) say(`the stop failed: ${error instanceof Error ? error.message : String(error)}`);
      return 1;
    },
  );
  try {
    return await Promise.race([stopped, late]);
  } finally {
    clearTimeout(timer);
  }
}
