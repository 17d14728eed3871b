import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  completeTopic,
  missingFamilies,
  overlap,
  parseNotification,
  sameEntries,
  type NotificationEntry,
} from '../../src/connect/notification.rules.ts';
import { notificationXml } from '../support/fakes/aws-parts.ts';

const root = (inner: string): string =>
  `<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</NotificationConfiguration>`;
const TOPIC = '<TopicConfiguration><Id>a</Id><Topic>arn:t</Topic><Event>s3:ObjectCreated:*</Event></TopicConfiguration>';

const text = fc.string({ maxLength: 12 }).filter((value) => !/[\r\n]/.test(value));
const entry: fc.Arbitrary<NotificationEntry> = fc.record({
  kind: fc.constantFrom('topic', 'queue', 'function'),
  id: text,
  arn: fc.string({ minLength: 1, maxLength: 12 }).filter((value) => value.trim() === value),
  events: fc.uniqueArray(fc.constantFrom('s3:ObjectCreated:*', 's3:Later:New', 's3:ObjectRemoved:*'), { minLength: 1 }),
  filter: fc.uniqueArray(fc.record({ name: fc.constantFrom('prefix', 'suffix'), value: fc.string({ minLength: 1, maxLength: 8 }) }), {
    selector: ({ name }) => name,
  }),
});

describe('a notification configuration', () => {
  it('is read as S3 writes it, with whatever its texts contain', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), fc.boolean(), (entries, eventBridge) => {
        const configuration = { entries, eventBridge };
        expect(parseNotification(notificationXml(configuration))).toEqual({ ok: true, configuration });
      }),
    );
  });

  it('of LocalStack is read: a declaration in single quotes, elements in another order, and capital names', () => {
    const xml = `<?xml version='1.0' encoding='utf-8'?>\n${root(
      '<QueueConfiguration><Queue>arn:q</Queue><Event>s3:ObjectRemoved:*</Event><Filter><S3Key><FilterRule><Name>Prefix</Name><Value>a%20b/</Value></FilterRule></S3Key></Filter><Id>86034f0b</Id></QueueConfiguration><EventBridgeConfiguration />',
    )}\n`;
    const found = {
      kind: 'queue',
      id: '86034f0b',
      arn: 'arn:q',
      events: ['s3:ObjectRemoved:*'],
      filter: [{ name: 'prefix', value: 'a%20b/' }],
    };
    expect(parseNotification(xml)).toEqual({ ok: true, configuration: { entries: [found], eventBridge: true } });
  });

  it.each([
    ['a configuration of a new kind', root(`${TOPIC}<StreamConfiguration><Id>b</Id></StreamConfiguration>`), /StreamConfiguration/],
    ['a new element', root(TOPIC.replace('</Id>', '</Id><Priority>1</Priority>')), /Priority/],
    ['a new kind of filter', root(TOPIC.replace('</Event>', '</Event><Filter><S3Metadata/></Filter>')), /S3Metadata/],
    [
      'a rule of a new name',
      root(
        TOPIC.replace('</Event>', '</Event><Filter><S3Key><FilterRule><Name>Regex</Name><Value>x</Value></FilterRule></S3Key></Filter>'),
      ),
      /rule/,
    ],
    ['something inside EventBridge', root('<EventBridgeConfiguration><Bus>x</Bus></EventBridgeConfiguration>'), /EventBridgeConfiguration/],
    ['an attribute', root(TOPIC.replace('<Id>', '<Id kind="x">')), /kind/],
    ['two topics', root(TOPIC.replace('</Topic>', '</Topic><Topic>arn:u</Topic>')), /twice/],
    ['no event', root('<TopicConfiguration><Topic>arn:t</Topic></TopicConfiguration>'), /no <Event>|no <Topic>/],
    ['a comment', root(`<!-- x -->${TOPIC}`), /not an element/],
    ['an entity of a document type', root(TOPIC.replace('arn:t', '&x;')), /entity/],
    ['a sign-in page', '<html><body>Sign in</body></html>', /root is <html>/],
    ['text that is no XML', 'Forbidden', /.+/],
    ['half a document', '<NotificationConfiguration><TopicConfiguration>', /.+/],
    ['nothing', '', /root/],
  ])('is refused with %s', (_, xml, reason) => {
    expect(parseNotification(xml)).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('<', '>', '/', 'a', '&', ';', '"', ' ', '<Event>', '</Event>', TOPIC), maxLength: 30 }),
        (xml) => {
          expect(parseNotification(xml).ok).toBeTypeOf('boolean');
          expect(parseNotification(root(xml)).ok).toBeTypeOf('boolean');
        },
      ),
    );
  });

  it('means the same in another order, and not with another event, filter or destination', () => {
    const one: NotificationEntry = { kind: 'topic', id: 'a', arn: 't', events: ['x', 'y'], filter: [{ name: 'prefix', value: 'p' }] };
    const other: NotificationEntry = { ...one, id: 'b' };
    expect(sameEntries([one, other], [other, { ...one, events: ['y', 'x'] }])).toBe(true);
    for (const change of [{ events: ['x'] }, { filter: [] }, { arn: 'u' }, { kind: 'queue' as const }]) {
      expect(sameEntries([one], [{ ...one, ...change }])).toBe(false);
    }
  });
});

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
  const name = (of: string): string => (isCapital ? `${of[0]?.toUpperCase() ?? ''}${of.slice(1)}` : of);
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
