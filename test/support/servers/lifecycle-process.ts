/** A process whose app stops at once, hangs while it stops, or fails where nobody catches it. */
import { exitOnUncaught, runUntilStopped } from '../../../src/app/lifecycle.ts';

const [behaviour, shutdownTimeoutMs] = process.argv.slice(2);
const exitNow = (code: number): void => process.exit(code);
const tell = (line: string): void => void process.stderr.write(`${line}\n`);

/** A part of the app that keeps the process alive. */
const work = setInterval(() => {}, 60_000);

function fail(): void {
  const error = new Error('no connection to https://tally:secret@index:9200');
  if (behaviour === 'rejects') void Promise.reject(error);
  else throw error;
}

exitOnUncaught({ exitNow, write: (line) => void process.stderr.write(line) });
const exitCode = await runUntilStopped({
  signals: process,
  app: {
    async start() {
      process.stdout.write('started\n');
      if (behaviour === 'throws' || behaviour === 'rejects') setImmediate(fail);
    },
    async stop() {
      process.stdout.write('stopping\n');
      if (behaviour === 'hangs') await new Promise(() => {});
      clearInterval(work);
    },
  },
  shutdownTimeoutMs: Number(shutdownTimeoutMs),
  exitNow,
  say: tell,
});
exitNow(exitCode);
