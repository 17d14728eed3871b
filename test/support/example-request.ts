/** The example of a row as it is sent. */
import type { PlacedRow } from '../../src/registry/contract/contract.ts';

export function exampleRequest({ path, example }: PlacedRow) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(example.params?.[name] ?? ''));
  const query = new URLSearchParams(Object.entries(example.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]));
  const body = example.body === undefined ? {} : { body: JSON.stringify(example.body) };
  const headers: Readonly<Record<string, string>> = example.body === undefined ? {} : { 'content-type': 'application/json' };
  return { path: query.size === 0 ? filled : `${filled}?${query.toString()}`, headers, ...body };
}
