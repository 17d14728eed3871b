/** Sums objects and bytes of a bucket. */
import type { z } from 'zod';
import type { Usage, usageRows, UsageRequest } from '../../api/usage.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { FOLDER_LEVELS } from '../../domain/documents/document.ts';
import { RequestError } from '../../domain/request-error.ts';
import { timeOf } from '../../api/fields.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectUsage, UsageRow } from '../ports/object-usage.ts';
import type { StateStore } from '../ports/state.ts';
import { readPage } from '../records/pages.ts';
import type { RequireCurrentForms } from './document-forms.ts';
import { createUnderstand } from './search.ts';

type UsageAnswer = z.output<(typeof usageRows)['GET /v1/usage']['answer']>;

interface UsageDependencies {
  readonly usage: ObjectUsage;
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly requireForms: RequireCurrentForms;
}

/** Less than the 15 s of a request to OpenSearch. Ten million documents take about a second. */
const TIME_LIMIT_MS = 10_000;

/** Creates the function. Throws `request.invalid`, `bucket.not-connected`, `index.upgrading`, `search.too-wide` and the store's faults. */
export function createGetUsage({ usage, state, clock, requireForms }: UsageDependencies) {
  const understand = createUnderstand({ state, requireForms });

  return async function getUsage(request: UsageRequest, signal?: AbortSignal): Promise<UsageAnswer> {
    const { by, limit, cursor, times, bucket } = request;
    const nowMs = clock.nowMs();
    const after = cursor === undefined ? undefined : decodeCursor(cursor, 1)[0];
    const { filter } = await understand(request, nowMs, signal, true);
    if (filter?.deleted === true) throw new RequestError('request.invalid', 'query: usage sums live objects only');
    if (filter !== null && filter.bucket !== bucket)
      throw new RequestError('request.invalid', 'query: usage is of one bucket, and `bucket` names it');
    const prefix = folderOf(filter?.prefix ?? '', by);
    if (filter === null) return { items: [] };
    const page = await readPage({
      limit,
      after: after === undefined ? undefined : [after],
      async fetch(count, position) {
        const [name] = position ?? [];
        // ages have no pages
        if (by === 'age' && name !== undefined) return [];
        const place = name === undefined ? {} : { after: name };
        const rows = await usage.usage(
          { ...filter, bucket, prefix, by, nowMs, limit: count, timeLimitMs: TIME_LIMIT_MS, ...place },
          signal,
        );
        if (rows === 'too-slow') throw tooWide(bucket, prefix);
        return rows;
      },
      positionOf: ({ name }) => [name],
    });
    return { ...page, items: page.items.map((row) => usageView(row, times === 'true')) };
  };
}

/** The prefix, if it is a folder whose next level is known. */
function folderOf(prefix: string, by: UsageRequest['by']): string {
  if (prefix !== '' && !prefix.endsWith('/')) throw new RequestError('request.invalid', 'prefix: must be empty or end in a slash');
  if (by === 'folder' && prefix.split('/').length > FOLDER_LEVELS) {
    throw new RequestError(
      'request.invalid',
      `prefix: folders are counted down to ${FOLDER_LEVELS} levels; list the objects below instead`,
    );
  }
  return prefix;
}

function tooWide(bucket: string, prefix: string): RequestError {
  const limit = `${TIME_LIMIT_MS / 1_000} s`;
  return new RequestError('search.too-wide', `the sums of ${bucket}/${prefix} take longer than ${limit}: narrow them by a prefix`);
}

function usageView({ name, objects, bytes, oldestMs, newestMs }: UsageRow, times: boolean): Usage {
  return {
    ...(name !== '' && { name }),
    objects,
    bytes,
    ...(times && oldestMs !== undefined && { oldest: timeOf(oldestMs) }),
    ...(times && newestMs !== undefined && { newest: timeOf(newestMs) }),
  };
}
