import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { isLong } from '../support/breadth.ts';
import type { Flow } from '../support/worlds/flow.ts';
import { openFlow } from '../support/worlds/flow.ts';
import { createRandom } from '../support/random/seeded.ts';
import type { Random } from '../support/random/seeded.ts';
import { opensearchUrl } from '../support/servers/found.ts';

const CHANGES = isLong ? 1_500 : 300;
const KEYS = 60;

const DAY_MS = 86_400_000;
/** A machine whose clock is eight days ahead: longer than a tombstone lives. */
const AHEAD = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`globalThis.Date = class extends Date {
    constructor(...given) { super(...(given.length === 0 ? [Date.now()] : given)); }
    static now() { return super.now() + ${8 * DAY_MS}; }
  }`)}`,
};

/** Random changes of few keys, told late, out of order and sometimes twice. */
async function changeAtRandom({ world }: Flow, random: Random): Promise<void> {
  let untold: string[] = [];
  for (let change = 0; change < CHANGES; change += 1) {
    const key = `key/${random.integer(1, KEYS)}`;
    const body = random.integer(1, 4) === 1 ? world.remove(key) : world.put(key);
    untold.push(body);
    if (random.integer(1, 10) === 1) untold.push(body);
    if (untold.length < 40) continue;
    const told = untold.filter(() => random.integer(1, 2) === 1);
    untold = untold.filter((each) => !told.includes(each));
    world.send(...told.toSorted(() => random.integer(-1, 1)));
    await delay(random.integer(1, 60));
  }
  world.send(...untold);
}

describe.skipIf(opensearchUrl() === undefined)('several workers on one queue and one index', () => {
  test('three agree with the bucket in the end, with one killed, one stopped and the clock of one days ahead', async () => {
    await using flow = await openFlow('opensearch', { maxReceiveCount: 20 });
    const { world } = flow;
    const [killed, stopped, left] = await Promise.all([flow.start(), flow.start(), flow.start(AHEAD)]);
    const changing = changeAtRandom(flow, createRandom(22));
    world.send(world.put('upload', 'ObjectCreated:CompleteMultipartUpload'));
    await delay(500);
    await killed.kill();
    await delay(500);
    expect(await stopped.stop()).toEqual({ code: 0, signal: null });
    await changing;
    await flow.converged(left);
    expect(await left.metric('tally_messages_total', { settlement: 'delete' })).toBeGreaterThan(0);
    expect(world.deadLetters()).toEqual([]);
    expect(await left.readyz()).toMatchObject({ body: { checks: { clock: { status: 'warning', code: 'connect.clock-skew' } } } });
    const { body } = await left.request('POST', `/v1/buckets/${world.bucket}/reindex`, { mode: 'report' });
    const { created_at: createdAt } = body as { readonly created_at: string };
    expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(DAY_MS);
  }, 600_000);
});
