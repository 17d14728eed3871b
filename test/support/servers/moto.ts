/** moto: an emulator of AWS with CloudTrail, which LocalStack lacks. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { findProgram } from '../../docs/programs.ts';

export const MOTO = { name: 'moto_server', variable: 'TALLY_TEST_MOTO_SERVER' } as const;

/** Starts one on a port of the system's choice. It ends with this process at the latest. */
export async function startMoto() {
  const child = spawn(findProgram(MOTO) ?? '', ['-H', '127.0.0.1', '-p', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  process.once('exit', () => child.kill());
  const lines: string[] = [];
  const endpoint = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const found = /Running on (http:\S+)/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
    }
    child.once('error', reject);
    child.once('close', () => reject(new Error(`moto ended: ${lines.join('\n')}`)));
  });
  return { endpoint, stop: () => void child.kill() };
}
