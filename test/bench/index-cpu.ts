/** What OpenSearch used, as its nodes count it themselves. */
import { z } from 'zod';

const statsSchema = z.object({
  nodes: z.record(z.string(), z.object({ process: z.object({ cpu: z.object({ total_in_millis: z.number() }) }) })),
});

/** The CPU time that all nodes took since they began. */
export async function indexCpuUs(openSearchUrl: string): Promise<number> {
  const stats = statsSchema.parse(await (await fetch(`${openSearchUrl}/_nodes/stats/process`)).json());
  return Object.values(stats.nodes).reduce((sum, node) => sum + node.process.cpu.total_in_millis * 1_000, 0);
}
