/** Sums objects and bytes of what a search finds, in groups. */
import type { Readable } from '../../domain/access/readable.ts';
import type { Grouping, Usage, UsageRequest } from '../../api/usage.ts';
import { FOLDER_LEVELS } from '../../domain/documents/document.ts';
import { RequestError } from '../../domain/request-error.ts';
import { holds } from '../../domain/search/conditions.ts';
import { groupClause, type UsageBy } from '../../domain/search/groups.ts';
import type { ObjectFilter } from '../ports/object-index.ts';
import type { SumUsage, UsageGroup, UsageSum, UsageSums } from '../ports/object-usage.ts';
import { understand } from './search.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Less than the 15 s of a request to OpenSearch. */
const TIME_LIMIT_MS = 10_000;

/** Sums what the request finds. Throws `request.invalid`, `bucket.not-connected`, `search.too-wide` and the store's faults. */
export async function getUsage(
  { usage, state, clock }: WithPorts<'state' | 'clock'> & { readonly usage: SumUsage },
  request: UsageRequest,
  readable: Readable,
  signal?: AbortSignal,
): Promise<Usage> {
  const nowMs = clock.nowMs();
  const { filter, understood } = await understand(state, request, { nowMs, readable }, signal);
  const by = [...new Set([request.by ?? []].flat())];
  if (filter?.deleted === true) throw new RequestError('request.invalid', 'query: usage sums live objects only');
  const asked = filter === null || !by.includes('folder') ? filter : { ...filter, ...placeOf(filter) };
  const limits = { nowMs, limit: request.limit, timeLimitMs: TIME_LIMIT_MS };
  const sums = asked === null ? { objects: 0, bytes: 0, groups: by.map(() => []) } : await usage({ ...asked, by, ...limits }, signal);
  if (sums === 'too-slow') {
    throw new RequestError('search.too-wide', `the sums take longer than ${TIME_LIMIT_MS / 1_000} s: narrow the search`);
  }
  return {
    objects: sums.objects,
    bytes: sums.bytes,
    ...(understood !== undefined && { understood }),
    by: by.map((each, at) => groupingOf(each, sums, sums.groups[at] ?? [])),
  };
}

/**
 * The folder whose next folders are summed. The last part of a prefix that does not end in a slash is the beginning of names within its
 * folder, which is a condition like others.
 */
function placeOf({ bucket, prefix = '', where = [] }: ObjectFilter): Pick<ObjectFilter, 'prefix' | 'where'> {
  if (bucket === undefined) throw new RequestError('request.invalid', 'by: folders are those of one bucket: name it');
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  if (folder.split('/').length > FOLDER_LEVELS) {
    throw new RequestError(
      'request.invalid',
      `prefix: folders are counted down to ${FOLDER_LEVELS} levels; list the objects below instead`,
    );
  }
  return folder === prefix ? { prefix } : { prefix: folder, where: [...where, holds({ kind: 'prefix', value: prefix })] };
}

function groupingOf(by: UsageBy, { objects, bytes }: UsageSums, groups: readonly UsageGroup[]): Grouping {
  const sumOf = (name: keyof UsageSum): number => groups.reduce((sum, group) => sum + group[name], 0);
  const others = { objects: objects - sumOf('objects'), bytes: Math.max(0, bytes - sumOf('bytes')) };
  return {
    by,
    groups: groups.map(({ name, ...sums }) => {
      const filter = groupClause(by, name);
      return { ...(name !== '' && { name }), ...sums, ...(filter !== undefined && { filter }) };
    }),
    ...(others.objects > 0 && { others }),
  };
}
