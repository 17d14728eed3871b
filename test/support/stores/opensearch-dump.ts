/** The indices of one installation in OpenSearch as lines of JSON: its indices and their documents. */
import { z } from 'zod';

/** A request to the server, with every right. */
export type Ask = (method: 'GET' | 'POST' | 'PUT', path: string, body?: object | string) => Promise<unknown>;

const indexSchema = z.object({
  aliases: z.looseObject({}),
  mappings: z.looseObject({}),
  settings: z.object({ index: z.record(z.string(), z.unknown()) }),
});
const hitsSchema = z.object({
  hits: z.object({
    hits: z.array(z.object({ _index: z.string(), _id: z.string(), _version: z.number(), _source: z.looseObject({}) })),
  }),
});

const lineSchema = z.union([
  z.strictObject({ index: z.string(), body: indexSchema }),
  z.strictObject({ document: z.string(), of: z.string(), version: z.number(), source: z.looseObject({}) }),
]);

/** What OpenSearch gives to every index, and refuses from others. */
const ASSIGNED = new Set(['creation_date', 'uuid', 'version', 'provided_name', 'replication']);
/** More than a fixture has. */
const DOCUMENTS_MAX = 1_000;

/** The server at an address, for `dump` and `load`. Throws what it refuses. */
export function askAt(url: string): Ask {
  return async function ask(method, path, body) {
    const type = typeof body === 'string' ? 'application/x-ndjson' : 'application/json';
    const init =
      body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'content-type': type } };
    const answer = await fetch(`${url}${path}`, { method, ...init });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as unknown;
  };
}

/** The lines of a prefix, in the order of their names and ids. */
export async function dump(ask: Ask, prefix: string): Promise<string> {
  await ask('POST', `/${prefix}-*/_refresh?expand_wildcards=all`);
  const indices = z.record(z.string(), indexSchema).parse(await ask('GET', `/${prefix}-*?expand_wildcards=all`));
  const search = `/${prefix}-*/_search?expand_wildcards=all&version=true&size=${DOCUMENTS_MAX}`;
  const { hits } = hitsSchema.parse(await ask('GET', search)).hits;
  const lines: z.infer<typeof lineSchema>[] = [
    ...Object.entries(indices)
      .map(([index, { settings, ...body }]) => ({ index, body: { ...body, settings: { index: withoutAssigned(settings.index) } } }))
      .toSorted((a, b) => (a.index < b.index ? -1 : 1)),
    ...hits
      .map(({ _id, _index, _version, _source }) => ({ document: _id, of: _index, version: _version, source: _source }))
      .toSorted((a, b) => (`${a.of} ${a.document}` < `${b.of} ${b.document}` ? -1 : 1)),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** Makes everything that the lines name. Of `from`, the prefix in them, `to` is made. */
export async function load(ask: Ask, text: string, { from, to }: { readonly from: string; readonly to: string }): Promise<void> {
  const lines = text
    .replaceAll(`"${from}-`, `"${to}-`)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => lineSchema.parse(JSON.parse(line)));
  const bulk: string[] = [];
  for (const line of lines) {
    if ('index' in line) await ask('PUT', `/${line.index}`, line.body);
    else bulk.push(JSON.stringify({ index: versionOf(line) }), JSON.stringify(line.source));
  }
  const { errors } = z.object({ errors: z.boolean() }).parse(await ask('POST', '/_bulk?refresh=true', `${bulk.join('\n')}\n`));
  if (errors) throw new Error('OpenSearch refused documents of the fixture');
}

/** The version of an object's document is its clock; OpenSearch counts those of records itself. */
function versionOf({ document, of, version }: { readonly document: string; readonly of: string; readonly version: number }): object {
  const isClock = version > 1_000_000;
  return { _index: of, _id: document, ...(isClock && { version, version_type: 'external_gte' }) };
}

function withoutAssigned(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !ASSIGNED.has(name)));
}
