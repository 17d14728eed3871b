import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clockOfMs, documentOf, type ObjectDocument, type ObjectState, type PresentState } from '../../src/ordering/document.ts';
import { explanationOf, type ExplanationFacts } from '../../src/search/explanation.rules.ts';
import { compareSides } from '../../src/ordering/agreement.ts';
import { clockOfListing, decideListed, decideSeen } from '../../src/repair/decide.rules.ts';
import { headOf } from '../support/fakes/details.ts';
import { listedOf } from '../support/worlds/reindex.ts';

const NOW_MS = Date.UTC(2026, 5, 1, 12);
const HOUR_MS = 3_600_000;
const bucket: ExplanationFacts['bucket'] = {
  bucket: 'b',
  source: 'notification',
  floor: 0,
  createdAtMs: NOW_MS - 240 * HOUR_MS,
};

function present(change: { etag?: string; lastModifiedMs?: number; versionId?: string } = {}): ObjectState {
  return { present: true, etag: 'one', sizeBytes: 1, lastModifiedMs: NOW_MS - HOUR_MS, ...change };
}

function held(state: ObjectState, change: Partial<ObjectDocument> = {}): ObjectDocument {
  const at = { clock: clockOfMs(NOW_MS - HOUR_MS), settled: true, stateAtMs: NOW_MS - HOUR_MS, nowMs: NOW_MS };
  return { ...documentOf({ bucket: 'b', key: 'k', state, source: 'native', cause: {}, ...at }), ...change };
}

function explain(document: ObjectDocument | undefined, state: ObjectState, change: Partial<ExplanationFacts['bucket']> = {}) {
  return explanationOf({ bucket: { ...bucket, ...change }, status: WELL, document, storage: { state, observedAtMs: NOW_MS } });
}

const ABSENT: ObjectState = { present: false };
const WELL = { state: 'ok', sentence: 'No known difference' } as const;

describe('an explanation', () => {
  it.each<[string, ObjectDocument | undefined, ObjectState, RegExp]>([
    ['a live document equal to S3', held(present()), present(), /^A search finds it: .* as of 2026-06-01T11:00:00.000Z\.$/],
    ['a provisional one that is equal', held(present(), { settled: false }), present(), /provisionally/],
    [
      'an event’s time beside S3’s LastModified',
      held(present(), { last_modified_exact: false }),
      present({ lastModifiedMs: NOW_MS - HOUR_MS + 17_000 }),
      /finds it/,
    ],
    ['an etag in quotes', held(present({ etag: '"one"' })), present(), /finds it/],
    ['a version id that only one side states', held(present()), present({ versionId: 'v1' }), /finds it/],
    ['a tombstone of what S3 does not have', held(ABSENT), ABSENT, /correct: .* tombstone as of 2026-06-01T11/],
    ['neither side', undefined, ABSENT, /correct: .* holds nothing/],
  ])('agrees on %s', (_, document, state, sentence) => {
    const verdict = explain(document, state);
    expect(verdict.agrees).toBe(true);
    expect(verdict.sentence).toMatch(sentence);
  });

  it.each<[string, ObjectDocument | undefined, ObjectState, RegExp]>([
    ['a recent change', undefined, present({ lastModifiedMs: NOW_MS - 5_000 }), /holds nothing.*has not arrived yet/],
    ['a change long ago', undefined, present(), /lost, dead-lettered or is still waiting/],
    ['a change before the bucket was connected', undefined, present({ lastModifiedMs: 1_000 }), /before the bucket was connected/],
    ['an S3 that says no time', undefined, { present: true }, /the event of its last change/],
    ['a tombstone', held(ABSENT), present({ lastModifiedMs: NOW_MS - 5_000 }), /holds a tombstone as of .*has not arrived yet/],
    ['a provisional document', held(ABSENT, { settled: false }), present(), /provisional, and Tally asks S3 again 40 s after/],
    [
      'an older state',
      held(present()),
      present({ etag: 'two', lastModifiedMs: NOW_MS - 5_000 }),
      /not as S3 has it now \(etag, last modified\): .*has not arrived/,
    ],
    [
      'an event’s time too far from S3’s LastModified',
      held(present(), { last_modified_exact: false }),
      present({ lastModifiedMs: NOW_MS - HOUR_MS + 17_001 }),
      /not as S3 has it now \(last modified\): /,
    ],
    ['an older upload', held(present()), present({ etag: 'two', lastModifiedMs: NOW_MS - 9 * HOUR_MS }), /not after the document's clock/],
    ['a change within the margin', held(present(), { clock: clockOfMs(NOW_MS - 5_000) }), ABSENT, /less than 20 s ago/],
    [
      'a clock of the future',
      held(present(), { clock: clockOfMs(NOW_MS + HOUR_MS) }),
      ABSENT,
      /2026-06-01T13:00:00.000Z, is later than this answer from S3/,
    ],
    ['an object that is gone', held(present()), ABSENT, /although S3 no longer has it: the event of its removal/],
  ])('differs and says why: %s', (_, document, state, sentence) => {
    const verdict = explain(document, state);
    expect(verdict.agrees).toBe(false);
    expect(verdict.sentence).toMatch(sentence);
    expect(verdict.sentence).toMatch(/^A search (finds|does not find) it.*\.$/);
    // no event that is on its way, nor the document itself, explains it
    const isLost = /lost, dead-lettered|before the bucket was|the event of its last|not after the document/.test(verdict.sentence);
    expect(verdict.lost).toBe(isLost ? (document === undefined ? 'missing' : 'stale') : undefined);
  });

  it('names the floor below which the change lies, and what a routed source does not tell', () => {
    expect(explain(undefined, present(), { floor: clockOfMs(NOW_MS - 1_000) }).sentence).toMatch(
      /before the bucket's last re-index began\. Unless that still runs, the index should have it: re-index its folder\.$/,
    );
    expect(explain(held(present()), ABSENT, { source: 'routed' }).sentence).toMatch(/audit trails/);
  });

  it('names the command that permits the deletions that wait, for a document whose object is gone, and for no other', () => {
    const status = { state: 'deletions_held', sentence: '400 deletions wait for you' } as const;
    const about = (document: ObjectDocument | undefined, state: ObjectState): string =>
      explanationOf({ bucket, status, document, storage: { state, observedAtMs: NOW_MS } }).sentence;
    expect(about(held(present()), ABSENT)).toContain('waiting for a person to allow it; `tally bucket list` shows');
    expect(about(undefined, present())).not.toContain('waiting for a person');
  });

  it('names the doctor where no event of the bucket is known to arrive', () => {
    const status = { state: 'events_unproven', sentence: 'No event has arrived since it was connected' } as const;
    const { sentence, lost } = explanationOf({ bucket, status, document: undefined, storage: { state: present(), observedAtMs: NOW_MS } });
    expect(sentence).toContain('No event has arrived since it was connected; `tally doctor b` says what is missing');
    // a gap of one key would say less than the status does
    expect(lost).toBeUndefined();
  });

  it.each<[string, ObjectDocument | undefined, RegExp]>([
    ['a live document', held(present()), /^A search finds it as it was/],
    ['a tombstone', held(ABSENT), /^A search does not find it, because the index holds its tombstone/],
    ['nothing', undefined, /^A search does not find it, because the index holds nothing/],
  ])('does not judge %s when S3 could not be asked', (_, document, sentence) => {
    const fault = { code: 'object.denied', reason: 'HEAD and LIST are denied' } as const;
    const verdict = explanationOf({ bucket, status: WELL, document, storage: { fault } });
    expect(verdict).toEqual({ agrees: 'unknown', sentence: expect.stringMatching(sentence) });
    expect(verdict.sentence).toContain('object.denied: HEAD and LIST are denied');
  });
});

describe('explain and drift', () => {
  /** Few values of each field, so that both sides often agree. */
  const states: fc.Arbitrary<PresentState> = fc
    .record(
      {
        etag: fc.constantFrom('one', '"one"', 'two'),
        sizeBytes: fc.constantFrom(1, 2),
        versionId: fc.constantFrom('v1', 'v2'),
        storageClass: fc.constantFrom('STANDARD', 'GLACIER'),
        lastModifiedMs: fc.constantFrom(0, 999, 1_000, 17_000, 18_000).map((offMs) => NOW_MS - HOUR_MS + offMs),
        lastModifiedExact: fc.boolean(),
        contentType: fc.constantFrom('text/plain', 'text/html'),
        userMetadata: fc.constantFrom({}, { a: '1' }),
        tags: fc.constantFrom({}, { a: '1' }, { a: '2' }),
      },
      { requiredKeys: [] },
    )
    .map((fields) => ({ present: true, ...fields }));
  const sides = fc.oneof({ weight: 1, arbitrary: fc.constant(ABSENT) }, { weight: 5, arbitrary: states });

  it('never contradict each other, whatever S3 says and the index holds', () => {
    const kinds = new Set<string>();
    fc.assert(
      fc.property(sides, fc.option(sides, { nil: undefined }), (state, indexed) => {
        const document = indexed === undefined ? undefined : held(indexed);
        const { agrees, sentence } = explain(document, headOf(state));
        // what a HEAD says and no listing does must not be compared: no re-index would find that it differs
        const listed = state.present ? listedOf(state) : undefined;
        const slice = compareSides({
          listed: listed === undefined ? [] : [{ key: 'k', state: listed }],
          documents: document === undefined || document.deleted ? [] : [document],
          listedFrom: 0,
          documentsFrom: 0,
          isDocumentsEnd: true,
          through: undefined,
          findsEqual: true,
          enrich: 'none',
          headsMax: 1,
          needsHead: () => false,
        });
        const { kind, fields } = slice.comparedKeys[0] ?? { kind: 'gone', fields: [] };
        kinds.add(kind);
        expect(agrees).toBe(kind === 'gone' || kind === 'equal' || kind === 'incomplete');
        // what a re-index would do with the listing, and with a HEAD
        expect(decideListed(listed, document, clockOfListing(NOW_MS)).kind).toBe(kind);
        expect(decideSeen(headOf(state), document, NOW_MS).kind).toBe(agrees ? 'agrees' : 'write');
        if (kind === 'stale') expect(sentence).toContain(`(${fields.join(', ').replaceAll('_', ' ')}): `);
      }),
      { numRuns: 2_000 },
    );
    expect(kinds).toEqual(new Set(['gone', 'equal', 'incomplete', 'missing', 'phantom', 'stale']));
  });
});
