/** OpenSearch beside what is measured: what it used, as its nodes count it themselves, when it has come to rest, and how a run leaves it. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

const statsSchema = z.object({
  nodes: z.record(z.string(), z.object({ process: z.object({ cpu: z.object({ total_in_millis: z.number() }) }) })),
});

/** The CPU time that all nodes took since they began. */
export async function indexCpuUs(openSearchUrl: string): Promise<number> {
  const stats = statsSchema.parse(await (await fetch(`${openSearchUrl}/_nodes/stats/process`)).json());
  return Object.values(stats.nodes).reduce((sum, node) => sum + node.process.cpu.total_in_millis * 1_000, 0);
}

const mergesSchema = z.object({ _all: z.object({ total: z.object({ merges: z.object({ current: z.number() }) }) }) });
const MERGES_CHECK_MS = 200;
/** Two looks in a row without a merge: one may be about to begin. */
const QUIET_LOOKS = 2;

/** Refreshes an index, and resolves when none of its segments are being merged. */
export async function settleIndex(openSearchUrl: string, index: string): Promise<void> {
  const ask = async (method: string, path: string): Promise<unknown> => {
    const answer = await fetch(`${openSearchUrl}/${index}/${path}`, { method });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  await ask('POST', '_refresh');
  for (let quiet = 0; quiet < QUIET_LOOKS;) {
    await delay(MERGES_CHECK_MS);
    const { current } = mergesSchema.parse(await ask('GET', '_stats/merge'))._all.total.merges;
    quiet = current === 0 ? quiet + 1 : 0;
  }
}

/** Removes what a run left: its indices, and no others. */
export async function removeIndices(openSearchUrl: string, prefix: string): Promise<void> {
  const { origin, username, password } = new URL(openSearchUrl);
  const headers = username === '' ? {} : { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  await fetch(`${origin}/${prefix}-*?expand_wildcards=all`, { method: 'DELETE', headers }).then((answer) => answer.text());
}
