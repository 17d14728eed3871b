/** A proxy before OpenSearch that counts its requests by operation. */
import { z } from 'zod';
import { startFaultProxy } from '../../support/servers/fault-proxy.ts';

export interface OpenSearchCounts {
  readonly url: string;
  /** By operation, since they were last asked for. */
  counts(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

const kindSchema = z.object({
  query: z.object({ bool: z.object({ filter: z.tuple([z.object({ term: z.object({ kind: z.string() }) })]) }) }),
});

/** Starts it. `stateIndex`: the index of the records, whose lists are counted by their kind. */
export async function startOpenSearchCounts(openSearchUrl: string, stateIndex: string): Promise<OpenSearchCounts> {
  let counts = new Map<string, number>();
  function operationOf(path: string, body: string): string {
    const [address = ''] = path.split('?');
    const [index = '', operation = '_indices'] = address.split('/').slice(1);
    const isState = index === stateIndex || (index === '_bulk' && body.slice(0, 500).includes(`"${stateIndex}"`));
    const name = (index.startsWith('_') ? index : operation).replace(/^_/, '');
    if (!isState) return `OpenSearch objects ${name}`;
    const kind = name === 'search' ? (kindSchema.safeParse(JSON.parse(body)).data?.query.bool.filter[0].term.kind ?? 'what is due') : '';
    return `OpenSearch state ${name === 'search' ? `list ${kind}` : name}`;
  }

  const proxy = await startFaultProxy(openSearchUrl);
  // interferes with none
  proxy.interfere({ kind: 'hang' }, ({ path, body }) => {
    const operation = operationOf(path, body);
    counts.set(operation, (counts.get(operation) ?? 0) + 1);
    return false;
  });
  return {
    url: proxy.url,
    counts() {
      const before = Object.fromEntries(counts);
      counts = new Map();
      return before;
    },
    close: () => proxy.close(),
  };
}
