/**
 * The feed on a shard that behaves as OpenSearch's replication model says
 * (https://github.com/opensearch-project/OpenSearch, org.opensearch.index.seqno): a primary gives out numbers and executes writes in any
 * order, a replica follows, either refreshes when it likes, and the primary may die at any moment with what the replica lacks. On real
 * servers the same is shown by feed-contract.ts and by `npm run test:rolling`, which rarely meet the moments that matter.
 */
import { describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import type { Position } from '../../../src/records/position.ts';
import { createChanges } from '../../../src/store/opensearch/changes.ts';
import type { OpenSearchClient, OpenSearchRequest } from '../../../src/store/opensearch/client.ts';
import { createObjectScan } from '../../../src/store/opensearch/scan.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import { isLong } from '../../support/breadth.ts';
import { createFollower, type FeedPage } from '../../support/follower.ts';
import { createRandom } from '../../support/random/seeded.ts';

const BUCKET = 'photos';
const HISTORY = 'history-1';
const KEYS = 6;
const NO_PRIMARY = { error: { type: 'no_shard_available_action_exception', reason: 'its primary is dead' } };

interface Write {
  readonly seq: number;
  /** Absent: a number whose write was lost with its primary. */
  readonly document?: ObjectDocument;
}

/** One copy of the shard. */
class Copy {
  executed = new Map<number, Write>();
  searchable: readonly Write[] = [];
  private reached = -1;

  get localCheckpoint(): number {
    while (this.executed.has(this.reached + 1)) this.reached += 1;
    return this.reached;
  }
  get maxSeqNo(): number {
    return Math.max(-1, ...this.executed.keys());
  }
  /** The latest write of each key. */
  held(): readonly (Write & { readonly document: ObjectDocument })[] {
    const latest = new Map<string, Write & { readonly document: ObjectDocument }>();
    for (const { seq, document } of [...this.executed.values()].toSorted((a, b) => a.seq - b.seq))
      if (document !== undefined) latest.set(document.key, { seq, document });
    return [...latest.values()];
  }
  refresh(): void {
    this.searchable = this.held();
  }
}

class Shard {
  primary = new Copy();
  replica = new Copy();
  /** What the primary tells; and what the replica has heard of it, which is all that it knows when it is promoted. */
  knownCheckpoint = -1;
  private heardCheckpoint = -1;
  term = 1;
  /** Its primary is dead, and the cluster manager has not noticed. */
  isDead = false;
  private nextSeq = 0;
  private clock = 0;
  private pending: Write[] = [];
  private readonly random: ReturnType<typeof createRandom>;

  constructor(random: ReturnType<typeof createRandom>) {
    this.random = random;
  }

  get globalCheckpoint(): number {
    return Math.min(this.primary.localCheckpoint, this.replica.localCheckpoint);
  }

  step(): void {
    const { random } = this;
    if (this.isDead) {
      if (random.integer(0, 2) === 0) this.promote();
      return;
    }
    switch (random.integer(0, 11)) {
      case 0:
      case 1:
      case 2:
        return this.write();
      case 3:
        return this.primary.refresh();
      case 4:
        return this.replica.refresh();
      case 5:
        this.heardCheckpoint = this.knownCheckpoint;
        this.knownCheckpoint = this.globalCheckpoint;
        return;
      case 6:
        this.isDead = random.integer(0, 3) === 0;
        return;
      default:
        return this.execute(random.integer(0, 1) === 0 ? this.primary : this.replica);
    }
  }

  /** Executes what is in flight, on both copies. */
  finish(): void {
    if (this.isDead) this.promote();
    for (const write of this.pending) for (const copy of [this.primary, this.replica]) copy.executed.set(write.seq, write);
    this.pending = [];
    this.knownCheckpoint = this.globalCheckpoint;
  }

  private write(): void {
    const key = `k${this.random.integer(1, KEYS)}`;
    // a shard executes one write of a key at a time
    if (this.pending.some(({ document }) => document?.key === key)) return;
    const fields = { bucket: BUCKET, key, settled: true, source: 'check', indexed_at: '2026-01-02T03:04:05.678Z' } as const;
    this.clock += 1;
    const deleted = this.random.integer(1, 3) === 1;
    this.pending.push({ seq: this.nextSeq, document: { ...fields, clock: this.clock, deleted } });
    this.nextSeq += 1;
  }

  private execute(copy: Copy): void {
    const write = this.pending.length === 0 ? undefined : this.random.pick(this.pending);
    // the replica is told by the primary
    if (write === undefined || (copy === this.replica && !this.primary.executed.has(write.seq))) return;
    copy.executed.set(write.seq, write);
    this.pending = this.pending.filter(({ seq }) => !this.primary.executed.has(seq) || !this.replica.executed.has(seq));
  }

  /** The replica of a dead primary fills the gaps below its highest number, and gives out the numbers above it anew. */
  private promote(): void {
    this.isDead = false;
    this.term += 1;
    this.knownCheckpoint = this.heardCheckpoint;
    this.primary = this.replica;
    for (let seq = 0; seq < this.primary.maxSeqNo; seq += 1) if (!this.primary.executed.has(seq)) this.primary.executed.set(seq, { seq });
    this.nextSeq = this.primary.maxSeqNo + 1;
    this.pending = [];
    this.replica = new Copy();
    this.replica.executed = new Map(this.primary.executed);
  }
}

/** Answers as OpenSearch does; what happens on the shard happens before any request. */
function clientOf(shard: Shard, random: ReturnType<typeof createRandom>): Pick<OpenSearchClient, 'send'> {
  const answers: readonly (readonly [RegExp, (request: OpenSearchRequest) => unknown])[] = [
    [/\/_cluster\/state\/metadata\//, () => ({ metadata: { indices: { index: { primary_terms: { 0: shard.term } } } } })],
    [
      /\/_stats\/docs$/,
      () => {
        const { knownCheckpoint, primary, isDead } = shard;
        if (isDead) return { indices: {} };
        const numbers = { global_checkpoint: knownCheckpoint, max_seq_no: primary.maxSeqNo };
        const copy = { routing: { state: 'STARTED', primary: true }, seq_no: numbers, commit: { user_data: { history_uuid: HISTORY } } };
        return { indices: { 'tally-objects-photos': { shards: { 0: [copy] } } } };
      },
    ],
    [
      /\/_refresh$/,
      () => {
        shard.primary.refresh();
        shard.replica.refresh();
        return { _shards: { successful: 2, failed: 0 } };
      },
    ],
    [
      /\/_search$/,
      ({ body }) => {
        const { size, query } = body as { size: number; query: { bool: { filter: readonly { range?: { _seq_no: Bounds } }[] } } };
        const { gt, lte = Infinity } = query.bool.filter.find(({ range }) => range !== undefined)?.range?._seq_no ?? { gt: -1 };
        const found = shard.primary.searchable.filter(({ seq }) => seq > gt && seq <= lte).toSorted((a, b) => a.seq - b.seq);
        return { hits: { hits: found.slice(0, size).map(({ seq, document }) => ({ _source: document, sort: [seq] })) } };
      },
    ],
  ];
  return {
    async send(request) {
      for (let steps = random.integer(0, 6); steps > 0; steps -= 1) shard.step();
      if (shard.isDead && /_(?:refresh|search)$/.test(request.path)) return { status: 503, body: NO_PRIMARY, headers: {} };
      const answer = answers.find(([path]) => path.test(request.path))?.[1];
      if (answer === undefined) throw new Error(`no answer to ${request.path}`);
      return { status: 200, body: answer(request), headers: {} };
    },
  };
}

/** The primary changed again and again: the follower asks again. */
function isUnavailable(error: unknown): undefined {
  expect(error).toMatchObject({ code: 'bucket.index-unavailable' });
}

interface Bounds {
  readonly gt: number;
  readonly lte?: number;
}

describe('the feed of a shard', () => {
  it('skips nothing, whatever is in flight, is refreshed or dies between any two requests', async () => {
    for (let seed = 1; seed <= (isLong ? 20_000 : 300); seed += 1) {
      const random = createRandom(seed);
      const shard = new Shard(random);
      const client = clientOf(shard, random) as OpenSearchClient;
      const names = indexNames('tally');
      const scan = createObjectScan({ client, names });
      const feed = createChanges({
        client,
        clock: { sleep: async () => undefined },
        names,
        sendSearch: async () => undefined,
        refresh: (bucket) => scan.refresh(bucket),
      });
      const follower = createFollower<Position>();
      const page = async (after: Position | undefined): Promise<FeedPage<Position>> => {
        const asked = { after: after ?? {}, prefix: '', limit: random.integer(1, 4) };
        const found = await feed.changes(BUCKET, asked).catch((error: unknown) => isUnavailable(error));
        if (found === undefined) return { items: [], cursor: after ?? {}, more: true };
        if (found === 'lost') throw new Error(`seed ${seed}: the position is lost`);
        return { items: found.documents, cursor: found.position, more: found.more };
      };
      for (let reads = 0; reads < 25; reads += 1) await follower.read(page, random.integer(1, 4) === 1);
      shard.finish();
      shard.step = () => undefined;
      while (await follower.read(page));
      const live = shard.primary.held().filter(({ document }) => !document.deleted);
      expect(follower.live(), `seed ${seed}`).toEqual(new Map(live.map(({ document: { key, clock } }) => [key, clock])));
    }
  });
});
