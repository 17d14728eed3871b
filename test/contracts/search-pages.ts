/** All pages of a search, as a reader goes through them. */
import type { ObjectDocument } from '../../src/ordering/document.ts';
import type { ObjectQuery, Store } from '../../src/store/store.ts';

export const placesOf = (found: readonly ObjectDocument[]): readonly string[] => found.map(({ bucket, key }) => `${bucket}/${key}`);

/** The places of all that the search finds, in pages of this many. */
export async function allPages({ objects }: Store, query: Omit<ObjectQuery, 'limit'>, limit: number): Promise<readonly string[]> {
  const found: ObjectDocument[] = [];
  for (let after: ObjectQuery['after']; ;) {
    const page = await objects.search({ ...query, limit, ...(after !== undefined && { after }) });
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return placesOf(found);
    const by = query.sort?.by ?? 'key';
    const value = by === 'key' ? undefined : last[by];
    const number = typeof value === 'string' ? Date.parse(value) : (value ?? -1);
    after = { bucket: last.bucket, key: last.key, ...(by !== 'key' && { value: number }) };
  }
}
