/** One row of the matrix of several workers: a fault beside what it does not concern, on the virtual clock. */
import { createRandom } from '../random/seeded.ts';
import { nativeRecord, syntheticRecord } from './ingest.ts';
import { BROKEN_KEY, CHANGED_PREFIX, FAR, FAULTY, NEAR, tags, type MatrixFault, type Tag } from './port-faults.ts';
import { createWorkersWorld, type WorkerBucket, type WorkersWorld } from './workers.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const BEFORE_MS = MINUTE_MS;
/** After it what a fault concerned is served again. */
export const RECOVERY_MS = 5 * MINUTE_MS;
const AFTER_MS = MINUTE_MS;
/** Longer than every gap takes to close once all works. */
const REPAIR_MAX_MS = 60 * MINUTE_MS;
const CHANGED_KEYS = 40;

/** Who sees the fault, and what happens meanwhile. */
export interface MatrixForm {
  readonly name: string;
  readonly workers: number;
  readonly faultMs: number;
  /** Which workers see the fault, and when it begins and ends for each later than for the one before it. */
  readonly seenBy: 'all' | 'the first alone';
  readonly laterMs: number;
  /** From one event of each kind to the next; some kinds come less often. */
  readonly everyMs: number;
  /** How often all workers are restarted: killed and stopped in turn. */
  readonly restartsEveryMs?: number;
}

export interface MatrixResult {
  /** Seconds from sending to the index, of what was sent before the recovery, and of what was sent after it. */
  readonly lags: Readonly<Record<Tag, Lags>>;
  readonly recovered: Readonly<Record<Tag, Lags>>;
  readonly receivesMax: Readonly<Record<Tag, number>>;
  readonly letters: Readonly<Record<Tag, number>>;
  /** From the end of the fault until the last message from before was done, in seconds. What fails alone is deferred for longer, and not counted. */
  readonly healS: number;
  readonly wrongKeys: readonly string[];
  /** What is not over an hour later. */
  readonly unfinished: string;
}

export interface Lags {
  readonly sent: number;
  readonly indexed: number;
  readonly p99S: number;
}

/** What was sent of one kind. */
interface Log {
  readonly lagsMs: number[];
  sent: number;
}

function lagsOf({ sent, lagsMs }: Log): Lags {
  const sorted = [...lagsMs].sort((a, b) => a - b);
  return { sent, indexed: sorted.length, p99S: (sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0) / SECOND_MS };
}

const byTag = <Value>(make: (tag: Tag) => Value): Record<Tag, Value> =>
  Object.fromEntries(tags.map((tag) => [tag, make(tag)])) as Record<Tag, Value>;

/** Plays the row. */
export async function runMatrixRow(fault: MatrixFault, form: MatrixForm): Promise<MatrixResult> {
  const logs = byTag((): Log => ({ lagsMs: [], sent: 0 }));
  const recoveredLogs = byTag((): Log => ({ lagsMs: [], sent: 0 }));
  const receivesMax = byTag(() => 0);
  const letters = byTag(() => 0);
  const awaited = new Map<string, { readonly log: Log; readonly sentAtMs: number }>();
  let endedAtMs = Infinity;
  let healMs = 0;
  const others = fault.others ?? [];
  const world = await createWorkersWorld({
    workers: form.workers,
    pollers: 2,
    buckets: [FAULTY, NEAR, FAR, ...others],
    indexed(bucket, key) {
      const id = `${bucket}/${key}`;
      const known = awaited.get(id);
      if (known === undefined) return;
      known.log.lagsMs.push(world.clock.nowMs() - known.sentAtMs);
      awaited.delete(id);
    },
    deleted({ tag: text, receiveCount, sentAtMs }, isLetter) {
      const tag = text as Tag;
      receivesMax[tag] = Math.max(receivesMax[tag], receiveCount);
      if (isLetter) letters[tag] += 1;
      if (sentAtMs < endedAtMs && tag !== fault.alone) healMs = Math.max(healMs, world.clock.nowMs() - endedAtMs);
    },
  });
  const traffic = createTraffic(world, others, (tag, bucket, key) => {
    const log = world.clock.nowMs() >= endedAtMs + RECOVERY_MS ? recoveredLogs[tag] : logs[tag];
    log.sent += 1;
    awaited.set(`${bucket}/${key}`, { log, sentAtMs: world.clock.nowMs() });
  });
  const seconds = async (forMs: number, each: (second: number) => Promise<void> = async () => undefined): Promise<void> => {
    for (let second = 0; second < forMs / SECOND_MS; second += 1) {
      if ((second * SECOND_MS) % form.everyMs === 0) traffic.send();
      await world.run(SECOND_MS / 2);
      await each(second);
      await world.run(SECOND_MS / 2);
    }
  };

  await seconds(BEFORE_MS);
  await playFault(world, { fault, form, begun: traffic.begin }, seconds);
  endedAtMs = world.clock.nowMs();
  await seconds(RECOVERY_MS + AFTER_MS);
  const unfinished = await repaired(world);
  for (const { tag: text, receiveCount } of world.moved()) {
    const tag = text as Tag;
    receivesMax[tag] = Math.max(receivesMax[tag], receiveCount);
    letters[tag] += 1;
  }
  const wrongKeys = (await Promise.all([FAULTY, NEAR, FAR, ...others].map(({ bucket }) => world.wrongKeys(bucket)))).flat();
  world.end();
  return {
    lags: byTag((tag) => lagsOf(logs[tag])),
    recovered: byTag((tag) => lagsOf(recoveredLogs[tag])),
    receivesMax,
    letters,
    healS: Math.round(healMs / SECOND_MS),
    wrongKeys,
    unfinished,
  };
}

/** The fault begins and ends for each worker, and for the process that repairs where all see it. */
async function playFault(
  world: WorkersWorld,
  { fault, form, begun }: { readonly fault: MatrixFault; readonly form: MatrixForm; readonly begun: () => void },
  seconds: (forMs: number, each: (second: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const seeing = form.seenBy === 'all' ? [...world.networks, world.repairNetwork] : world.networks.slice(0, 1);
  const restartsEveryS = form.restartsEveryMs === undefined ? Infinity : form.restartsEveryMs / SECOND_MS;
  const lastLaterS = ((seeing.length - 1) * form.laterMs) / SECOND_MS;
  let restarts = 0;
  await seconds(form.faultMs + lastLaterS * SECOND_MS, async (second) => {
    seeing.forEach((network, index) => {
      const sinceS = second - (index * form.laterMs) / SECOND_MS;
      if (sinceS === 0) network.fault = fault.begin();
      if (sinceS === form.faultMs / SECOND_MS) network.fault = undefined;
    });
    if (second === 0) begun();
    if (second === 0 || second % restartsEveryS !== 0) return;
    restarts += 1;
    await world.restart(restarts % 2 === 1 ? 'kill' : 'stop');
  });
  for (const network of seeing) network.fault = undefined;
}

/** Runs until the queue is empty and every gap is closed. Returns what is not, after an hour. */
async function repaired(world: WorkersWorld): Promise<string> {
  for (let doneMs = 0; doneMs < REPAIR_MAX_MS; doneMs += 15 * SECOND_MS) {
    const open = await world.gaps();
    if (open.length === 0 && world.messages().length === 0) return '';
    await world.run(15 * SECOND_MS);
  }
  const open = await world.gaps();
  return JSON.stringify({ open, messages: world.messages().slice(0, 5) });
}

type Others = NonNullable<MatrixFault['others']>;
/** So many of the other buckets are sent an event at a time, all of them in turn. */
const OTHERS_AT_ONCE = 10;

/** One event of each kind, or fewer. `sent` is called for each that makes a new document. */
function createTraffic(world: WorkersWorld, others: Others, sent: (tag: Tag, bucket: string, key: string) => void) {
  const random = createRandom(1);
  const { clock, storage } = world;
  let count = 0;
  let isBegun = false;

  function exact(tag: Tag, bucket: string): void {
    const key = `exact-${count}`;
    const object = storage.put(bucket, key);
    sent(tag, bucket, key);
    world.send(tag, nativeRecord(key, { bucket, object, eventTimeMs: clock.nowMs() }));
  }

  function inexact(tag: Tag, bucket: string, key = `inexact-${count}`): void {
    storage.put(bucket, key);
    if (key !== BROKEN_KEY) sent(tag, bucket, key);
    world.send(tag, syntheticRecord(key, { bucket, eventTimeMs: clock.nowMs() }));
  }

  /** Few keys are written again and again, and a fifth of the changes are deletes. */
  function change(): void {
    const { bucket } = FAULTY;
    const key = `${CHANGED_PREFIX}${random.integer(1, CHANGED_KEYS)}`;
    const isDelete = random.integer(1, 5) === 1;
    if (isDelete) storage.delete(bucket, key);
    else storage.put(bucket, key);
    const eventName = isDelete ? 'DeleteObject' : 'PutObject';
    world.send('changes', syntheticRecord(key, { bucket, eventName, eventTimeMs: clock.nowMs() }));
  }

  function sendOthers(): void {
    const nextOf = (at: number): WorkerBucket | undefined => others[(count * OTHERS_AT_ONCE + at) % others.length];
    const chosen = new Set(Array.from({ length: OTHERS_AT_ONCE }, (_, at) => nextOf(at)));
    for (const each of chosen) if (each !== undefined) inexact('others', each.bucket);
  }

  return {
    begin: () => void (isBegun = true),
    send(): void {
      count += 1;
      // the others are what the fault is about
      if (isBegun) sendOthers();
      exact('exact near', NEAR.bucket);
      exact('exact same', FAULTY.bucket);
      if (count % 2 === 0) change();
      if (count % 4 === 0) inexact('inexact near', NEAR.bucket);
      if (count % 4 === 1) inexact('inexact far', FAR.bucket);
      if (count % 4 === 2) inexact('inexact same', FAULTY.bucket);
      if (count % 8 === 3) inexact('broken', FAULTY.bucket, BROKEN_KEY);
    },
  };
}
