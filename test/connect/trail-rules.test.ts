import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advancedSelector,
  foreignSelectors,
  parseSelectors,
  recordsBucket,
  withoutSelector,
  withSelector,
  type Selectors,
} from '../../src/connect/trail.rules.ts';
import { asAnswered, REGISTRY } from '../support/fakes/aws-parts.ts';

const photos = { bucket: 'photos', partition: 'aws', registry: REGISTRY };
const field = fc.record({
  Field: fc.constantFrom('eventCategory', 'resources.ARN', 'eventName'),
  Equals: fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }),
});
const advanced = fc.record({
  Name: fc.constantFrom('theirs', 'audit', `tally ${REGISTRY.slice(0, 8)} videos`),
  FieldSelectors: fc.array(field, { maxLength: 3 }),
});
const basic = fc.record(
  {
    ReadWriteType: fc.constantFrom('All', 'ReadOnly', 'WriteOnly'),
    IncludeManagementEvents: fc.boolean(),
    DataResources: fc.array(
      fc.record({
        Type: fc.constantFrom('AWS::S3::Object', 'AWS::Lambda::Function'),
        Values: fc.array(fc.constantFrom('arn:aws:s3:::videos/', 'arn:aws:s3:::photo', 'arn:aws:s3:::ledger/'), { maxLength: 3 }),
      }),
      { maxLength: 2 },
    ),
    ExcludeManagementEventSources: fc.constantFrom([], ['kms.amazonaws.com']),
  },
  { requiredKeys: ['ReadWriteType', 'IncludeManagementEvents', 'DataResources'] },
);
const selectors: fc.Arbitrary<Selectors> = fc.oneof(
  fc.record({ kind: fc.constant('advanced' as const), list: fc.array(advanced, { minLength: 1, maxLength: 4 }) }),
  fc.record({ kind: fc.constant('basic' as const), list: fc.array(basic, { minLength: 1, maxLength: 4 }) }),
);

describe('the selectors of a trail', () => {
  it('keep those of others and their kind when ours is added and when it is taken away', () => {
    fc.assert(
      fc.property(selectors, (before) => {
        const after = withSelector(before, photos);
        expect(foreignSelectors(after, photos)).toEqual(before.list);
        expect(recordsBucket(after, photos)).toBe(true);
        expect(withoutSelector(after, photos)).toEqual(before);
        expect(withoutSelector(before, photos)).toBeUndefined();
      }),
    );
  });

  it('have the bucket in the last basic selector that is exactly as Tally writes it, else in a new one behind the others', () => {
    const written = (...buckets: readonly string[]) => ({
      ReadWriteType: 'WriteOnly',
      IncludeManagementEvents: false,
      DataResources: [{ Type: 'AWS::S3::Object', Values: buckets.map((bucket) => `arn:aws:s3:::${bucket}/`) }],
    });
    // CloudTrail answers each basic selector with an empty list that nobody wrote
    const answered = { ...written('videos'), ExcludeManagementEventSources: [] };
    const others = [
      { ...written('ledger'), ReadWriteType: 'All' },
      { ...written('ledger'), IncludeManagementEvents: true },
      { ...written('ledger'), ExcludeManagementEventSources: ['kms.amazonaws.com'] },
      { ...written('ledger'), New: 1 },
      { ...written('ledger'), DataResources: [...written('ledger').DataResources, ...written('finance').DataResources] },
      written(),
    ];
    const listed = (...list: Selectors['list']) => withSelector({ kind: 'basic', list }, photos).list;
    for (const other of others) expect(listed(other)).toEqual([other, written('photos')]);
    expect(listed(written('finance'), answered, others[0]!)).toEqual([
      written('finance'),
      { ...written('videos', 'photos'), ExcludeManagementEventSources: [] },
      others[0],
    ]);
  });

  it('are read as CloudTrail answers them, and not in another form', () => {
    expect(parseSelectors({ EventSelectors: [{ ReadWriteType: 'All', New: 1 }] })).toEqual({
      kind: 'basic',
      list: [{ ReadWriteType: 'All', New: 1 }],
    });
    expect(parseSelectors({ EventSelectors: [], AdvancedEventSelectors: [advancedSelector(photos)] })).toEqual({
      kind: 'advanced',
      list: [advancedSelector(photos)],
    });
    expect(parseSelectors({})).toEqual({ kind: 'basic', list: [] });
    const written = withSelector({ kind: 'advanced', list: [advancedSelector({ ...photos, bucket: 'finance' })] }, photos);
    const read = asAnswered(written);
    expect(read).toEqual(written);
    expect(recordsBucket(read, photos)).toBe(true);
    expect(() => parseSelectors({ AdvancedEventSelectors: [{ Name: 'x' }] })).toThrow('an unknown form');
  });
});
