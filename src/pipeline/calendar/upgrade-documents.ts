/**
 * Gives the documents of earlier versions the search fields of this one, slowly, since there may be millions. Each is written
 * as it is stored, at its own clock, so that every newer state wins. A bucket that has none is checked again every ten
 * minutes: workers of an earlier version may still write during an upgrade, and one such document keeps searches that need the
 * fields from being answered.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { clockOfMs } from '../../domain/ordering/clock.ts';
import { DOCUMENT_SCHEMA, type ObjectDocument } from '../../domain/documents/document.ts';
import { circuitOf, FaultError, type Fault } from '../../domain/fault.ts';
import type { IndexWriteAnswer, ObjectIndex, ObjectMaintenance } from '../ports/object-index.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
import { VISIT_MAX_MS, type Visit } from './sweep.ts';

const CHECK_INTERVAL_MS = 600_000;
/**
 * A document with a younger clock waits for a later visit. Between the read and the write of this upgrade, another write at
 * the same clock would be lost, since the store accepts both. Only observations are written so: final ones at a clock 20 s
 * (M) before they were made, and none is sent later than 30 s (P) after that. The rest is for requests that hang, and for
 * wrong clocks. A provisional one may have an older clock, but its final one follows at a later clock.
 */
const SETTLED_AGE_MS = 300_000;
/** One transaction of SQLite, which blocks all other work for about 20 ms. */
const BATCH_DOCUMENTS = 500;
/** After each batch, a wait of this many times its duration: the upgrade takes at most half of what one connection can do. */
const REST_TIMES = 1;
/** A batch that takes no time at all, as in tests, still lets others run. */
const REST_MIN_MS = 10;

interface Upgraded {
  readonly upgraded: number;
  /** Those that wait for a later visit. */
  readonly young: number;
  /** The first fault of a document alone. */
  readonly refused: Fault | undefined;
}

interface UpgradeDependencies {
  readonly objects: Pick<ObjectIndex, 'getMany' | 'write'>;
  readonly maintenance: Pick<ObjectMaintenance, 'outdated'>;
  readonly state: StateStore;
  readonly clock: Clock;
}

/** Creates the visit of one bucket, which ends after five minutes at the latest; the next visit continues. */
export function createVisitOutdated({ objects, maintenance, state, clock }: UpgradeDependencies): Visit {
  /** Writes the documents as they are stored now. Resolves with how many it wrote, how many are too young, and the first fault of a document alone. */
  async function upgrade(bucket: string, found: readonly ObjectDocument[], signal: AbortSignal): Promise<Upgraded> {
    if (found.length === 0) return { upgraded: 0, young: 0, refused: undefined };
    const keys = found.map(({ key }) => key);
    // read again in realtime: what a search found may be a second old, and other content may have the same clock
    const stored = (await objects.getMany(bucket, keys, signal)).filter((document) => document !== undefined);
    const settledClock = clockOfMs(clock.nowMs() - SETTLED_AGE_MS);
    const documents = stored.filter((document) => document.clock <= settledClock);
    const answers = await objects.write(
      documents.map((document) => ({ document, equalClock: 'accept' })),
      signal,
    );
    return {
      upgraded: answers.filter(({ kind }) => kind === 'written').length,
      young: stored.length - documents.length,
      refused: refusalOf(answers),
    };
  }

  async function keepChecked({ bucket }: BucketRecord): Promise<void> {
    const forms = { schema: DOCUMENT_SCHEMA, checkedAtMs: clock.nowMs() };
    await updateRecord(state, refs.bucket(bucket), (current) => (current === undefined ? undefined : { ...current, forms }));
  }

  /** Upgrades what it finds, page by page. Resolves with what it did, and whether it came to the end. */
  async function upgradeAll(bucket: string, signal: AbortSignal): Promise<Upgraded & { readonly ended: boolean }> {
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    let sum: Upgraded = { upgraded: 0, young: 0, refused: undefined };
    let after = '';
    while (clock.monotonicMs() < untilMs) {
      const beganMs = clock.monotonicMs();
      const found = await maintenance.outdated(bucket, { after, limit: BATCH_DOCUMENTS }, signal);
      const { upgraded, young, refused } = await upgrade(bucket, found, signal);
      sum = { upgraded: sum.upgraded + upgraded, young: sum.young + young, refused: sum.refused ?? refused };
      // a document that could not be written is found again by the next visit
      if (found.length < BATCH_DOCUMENTS) return { ...sum, ended: true };
      after = found.at(-1)?.key ?? after;
      await clock.sleep(Math.max(REST_MIN_MS, REST_TIMES * (clock.monotonicMs() - beganMs)), signal);
    }
    return { ...sum, ended: false };
  }

  return async function visitOutdated(record, signal) {
    const { bucket, forms } = record;
    if (forms?.schema === DOCUMENT_SCHEMA && Math.abs(clock.nowMs() - forms.checkedAtMs) < CHECK_INTERVAL_MS) return undefined;
    const { upgraded, young, refused, ended } = await upgradeAll(bucket, signal);
    // searches wait for these documents, so it is reported as long as it lasts
    if (upgraded === 0 && refused !== undefined) throw new FaultError(refused.code, `a document of an earlier version: ${refused.reason}`);
    // after writes it is checked once more: what workers of an earlier version wrote behind the visit is found by the next one
    if (ended && upgraded === 0 && young === 0) await keepChecked(record);
    return upgraded;
  };
}

/** The first fault of a document alone. Throws a fault that other documents would meet too. */
function refusalOf(answers: readonly IndexWriteAnswer[]): Fault | undefined {
  const faults = answers.flatMap((answer) => (answer.kind === 'fault' ? { code: answer.code, reason: answer.reason } : []));
  for (const { code, reason } of faults) {
    const circuit = circuitOf(code);
    if (circuit !== 'object' && circuit !== 'never') throw new FaultError(code, reason);
  }
  return faults[0];
}
