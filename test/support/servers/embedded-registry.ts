/** A registry in embedded mode as a process with data of its own, for tests and for programs that are none. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDaemon } from './daemon.ts';

/** `main`: the first file of the program. */
export async function startEmbeddedRegistry(main?: string) {
  const data = await mkdtemp(join(tmpdir(), 'tally-embedded-'));
  const daemon = await startDaemon({ TALLY_EMBEDDED_DATA: data }, ['serve', '--embedded'], main);
  const { controlUrl, embeddedUrl } = daemon;
  return {
    controlUrl,
    /** SQS, SNS and S3. */
    embeddedUrl,
    request: (...asked: Parameters<typeof daemon.request>) => daemon.request(...asked),
    /** Creates a bucket if there is none, connects it, and puts objects with their keys as contents. */
    async put(bucket: string, keys: readonly string[]): Promise<void> {
      await fetch(`${embeddedUrl}/${bucket}`, { method: 'PUT' });
      await daemon.request('POST', '/v1/buckets', { bucket });
      for (const key of keys) {
        const { ok, status } = await fetch(`${embeddedUrl}/${bucket}/${encodeURIComponent(key)}`, { method: 'PUT', body: key });
        if (!ok) throw new Error(`PUT ${key}: ${status}`);
      }
    },
    async close(): Promise<void> {
      await daemon.stop();
      await rm(data, { recursive: true, force: true });
    },
  };
}
