/** A registry in embedded mode as a process, for programs that are not tests: it is ended, and its data removed, with them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { MAIN, nodeOptions } from './program.ts';

const POLL_MS = 250;
/** A re-index waits a minute for late events; a busy machine takes longer. */
const PATIENCE_MS = 240_000;

export interface EmbeddedRegistry {
  readonly controlUrl: string;
  /** SQS, SNS and S3. */
  readonly embeddedUrl: string;
  /** Sends a request to the control plane. Throws unless it succeeds. */
  request(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Creates a bucket if there is none, and puts objects with their keys as contents. */
  put(bucket: string, keys: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** `main`: the first file of the program. */
export async function startEmbeddedRegistry(main: string = MAIN): Promise<EmbeddedRegistry> {
  const data = mkdtempSync(join(tmpdir(), 'tally-embedded-'));
  const any = '127.0.0.1:0';
  // settings of the caller are for other registries
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TALLY_')));
  const registry = spawn(process.execPath, [...nodeOptions(), main, 'serve', '--embedded'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...inherited, TALLY_EMBEDDED_DATA: data, TALLY_HTTP_ADDRESS: any, TALLY_HEALTH_ADDRESS: any, TALLY_EMBEDDED_ADDRESS: any },
  });
  const { controlUrl, embeddedUrl } = await new Promise<{ readonly controlUrl: string; readonly embeddedUrl: string }>(
    (resolve, reject) => {
      registry.once('exit', (code) => reject(new Error(`the registry ended with ${code ?? 'a signal'} before it served anything`)));
      createInterface({ input: registry.stdout }).on('line', (line) => {
        if (line.includes('"msg":"listening"')) resolve(JSON.parse(line));
      });
    },
  );
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const answer = await fetch(url, init);
    if (!answer.ok) throw new Error(`${init.method ?? 'GET'} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  return {
    controlUrl,
    embeddedUrl,
    async request(method, path, body) {
      const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
      const answer = await send(`${controlUrl}${path}`, { method, ...json });
      return answer.status === 204 ? undefined : answer.json();
    },
    async put(bucket, keys) {
      await fetch(`${embeddedUrl}/${bucket}`, { method: 'PUT' });
      for (const key of keys) await send(`${embeddedUrl}/${bucket}/${encodeURIComponent(key)}`, { method: 'PUT', body: key });
    },
    async close() {
      registry.kill('SIGTERM');
      await once(registry, 'exit');
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** Asks until the answer is the wanted one. Throws the last reason after some minutes. */
export async function answers<Answer>(ask: () => Promise<Answer>, isWanted: (answer: Answer) => boolean): Promise<Answer> {
  const untilMs = Date.now() + PATIENCE_MS;
  for (;;) {
    let reason: unknown = new Error('the answers were others than the wanted one');
    try {
      const answer = await ask();
      if (isWanted(answer)) return answer;
    } catch (error) {
      reason = error;
    }
    if (Date.now() > untilMs) throw new Error(`not within ${PATIENCE_MS} ms`, { cause: reason });
    await delay(POLL_MS);
  }
}
