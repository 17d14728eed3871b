import { assert, integer, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hintOf } from '../../../src/domain/ordering/hint.ts';
import { planObservedWrite } from '../../../src/domain/ordering/observation.ts';
import { clockOfMs, sequencerClock } from '../../../src/domain/ordering/clock.ts';
import { MARGIN_MS } from '../../../src/domain/ordering/constants.ts';
import { drawHistory } from './history.ts';
import type { Rules } from './simulation.ts';
import { play, productRules } from './simulation.ts';

/** Histories played for each promise; `TALLY_TEST_HISTORIES=1000000` searches longer. */
const HISTORIES = Number(process.env['TALLY_TEST_HISTORIES'] ?? 100_000);

describe('whatever is late, repeated, reordered or lost', () => {
  test.each([{ lossy: false }, { lossy: true }])(
    'every history ends with the index equal to the bucket ($lossy lost events)',
    ({ lossy }) => {
      assert(
        property(integer(), (seed) => {
          const result = play(drawHistory(seed, { lossy }), seed);
          expect(result).toEqual({ index: result.bucket, bucket: result.bucket, settled: true });
        }),
        { numRuns: HISTORIES / 2 },
      );
    },
    // a history takes some 30 µs
    30_000 + HISTORIES,
  );
});

describe('each rule is needed: without it some history ends wrong', () => {
  const mutants: Readonly<Record<string, Partial<Rules>>> = {
    'S, the settle time (rule 4)': { plan: settlesAtOnce },
    'the floor (rule 8)': { floor: false },
    'the life P of answers (rule 9)': { answerLifeMs: 240_000 },
    'a refused provisional write stays provisional (rule 2)': { refusedProvisionalStays: false },
    'a multipart completion is not exact (rule 3)': { hintOf: trusting('multipart-completed') },
    'a delete of a versioned bucket is not exact (rule 3)': { hintOf: trusting('deleted') },
    'an implausible sequencer is not believed (rule 3)': { hintOf: believesEverySequencer },
    'a tie is not an order (rule 12)': { ties: false },
    'inexact sources are looked up, not believed (rule 7)': { hintOf: trustsTrails },
  };

  test.each(Object.entries(mutants))('%s', (_name, mutant) => {
    const wrong = firstWrong({ ...productRules, ...mutant });
    expect(wrong, 'no wrong history was found without the rule').toBeDefined();
    // the very history is right with the rule in force
    expect(isWrong(wrong!, productRules)).toBe(false);
  });
});

function firstWrong(rules: Rules): number | undefined {
  for (let seed = 1; seed <= 400_000; seed += 1) if (isWrong(seed, rules)) return seed;
  return undefined;
}

function isWrong(seed: number, rules: Rules): boolean {
  const result = play(drawHistory(seed, { lossy: seed % 2 === 0 }), seed, rules);
  return result.index !== result.bucket;
}

/** Every observation is taken as settled. */
function settlesAtOnce(...[hints, observedAtMs]: Parameters<Rules['plan']>): ReturnType<Rules['plan']> {
  const plan = planObservedWrite(hints, observedAtMs);
  if (plan.settled) return plan;
  return { ...plan, clock: clockOfMs(observedAtMs - MARGIN_MS), settled: true, verdicts: plan.verdicts.map(() => ({ final: true })) };
}

/** Takes one kind of native event for exact whenever its sequencer is plausible. */
function trusting(kind: string): Rules['hintOf'] {
  return (record, bucket, times) => {
    if (record.change.kind !== kind || record.sequencer === undefined) return hintOf(record, bucket, times);
    const created = { ...record, change: { kind: 'created', copied: false } as const, etag: record.etag ?? '', sizeBytes: 1 };
    const hint = hintOf(created, bucket, times);
    if (hint.kind !== 'exact') return hint;
    return kind === 'deleted' ? { ...hint, state: { present: false } } : hint;
  };
}

function believesEverySequencer(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const clock = record.sequencer === undefined ? undefined : sequencerClock(record.sequencer);
  const hint = hintOf(record, bucket, times);
  if (clock === undefined || hint.kind !== 'observe' || record.change.kind !== 'created' || record.etag === undefined) return hint;
  return { kind: 'exact', clock, state: { present: true, etag: record.etag, sizeBytes: 1 } };
}

/** Takes an audit trail's delete for a delete: a denied call looks the same. */
function trustsTrails(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const hint = hintOf(record, bucket, times);
  if (hint.kind !== 'observe' || record.sequencer !== undefined || record.change.kind !== 'deleted') return hint;
  return { kind: 'exact', clock: hint.clock, state: { present: false } };
}
