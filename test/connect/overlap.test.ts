import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completeTopic, missingFamilies, overlap, type NotificationEntry } from '../../src/connect/notification.rules.ts';

/** What S3 sends, by the names that configurations can select. */
const EVENTS = [
  's3:ObjectCreated:Put',
  's3:ObjectCreated:Copy',
  's3:ObjectRemoved:Delete',
  's3:ObjectRemoved:DeleteMarkerCreated',
  's3:LifecycleExpiration:Delete',
  's3:LifecycleTransition',
];
const SELECTORS = [...EVENTS, 's3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:LifecycleExpiration:*'];

/** Keys of a small alphabet, up to the length at which any two prefixes and suffixes of it fit into one. */
const KEYS: readonly string[] = Array.from({ length: 5 }).reduce<string[]>(
  (keys) => [...new Set([...keys, ...keys.flatMap((key) => ['a', 'b', ' '].map((letter) => key + letter))])],
  [''],
);

interface Drawn {
  readonly events: readonly string[];
  readonly prefix: string;
  readonly suffix: string;
}

const fragment = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 2 });
const drawn: fc.Arbitrary<Drawn> = fc.record({
  events: fc.uniqueArray(fc.constantFrom(...SELECTORS), { minLength: 1, maxLength: 3 }),
  prefix: fragment,
  suffix: fragment,
});

/** As S3 stores them: form-encoded, with names in either case. */
function entryOf({ events, prefix, suffix }: Drawn, isCapital: boolean): Pick<NotificationEntry, 'events' | 'filter'> {
  const name = (text: string): string => (isCapital ? `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}` : text);
  const rule = (of: string, value: string, space: string) =>
    value === '' ? [] : [{ name: name(of), value: value.replaceAll(' ', space) }];
  return { events, filter: [...rule('prefix', prefix, '+'), ...rule('suffix', suffix, '%20')] };
}

function sends({ events, prefix, suffix }: Drawn, event: string, key: string): boolean {
  const selected = events.some((each) => each === event || (each.endsWith('*') && event.startsWith(each.slice(0, -1))));
  return selected && key.startsWith(prefix) && key.endsWith(suffix);
}

describe('two configurations', () => {
  it('overlap exactly if some event of some key would go to both', () => {
    fc.assert(
      fc.property(drawn, drawn, fc.boolean(), (a, b, isCapital) => {
        const both = EVENTS.some(
          (event) => sends(a, event, '') !== undefined && KEYS.some((key) => sends(a, event, key) && sends(b, event, key)),
        );
        expect(overlap(entryOf(a, isCapital), entryOf(b, !isCapital))).toBe(both);
        expect(overlap(entryOf(b, isCapital), entryOf(a, isCapital))).toBe(both);
      }),
      { numRuns: 500 },
    );
  });

  it('compare a value that is not form-encoded as it is', () => {
    const of = (value: string) => ({ events: ['s3:ObjectCreated:*'], filter: [{ name: 'prefix', value }] });
    expect(overlap(of('100%'), of('100%25'))).toBe(true);
    expect(overlap(of('50%'), of('100%'))).toBe(false);
  });
});

describe('a topic of the bucket', () => {
  const topic = (arn: string, events: readonly string[], filter: NotificationEntry['filter'] = []): NotificationEntry => ({
    kind: 'topic',
    id: arn,
    arn,
    events,
    filter,
  });

  it('is complete with both families, in one configuration or in two, and without a filter', () => {
    const configuration = {
      eventBridge: false,
      entries: [
        topic('filtered', ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'], [{ name: 'suffix', value: '.jpg' }]),
        topic('halves', ['s3:ObjectCreated:*']),
        topic('halves', ['s3:ObjectRemoved:*']),
      ],
    };
    expect(completeTopic(configuration)).toBe('halves');
    expect(missingFamilies(configuration, 'filtered')).toEqual(['s3:ObjectCreated:*', 's3:ObjectRemoved:*']);
  });

  it('is not complete with single events of a family', () => {
    const configuration = { eventBridge: false, entries: [topic('puts', ['s3:ObjectCreated:Put', 's3:ObjectRemoved:*'])] };
    expect(missingFamilies(configuration, 'puts')).toEqual(['s3:ObjectCreated:*']);
    expect(completeTopic(configuration)).toBeUndefined();
  });
});
