/** What the doctor suspects while no event has proven a connection. */
import { expect, it } from 'vitest';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { unprovenFindings } from '../../src/connect/finding.rules.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';

const whyOf = (more: Partial<BucketRecord>, isByHand = false): string | undefined =>
  unprovenFindings(recordOf('photos', more), isByHand, 0)[0]?.why;

it('Fix: suspects what a person wired before what nobody can read, and nothing of the way once an event has come by it', () => {
  expect(whyOf({})).toMatch(/first check what else is found here.* a Deny/);
  expect(whyOf({}, true)).toMatch(/first check that the notification, rule or trail exists.* a Deny/);
  expect(whyOf({ arrived: ['created'] })).toMatch(/^events get through.*excludes it$/);
});

it('is silent once the connection is proven', () => {
  expect(whyOf({ provenAtMs: 1 })).toBeUndefined();
});
