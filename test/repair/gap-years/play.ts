/** Plays one random year, and says what was wrong. The same seed gives the same story. */
import { withVirtualDelays } from '../../support/fakes/virtual-delays.ts';
import { createRandom, withChance, type Random } from '../../support/random/seeded.ts';
import { reindexRequest } from '../../support/requests.ts';
import { dueAtMs, type GapReport } from '../../../src/records/dirty.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { appliedWithinMs, noteArrivals, openChangeGap, markDirty } from '../../../src/observing/gaps.ts';
import { readRecord, refs } from '../../../src/store/stored.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { mutants } from './mutants.ts';
import { buckets, createWorld, DAY_MS, HOUR_MS, SKEWS_MS, SLOW_KEYS, type SimBucket, type Trouble, type World } from './world.ts';

const MINUTE_MS = 60_000;
/** The limit of a job is a thousand. */
const FLOOD = 1_150;
const STEP_MS = 15_000;
/** How often the calendars look while no job runs: where a gap is about to be due, and otherwise. Each look is that of one process. */
const DUE_MS = 20 * MINUTE_MS;
const IDLE_MS = 2 * HOUR_MS;
/** The last days are quiet: whatever is open then must close. */
const QUIET_DAYS = 15;

export interface YearResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly counts: Ledger['counts'] & { readonly open: number };
}

/** How often something happens to each bucket, in a day. */
const RATES = {
  report: 0.4,
  burst: 0.03,
  manual: 0.08,
  trouble: 0.03,
  emptied: 0.008,
  flood: 0.01,
  disconnect: 0.008,
  pause: 0.012,
  lost: 0.05,
  late: 0.02,
  change: 0.03,
  broken: 0.02,
  denied: 0.03,
} as const;

interface Story {
  readonly world: World;
  readonly ledger: Ledger;
  readonly random: Random;
  /** S3 refuses keys, and people take consent back: not in the stories of mistakes that need neither, so that those stay short. */
  readonly isWhole: boolean;
  /** What people do later, in order of time. */
  readonly plans: { readonly atMs: number; readonly act: () => Promise<void> }[];
  /** Until when small gaps keep coming, by bucket. */
  readonly burstUntilMs: Map<string, number>;
}

const chance = (random: Random, share: number): boolean => random.integer(0, 999_999) < share * 1_000_000;

/** Plays the year of a seed. `mutant`: a mistake that is in the product. */
export async function playYear(
  seed: number,
  { mutant, days = 365 }: { readonly mutant?: string; readonly days?: number } = {},
): Promise<YearResult> {
  const random = createRandom(seed);
  const held: { world?: World } = {};
  const ledger = createLedger(() => {
    if (held.world === undefined) throw new Error('there is no world yet');
    return held.world;
  });
  const world = await createWorld(random, mutant, {
    gapClosed: (mark, jobId) => ledger.gapClosed(mark, jobId),
    jobDone: (job) => ledger.jobDone(job),
    deleted: (jobId, count) => ledger.deleted(jobId, count),
  });
  held.world = world;
  const isWhole = mutant === undefined || mutants[mutant]?.isWhole === true;
  const story: Story = { world, ledger, random, isWhole, plans: [], burstUntilMs: new Map() };
  // in real time, minutes or hours of the story would pass while a writer waits for another one
  await withVirtualDelays(world.clock, () => withChance(createRandom(seed + 1), () => playDays(story, days)));
  const open = (await world.gaps()).length;
  return { seed, violations: ledger.violations, counts: { ...ledger.counts, open } };
}

async function playDays(story: Story, days: number): Promise<void> {
  const { world, ledger } = story;
  const endMs = world.clock.nowMs() + days * DAY_MS;
  for (const bucket of buckets) await connect(story, bucket);
  let lastMs = world.clock.nowMs();
  while (world.clock.nowMs() < endMs && ledger.violations.length === 0) {
    await step(story);
    const nowMs = world.clock.nowMs();
    const sinceDays = (nowMs - lastMs) / DAY_MS;
    lastMs = nowMs;
    if (nowMs < endMs - QUIET_DAYS * DAY_MS) for (const bucket of buckets) await happens(story, bucket, sinceDays);
    else for (const refused of [world.troubles, world.denied]) refused.clear();
  }
  // a year that ended early for something wrong has not become quiet
  if (ledger.violations.length === 0) await ledger.checkQuiet();
}

/** Lets time pass: seconds while there is work, minutes otherwise. */
async function step({ world, ledger, random, plans }: Story): Promise<void> {
  const nowMs = world.clock.nowMs();
  const nextMs = await world.nextDueAtMs();
  const hasWork = nextMs <= nowMs + STEP_MS;
  if (hasWork && world.workersRunning() === 0) world.startWorkers();
  if (!hasWork && world.workersRunning() > 0) await world.stopWorkers();
  const planMs = Math.min(Infinity, ...plans.map(({ atMs }) => atMs));
  const isDueSoon = !hasWork && (await world.gaps()).some((mark) => dueAtMs(mark, nowMs) < nowMs + IDLE_MS);
  const untilMs = Math.min(nowMs + (isDueSoon ? DUE_MS : IDLE_MS), nextMs, planMs);
  await world.clock.advance(hasWork ? STEP_MS : Math.max(STEP_MS, untilMs - nowMs));
  if (world.workersRunning() > 0 && chance(random, 0.05)) world.killWorker();
  // jobs leave little behind: it is tidied now and then
  await world.calendar(chance(random, hasWork ? 0.3 : 0.1));
  for (const plan of plans.filter(({ atMs }) => atMs <= world.clock.nowMs())) {
    plans.splice(plans.indexOf(plan), 1);
    await plan.act();
  }
  await ledger.check();
}

function later({ world, plans }: Story, delayMs: number, act: () => Promise<void>): void {
  plans.push({ atMs: world.clock.nowMs() + delayMs, act });
}

/** What people ask for may be refused. */
async function asked<Answer>(story: Story, work: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await story.world.during(work);
  } catch (error) {
    if (error instanceof RequestError) return undefined;
    throw error;
  }
}

async function connect(story: Story, { name, source }: SimBucket): Promise<void> {
  const { world, ledger, random } = story;
  for (const key of ['logs/1', 'a/1', 'b']) await world.put(name, key, false);
  ledger.reset(name);
  const isHeld = chance(random, 0.2);
  const topic = source === 'topic' ? { topic_arn: 'arn:aws:sns:us-east-1:123456789012:t' } : {};
  await world.during(world.connecting.connect({ bucket: name, source, ...topic, ...(isHeld && { reindex: false }) }, 'person'));
  const first = (await world.gaps()).find((mark) => mark.bucket === name);
  if (first !== undefined)
    await ledger.reported({ bucket: name, kind: 'new', reason: 'never compared', seenAtMs: first.lastSeenMs }, first.order, ['b']);
  if (chance(random, 0.5)) await prove(story, name);
  else later(story, random.integer(1, 100) * HOUR_MS, () => prove(story, name));
  if (isHeld) later(story, random.integer(1, 20) * DAY_MS, () => manual(story, name, false));
}

/** The events of the bucket are known to arrive from now on. */
async function prove({ world, ledger }: Story, bucket: string): Promise<void> {
  const record = await readRecord(world.state, refs.bucket(bucket));
  if (record === undefined || record.provenAtMs !== undefined) return;
  const begun = await ledger.begun(bucket);
  const isBroken = (await world.gaps()).some((mark) => mark.bucket === bucket && mark.unproven === 'wiring');
  await world.during(noteArrivals(world, record, ['created', 'removed']));
  // an event proves nothing then
  if (isBroken) return;
  const seenAtMs = world.clock.nowMs() - 6_000;
  await ledger.reported({ bucket, kind: 'connection', reason: 'proven', seenAtMs }, begun, []);
}

async function happens(story: Story, bucket: SimBucket, days: number): Promise<void> {
  const { world, random, burstUntilMs } = story;
  const { name } = bucket;
  if (!(await world.isConnected(name))) return;
  const nowMs = world.clock.nowMs();
  if (chance(random, RATES.burst * days)) burstUntilMs.set(name, nowMs + random.integer(5, 14) * DAY_MS);
  const isBurst = (burstUntilMs.get(name) ?? 0) > nowMs;
  if (isBurst && chance(random, 4 * days)) await report(story, name, true);
  if (chance(random, RATES.report * days)) await report(story, name);
  // without a trace: only a compare of the whole bucket finds it
  if (chance(random, RATES.lost * days)) await world.put(name, `d/${random.integer(0, 9)}`, false);
  if (chance(random, RATES.manual * days)) await manual(story, name, chance(random, 0.3));
  if (chance(random, RATES.trouble * days)) trouble(story, name);
  if (story.isWhole && chance(random, RATES.denied * days)) await deny(story, name);
  if (chance(random, RATES.emptied * days)) await empty(story, name);
  if (chance(random, RATES.flood * days)) await flood(story, name);
  if (chance(random, RATES.change * days)) await change(story, bucket);
  if (chance(random, RATES.broken * days)) await breakWiring(story, bucket);
  if (chance(random, RATES.disconnect * days)) await disconnect(story, bucket);
  await disturb(story, name);
}

/** Something is reported, with the changes that it stands for. In a burst it is always the same. */
async function report(story: Story, bucket: string, isBurst = false): Promise<void> {
  const { world, ledger, random } = story;
  const process = random.integer(0, SKEWS_MS.length - 1);
  const trueMs = world.clock.nowMs();
  // times of loss are those of the machine; those of bulk deletes and of what is handed over are of AWS
  const lossMs = trueMs + SKEWS_MS[process]!;
  const whole = { bucket, reason: 'simulated' };
  const key = `a/${random.integer(0, 9)}`;
  const kinds: readonly (readonly [GapReport, readonly string[]])[] = [
    [{ ...whole, kind: 'bulk-delete', seenAtMs: trueMs - random.integer(0, 600) * 1_000 }, ['b']],
    [{ ...whole, kind: 'lifecycle', seenAtMs: lossMs }, ['logs/1']],
    [{ ...whole, kind: 'loss', seenAtMs: lossMs }, ['b', 'c']],
    [{ ...whole, kind: 'handed-over', key, seenAtMs: trueMs + 10_000 }, [key]],
    [{ ...whole, kind: 'handed-over-deletes', key, seenAtMs: trueMs + 10_000 }, [key]],
    [{ ...whole, kind: 'handed-over', tags: true, seenAtMs: trueMs + 10_000 }, []],
  ];
  const [reported, keys] = isBurst ? kinds[1]! : random.pick(kinds);
  const isChanged = reported.kind !== 'bulk-delete' && reported.kind !== 'handed-over-deletes' && chance(random, 0.5);
  for (const each of keys) {
    if (isChanged) await world.put(bucket, each, false);
    else world.s3s.get(bucket)?.objects.delete(each);
  }
  // the bucket is emptied only where people are to decide
  await world.put(bucket, 'kept', true);
  const begun = await ledger.begun(bucket);
  await world.report(reported, process);
  await ledger.reported(reported, begun, keys);
}

/** A person changes the connection. AWS applies that for minutes, in which events are missing. */
async function change({ world, ledger, plans, ...story }: Story, { name, source }: SimBucket): Promise<void> {
  const begun = await ledger.begun(name);
  const appliedMs = appliedWithinMs({ source });
  const seenAtMs = world.clock.nowMs() + appliedMs;
  await world.during(openChangeGap(world, { bucket: name, source }, { isUrgent: true }));
  await ledger.reported({ bucket: name, kind: 'connection', reason: 'changed', seenAtMs }, begun, ['logs/2']);
  later({ world, ledger, plans, ...story }, appliedMs - MINUTE_MS, () => world.put(name, 'logs/2', false));
}

/** A part of the connection is missing for hours, as the watch finds. */
async function breakWiring(story: Story, { name, source }: SimBucket): Promise<void> {
  const { world, ledger, random } = story;
  const seenAtMs = world.clock.nowMs();
  const begun = await ledger.begun(name);
  const lost = { bucket: name, kind: 'connection', reason: 'broken', seenAtMs, unproven: 'wiring' } as const;
  ledger.broken(name, true);
  await world.during(markDirty(world, lost));
  await ledger.reported(lost, begun, []);
  const createdAtMs = (await readRecord(world.state, refs.bucket(name)))?.createdAtMs;
  later(story, random.integer(1, 100) * HOUR_MS, async () => {
    const record = await readRecord(world.state, refs.bucket(name));
    // it was disconnected meanwhile, which ends this too
    if (record?.createdAtMs !== createdAtMs || record === undefined) return;
    const again = await ledger.begun(name);
    const restored = {
      bucket: name,
      kind: 'connection',
      reason: 'restored',
      seenAtMs: world.clock.nowMs() + appliedWithinMs({ source }),
    } as const;
    ledger.broken(name, false);
    await world.during(openChangeGap(world, { bucket: name, source }, { unproven: record.provenAtMs === undefined ? 'events' : 'none' }));
    await ledger.reported(restored, again, []);
  });
}

async function manual(story: Story, bucket: string, isNow: boolean): Promise<void> {
  const started = await asked(story, story.world.jobs.request(reindexRequest({ bucket, now: isNow }), 'person'));
  // the person tries again until the bucket is free
  if (started === undefined && !isNow && (await story.world.isConnected(bucket))) later(story, HOUR_MS, () => manual(story, bucket, isNow));
}

function trouble(story: Story, bucket: string): void {
  const { world, ledger, random } = story;
  if (world.troubles.has(bucket)) return;
  const kinds: readonly Trouble[] = ['object.denied', 's3.unavailable', 'bucket.missing', 'listing.disorder'];
  world.troubles.set(bucket, random.pick(kinds));
  later(story, random.integer(1, 100) * HOUR_MS, async () => {
    world.troubles.delete(bucket);
    ledger.disturbed(bucket);
  });
}

/** S3 refuses the HEADs of one key, or of more than a job leaves to gaps of their own, which were deleted without an event. */
async function deny(story: Story, bucket: string): Promise<void> {
  const { world, ledger, random } = story;
  if (world.denied.has(bucket)) return;
  world.denied.set(bucket, random.pick(['e/1', 'e/']));
  for (let number = 0; number < 12; number += 1) {
    await world.put(bucket, `e/${number}`, true);
    world.s3s.get(bucket)?.objects.delete(`e/${number}`);
  }
  const begun = await ledger.begun(bucket);
  const lost = { bucket, kind: 'loss', reason: 'refused', seenAtMs: world.clock.nowMs() } as const;
  await world.report(lost, 0);
  await ledger.reported(lost, begun, []);
  later(story, random.integer(1, 100) * HOUR_MS, async () => {
    world.denied.delete(bucket);
    ledger.disturbed(bucket);
  });
}

/** All objects are gone, which even the job of a bulk delete leaves to a person. */
async function empty(story: Story, bucket: string): Promise<void> {
  const { world, ledger } = story;
  world.s3s.get(bucket)?.objects.clear();
  const seenAtMs = world.clock.nowMs();
  const emptied = { bucket, kind: 'bulk-delete', reason: 'emptied', seenAtMs } as const;
  const begun = await ledger.begun(bucket);
  await world.report(emptied, 0);
  await ledger.reported(emptied, begun, []);
  decideLater(story, bucket);
}

/** Objects are lost without an event, more than one job may delete the documents of. */
async function flood(story: Story, bucket: string): Promise<void> {
  const { world, ledger } = story;
  const begun = await ledger.begun(bucket);
  for (let number = 0; number < FLOOD; number += 1) {
    await world.put(bucket, `${SLOW_KEYS}${number}`, true);
    world.s3s.get(bucket)?.objects.delete(`${SLOW_KEYS}${number}`);
  }
  const lost = { bucket, kind: 'loss', reason: 'flood', seenAtMs: world.clock.nowMs() } as const;
  await world.report(lost, 0);
  await ledger.reported(lost, begun, []);
  decideLater(story, bucket);
}

/** People look at what waits for them after some days, and each day from then on. */
function decideLater(story: Story, bucket: string): void {
  const { world, ledger, random } = story;
  const untilMs = world.clock.nowMs() + 60 * DAY_MS;
  const decide = async (): Promise<void> => {
    if (!(await world.isConnected(bucket))) return;
    const isStopped = (await world.gaps()).some((mark) => mark.bucket === bucket && mark.held?.jobId !== undefined);
    const waiting = await world.waiting(bucket);
    if (isStopped || waiting.length > 0) ledger.disturbed(bucket);
    if (isStopped) await manual(story, bucket, false);
    for (const { jobId, count } of waiting) {
      if (count === undefined) continue;
      if (jobId === undefined) await manual(story, bucket, false);
      else if (chance(random, 0.3)) await asked(story, world.jobs.decline(jobId));
      else await allow(story, jobId, count);
    }
    if (world.clock.nowMs() < untilMs) later(story, DAY_MS, decide);
  };
  later(story, random.integer(1, 5) * DAY_MS, decide);
}

/** Now and then the person thinks better of it, before the job compares. */
async function allow(story: Story, jobId: string, count: number): Promise<void> {
  const { world, ledger, random } = story;
  const allowed = await asked(story, world.jobs.allow(jobId, 'person'));
  if (allowed === undefined) return;
  ledger.allowed(allowed.id, count);
  if (!story.isWhole || !chance(random, 0.3)) return;
  later(story, random.integer(0, 2) * STEP_MS, async () => {
    const job = await readRecord(world.state, refs.job(allowed.id));
    if (job === undefined || job.comparingAtMs !== undefined) return;
    if ((await asked(story, world.jobs.decline(jobId))) !== undefined) ledger.declined(allowed.id);
  });
}

async function disconnect(story: Story, bucket: SimBucket): Promise<void> {
  const { world, ledger, random } = story;
  await asked(story, world.disconnect(bucket.name));
  ledger.reset(bucket.name);
  const pauseMs = random.pick([MINUTE_MS, HOUR_MS, 2 * DAY_MS]);
  later(story, pauseMs, async () => {
    world.troubles.delete(bucket.name);
    await connect(story, bucket);
  });
}

/** People pause and cancel jobs while they run, and forget the paused ones for a while, or for good. */
async function disturb(story: Story, bucket: string): Promise<void> {
  const { world, ledger, random } = story;
  const job = await world.runningJob(bucket);
  // what happened before the job began is reported after that
  if (job !== undefined && chance(random, RATES.late)) await report(story, bucket);
  // what deletes without a limit is what people stop, and what has deleted much
  const { limit = Infinity, reserved = 0 } = job?.deletions ?? { limit: 0 };
  const isAlarming = limit === Infinity || reserved > 0;
  if (job === undefined || !chance(random, isAlarming ? 0.15 : RATES.pause)) return;
  ledger.disturbed(bucket);
  decideLater(story, bucket);
  const isCancelled = chance(random, 0.3);
  const stopped = await asked(story, isCancelled ? world.jobs.cancel(job.id) : world.jobs.pause(job.id));
  if (stopped !== undefined) ledger.stopped(job);
  if (isCancelled) return;
  if (chance(random, 0.6))
    later(story, random.integer(1, 40 * 24) * HOUR_MS, async () => void (await asked(story, world.jobs.resume(job.id))));
}
