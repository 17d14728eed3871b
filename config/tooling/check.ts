/**
 * Runs the static checks (npm run check): the types at the same time as the others. Each checker has one thread, because each further
 * thread would compute the same types again (71 s of CPU instead of 47).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Limits the threads of oxlint's type-aware part, which is written in Go. */
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
