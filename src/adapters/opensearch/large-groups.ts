/**
 * The sums of large groups, each by searches for that group alone. OpenSearch sums the documents of one query in 11 ns each, in a thread for each
 * query, and in 40 ns as one of several groups, in one thread.
 */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { OpenSearchClient } from './client.ts';
import { parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';

type Json = Readonly<Record<string, unknown>>;

/** How many documents a group has in each shard. */
interface Thresholds {
  /** From here on, searches for the group alone take less time than its part of a search for all groups. */
  readonly large: number;
  /** From here on, a search for the sum and one for the number take less time than one for both. */
  readonly veryLarge: number;
}

const THRESHOLDS: Thresholds = { large: 50_000, veryLarge: 1_000_000 };
/** Of one place, and places that are remembered: with the longest names, 6 MB. */
const GROUPS_MAX = 64;
const PLACES_MAX = 100;

/** A group that is summed by searches for it alone. */
export interface LargeGroup {
  readonly name: string;
  readonly isVeryLarge: boolean;
}

interface Group {
  readonly name: string;
  readonly objects: number;
}

export interface LargeGroups {
  at(place: string): readonly LargeGroup[];
  /** `shards`: of the index that the place is in. */
  remember(place: string, groups: readonly Group[], shards: number): void;
}

/** Which groups of a place were large when they were summed last. Only the time of a search depends on it. */
export function createLargeGroups({ large, veryLarge } = THRESHOLDS): LargeGroups {
  const places = new LRUCache<string, readonly LargeGroup[]>({ max: PLACES_MAX });
  return {
    at: (place) => places.get(place) ?? [],
    remember(place, groups, shards) {
      const found = groups.filter(({ name, objects }) => name !== '' && objects >= large * shards);
      const largest = found.toSorted((a, b) => b.objects - a.objects).slice(0, GROUPS_MAX);
      const remembered = largest.map(({ name, objects }) => ({ name, isVeryLarge: objects >= veryLarge * shards }));
      if (remembered.length > 0) places.set(place, remembered);
      else places.delete(place);
    },
  };
}

const pointSchema = z.object({ pit_id: z.string() });
/** A search that was refused has no shards; one that some shards refused, since too many waited there, has failed on these. */
const answersSchema = z.object({
  responses: z.array(z.looseObject({ _shards: z.object({ total: z.number(), successful: z.number() }).optional() })),
});

/** More than the 15 s of a request. OpenSearch holds a point in time until then if its request was ended early or the process ends. */
const KEEP_ALIVE = '20s';

/**
 * Sends the searches of one bucket's index, which all see its documents of one moment, since an object may change its group meanwhile.
 * Undefined if OpenSearch refuses a point in time or a part of one of the searches: a single search asks less of it.
 */
export function createSearchesAtOnce(client: OpenSearchClient, names: IndexNames) {
  return async function searchAtOnce(
    bucket: string,
    bodies: readonly Json[],
    signal: AbortSignal | undefined,
  ): Promise<readonly unknown[] | undefined> {
    const path = '/_search/point_in_time';
    const query = { keep_alive: KEEP_ALIVE, allow_partial_pit_creation: false };
    const opened = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}${path}`, query }, signal);
    if (opened.status !== 200) return undefined;
    const { pit_id: id } = parseAnswer(pointSchema, opened.body);
    try {
      const lines = bodies.map((body) => `{}\n${JSON.stringify({ ...body, pit: { id } })}\n`).join('');
      const answer = await client.send({ method: 'POST', path: '/_msearch', lines }, signal);
      if (answer.status !== 200) return undefined;
      const { responses } = parseAnswer(answersSchema, answer.body);
      return responses.every(({ _shards: shards }) => shards !== undefined && shards.successful === shards.total) ? responses : undefined;
    } finally {
      // without the signal, and nothing waits for it: the answer is there, or its time is over
      client.send({ method: 'DELETE', path, body: { pit_id: [id] } }).catch(() => undefined);
    }
  };
}
