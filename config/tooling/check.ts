/**
 * The static checks (npm run check): the types beside the rest. Each checker has one thread, because those of one process make again
 * the types that another has made: of 71 s of CPU, 47 remain.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Go's own bound; it is oxlint's type-aware part that is written in Go. */
const env = { ...process.env, GOMAXPROCS: '1' };

async function passes(...scripts: readonly string[]): Promise<boolean> {
  for (const script of scripts) {
    const child = spawn(`npm run -s ${script}`, { env, stdio: 'inherit', shell: true });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) return false;
  }
  return true;
}

const results = await Promise.all([passes('types'), passes('lint', 'format:check', 'deadcode')]);
process.exitCode = results.every(Boolean) ? 0 : 1;
