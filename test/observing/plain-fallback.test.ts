import { describe, expect, it } from 'vitest';
import { documentOf, type ObjectDocument, type PresentState } from '../../src/ordering/document.ts';
import { faults, type FaultCode } from '../../src/base/fault.ts';
import { withPlainFallback } from '../../src/observing/enricher.ts';
import type { WriteRequest } from '../../src/observing/bulk-writer.ts';
import type { WriteAnswer } from '../../src/store/store.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';

function setUp(answers: readonly WriteAnswer[]) {
  const telemetry = createFakeTelemetry();
  const left = [...answers];
  const written: WriteRequest[] = [];
  const write = withPlainFallback(async (each) => {
    written.push(each);
    return left.shift()!;
  }, telemetry);
  return { telemetry, written, write };
}

function request(state: Partial<PresentState>): WriteRequest {
  const facts = { bucket: 'b', key: 'k', clock: 5, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 } as const;
  const document: ObjectDocument = documentOf({ ...facts, state: { present: true, etag: 'e', ...state } });
  return { document, equalClock: 'refuse', expiresAtMs: 1_000 };
}

const refusal = (code: FaultCode): WriteAnswer => ({ kind: 'fault', fault: { code, reason: 'as scripted' } });
const enriched = { contentType: 'text/plain', userMetadata: { a: 'b' }, tags: { c: 'd' }, storageClass: 'X', expiresAtMs: 5 };

describe('an enriched document that the index refuses', () => {
  it.each(['index.rejected', 'bucket.index-misconfigured'] as const)(
    'as %s is written plain, with the same life, and counted',
    async (code) => {
      const { write, written, telemetry } = setUp([refusal(code), { kind: 'written' }]);
      expect(await write(request(enriched))).toEqual({ kind: 'written' });
      expect(written).toEqual([request(enriched), request({})]);
      const refused = ['head', 'tags'].map((enrich) => ({ enrich, result: code }));
      expect(telemetry.labels('tally_enrich_total')).toEqual(refused);
      const { advice } = faults[code];
      expect(telemetry.logged('documents are written without enrichment')).toEqual(
        refused.map((each) => ({ ...each, bucket: 'b', reason: 'as scripted', advice })),
      );
    },
  );

  it('and that is refused plain too has the fault of the plain one', async () => {
    const { write } = setUp([refusal('index.rejected'), refusal('bucket.index-blocked')]);
    expect(await write(request({ userMetadata: {} }))).toEqual(refusal('bucket.index-blocked'));
  });

  it('for anything else is not written again here', async () => {
    for (const answer of [
      { kind: 'written' },
      { kind: 'superseded' },
      { kind: 'equal' },
      { kind: 'expired' },
      refusal('index.blocked'),
    ] as const) {
      const { write, written, telemetry } = setUp([answer]);
      expect(await write(request(enriched))).toEqual(answer);
      expect(written).toHaveLength(1);
      expect(telemetry.facts).toEqual([]);
    }
  });
});

it('a plain document that the index refuses is refused', async () => {
  const { write, written, telemetry } = setUp([refusal('index.rejected')]);
  expect(await write(request({ storageClass: 'X' }))).toEqual(refusal('index.rejected'));
  expect(written).toHaveLength(1);
  expect(telemetry.facts).toEqual([]);
});
