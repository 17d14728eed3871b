import { describe, expect, it } from 'vitest';
import type { BulkDelete } from '../../../src/domain/gaps/gap.ts';
import { createReportedKeys } from '../../../src/pipeline/gaps/reported-keys.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

const callOf = (requestId: string, bucket = 'photos'): BulkDelete => ({ bucket, requestId, eventTimeMs: 1_800_000_000_000 });

function setUp({ failures = 0 }: { readonly failures?: number } = {}) {
  const clock = createFakeClock();
  const stored: string[] = [];
  let left = failures;
  const keysReported = async ({ bucket, requestId }: BulkDelete): Promise<void> => {
    stored.push(`${bucket} ${requestId}`);
    left -= 1;
    if (left >= 0) throw new Error('the store does not answer');
  };
  return { clock, stored, told: createReportedKeys({ gaps: { keysReported }, clock }) };
}

describe('keys that are told one by one', () => {
  it('are noticed when a single delete has the request ID of the bulk delete, whichever comes first', () => {
    const before = setUp();
    before.told.single('photos', 'r1');
    expect(before.told.bulk(callOf('r1'))).toBe(true);
    const after = setUp();
    expect(after.told.bulk(callOf('r1'))).toBe(false);
    after.told.bulkStored(callOf('r1'));
    after.told.single('photos', 'r1');
    expect(after.stored).toEqual(['photos r1']);
    // the message of the call is received again
    expect(after.told.bulk(callOf('r1'))).toBe(true);
  });

  it('are stored once their gap is, if a single delete comes in between', () => {
    const { told, stored } = setUp();
    expect(told.bulk(callOf('r1'))).toBe(false);
    told.single('photos', 'r1');
    expect(stored).toEqual([]);
    told.bulkStored(callOf('r1'));
    expect(stored).toEqual(['photos r1']);
  });

  it('Fix: are not those of another request, nor of another bucket, nor of a later call', () => {
    const { told, stored } = setUp();
    told.single('photos', 'r2');
    told.single('music', 'r1');
    expect(told.bulk(callOf('r1'))).toBe(false);
    told.bulkStored(callOf('r1'));
    told.single('photos', 'r3');
    expect(stored).toEqual([]);
    told.single('photos', 'r1');
    expect(told.bulk(callOf('r4'))).toBe(false);
  });

  it('are stored once for each call, and again after ten seconds where the store failed', async () => {
    const { told, stored, clock } = setUp({ failures: 1 });
    told.bulk(callOf('r1'));
    told.bulkStored(callOf('r1'));
    for (let key = 0; key < 100; key += 1) told.single('photos', 'r1');
    await clock.advance(9_999);
    told.single('photos', 'r1');
    expect(stored).toHaveLength(1);
    await clock.advance(1);
    for (let key = 0; key < 100; key += 1) told.single('photos', 'r1');
    await clock.advance(60_000);
    told.single('photos', 'r1');
    expect(stored).toHaveLength(2);
  });

  it('are remembered of a bounded number of calls and single deletes', () => {
    const { told } = setUp();
    told.single('photos', 'first');
    for (let number = 0; number < 20_000; number += 1) told.single('photos', `r${number}`);
    expect(told.bulk(callOf('first'))).toBe(false);
    expect(told.bulk(callOf('r19999'))).toBe(true);
    for (let number = 0; number < 1_000; number += 1) told.bulk(callOf(`c${number}`));
    expect(told.bulk(callOf('r19999'))).toBe(false);
  });
});
