/**
 * Makes time pass faster in this process: the clock, durations and timers, so that an hour of schedules is measured in minutes.
 * What the process does still takes as long as it takes. As a preload (`node --import`) it begins with {@link FAST_CLOCK} at once.
 */
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { z } from 'zod';

/** The variable that holds a {@link FastClock} as JSON. */
export const FAST_CLOCK = 'BENCH_FAST_CLOCK';

const fastClockSchema = z.object({
  /** How many times faster. */
  speed: z.number().positive(),
  /** When it begins, by the clock of the machine, and what time it is then. Processes with the same two have the same clock. */
  fromMs: z.number(),
  isMs: z.number(),
});
export type FastClock = z.infer<typeof fastClockSchema>;

/** What the clock shows when that of the machine shows `atMs`. */
export function fastMs({ speed, fromMs, isMs }: FastClock, atMs: number): number {
  return isMs + (atMs - fromMs) * speed;
}

/** Begins, for the life of the process. */
export function accelerate(clock: FastClock): void {
  const { speed } = clock;
  const MachineDate = Date;
  const nowMs = (): number => Math.floor(fastMs(clock, MachineDate.now()));
  globalThis.Date = class extends MachineDate {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [nowMs()] : given) as [number]));
    }
    static override now(): number {
      return nowMs();
    }
  } as DateConstructor;
  const steadyMs = performance.now.bind(performance);
  performance.now = () => steadyMs() * speed;
  globalThis.setTimeout = fast(setTimeout, speed);
  globalThis.setInterval = fast(setInterval, speed);
  const delay = timersPromises.setTimeout;
  timersPromises.setTimeout = (delayMs = 0, value, options) => delay(delayMs / speed, value, options);
  const signalAfter = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = (delayMs) => signalAfter(Math.ceil(delayMs / speed));
  syncBuiltinESMExports();
}

/** The timer function whose second argument is a delay. Promises of it (util.promisify) are not faster: nothing here makes any. */
function fast<Timer extends (...given: never) => unknown>(timer: Timer, speed: number): Timer {
  return new Proxy(timer, {
    apply: (target, self, [run, delayMs = 0, ...rest]) => Reflect.apply(target, self, [run, Number(delayMs) / speed, ...rest]),
  });
}

const given = process.env[FAST_CLOCK];
if (given !== undefined) accelerate(fastClockSchema.parse(JSON.parse(given)));
