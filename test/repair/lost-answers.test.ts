/** What a store that fails for a moment must not stop for long. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { fill, slowPages } from '../support/worlds/jobs-fill.ts';
import { createJobsWorld, type JobsWorld, type Tap } from '../support/worlds/jobs.ts';

const lostAnswer = new FaultError('index.unreachable', 'no answer within 30000 ms');

/** How long a job of some five turns takes, in the world's own time. */
async function jobTook(tapOf: (world: JobsWorld) => Tap): Promise<number> {
  const world = await createJobsWorld({ limits: { partDocumentsMin: 100_000, cutKeysMin: 1_000 } });
  await fill(world, { both: 3_000 });
  // 150 pages of a second: 30 s a turn
  slowPages(world, 1_000, 20);
  world.startWorker({ listings: 1, tap: tapOf(world) });
  const { id } = await world.request({ now: true, mode: 'report' });
  const startedMs = world.clock.nowMs();
  expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 3_000, equal: 3_000 } });
  return world.clock.nowMs() - startedMs;
}

/** Fails the `nth` call of those that match, before or after it was carried out. */
function failing(nth: number, at: 'before' | 'after', matches: (call: string) => boolean, error: FaultError): Tap {
  let left = nth;
  return (call, moment) => {
    if (moment !== at || !matches(call)) return;
    left -= 1;
    if (left === 0) throw error;
  };
}

const isJobPut = (call: string): boolean => call.startsWith('put job:');

describe('a job goes on soon', () => {
  const undisturbed = jobTook(() => () => undefined);

  it.each([1, 2, 3, 5])('Fix: when the answer to write %d of its record is lost', async (nth) => {
    // a lease of which its worker does not know is watched for a minute, once it is due after 20 s; workers look every 10 s at least
    const takenOverMs = 20_000 + 10_000 + 60_000 + 10_000;
    expect(await jobTook(() => failing(nth, 'after', isJobPut, lostAnswer))).toBeLessThan((await undisturbed) + takenOverMs);
  });

  it('Fix: when a lease could not be renewed and nobody else took it', async () => {
    const outageMs = 62_000;
    let sinceMs = Infinity;
    const tookMs = await jobTook((world) => {
      const isOut = (): boolean => world.clock.nowMs() >= sinceMs && world.clock.nowMs() < sinceMs + outageMs;
      world.s3.onPage = async (_page, { after }) => {
        const hangs = after !== '' && sinceMs === Infinity;
        if (hangs) sinceMs = world.clock.nowMs();
        await world.clock.sleep(hangs ? outageMs : 1_000);
      };
      return (call, moment) => {
        if (moment === 'before' && call.startsWith('put ') && isOut()) throw lostAnswer;
      };
    });
    expect(tookMs).toBeLessThan((await undisturbed) + outageMs + 90_000);
  });
});
