import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseNotification, sameEntries, type NotificationEntry } from '../../src/connect/notification.rules.ts';
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
