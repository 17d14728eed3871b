import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTraceparent, parseXrayHeader } from '../../../src/domain/events/trace-context.ts';
import { anyCharacter } from '../../support/random/characters.ts';

const XRAY = 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1';
const ofXray = { traceId: '5759e988bd862e3fe1be46a994272793', spanId: '53995c3f42cd8ad8', isSampled: true };
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const ofTraceparent = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isSampled: true };

describe("X-Ray's header", () => {
  test.each([
    ['as SQS gives it', XRAY, ofXray],
    ['with its parts in another order', 'Sampled=1;Parent=53995c3f42cd8ad8;Root=1-5759e988-bd862e3fe1be46a994272793', ofXray],
    ['with spaces between its parts', XRAY.replaceAll(';', ' ; '), ofXray],
    ['with a lineage and a self', `Self=1-67891234-12456789abcdef012345678;${XRAY};Lineage=a87bd80c:1|68fd508a:5|c512fbe3:2`, ofXray],
    ['in capitals', XRAY.replace('bd862e3fe1be46a994272793', 'BD862E3FE1BE46A994272793'), ofXray],
    ['not sampled', XRAY.replace('Sampled=1', 'Sampled=0'), { ...ofXray, isSampled: false }],
    ['with the decision left open', XRAY.replace('Sampled=1', 'Sampled=?'), { ...ofXray, isSampled: false }],
    ['without a decision', XRAY.replace(';Sampled=1', ''), { ...ofXray, isSampled: false }],
    ['whose parts occur twice, by the first', `${XRAY};Parent=ffffffffffffffff;Sampled=0`, ofXray],
  ])('%s is read', (_, text, context) => {
    expect(parseXrayHeader(text)).toEqual(context);
  });

  test.each([
    ['is empty', ''],
    ['has no parent', XRAY.replace('Parent=53995c3f42cd8ad8;', '')],
    ['has no root', 'Parent=53995c3f42cd8ad8;Sampled=1'],
    ['has a root of another version', XRAY.replace('Root=1-', 'Root=2-')],
    ['has a root without dashes', XRAY.replace('1-5759e988-', '15759e988')],
    ['has a root that is too short', XRAY.replace('bd862e3f', 'bd862e3')],
    ['has a root that is too long', XRAY.replace('bd862e3f', 'bd862e3f0')],
    ['has a root of zeros', XRAY.replace('5759e988-bd862e3fe1be46a994272793', `${'0'.repeat(8)}-${'0'.repeat(24)}`)],
    ['has a parent of zeros', XRAY.replace('53995c3f42cd8ad8', '0'.repeat(16))],
    ['has a parent that is no hex', XRAY.replace('53995c3f42cd8ad8', '53995c3f42cd8adg')],
    ['has a parent on two lines', XRAY.replace('53995c3f42cd8ad8', '53995c3f42cd8ad8\nx')],
    ['is longer than any that AWS makes', `${XRAY};${'x'.repeat(512)}`],
    ['is a traceparent', TRACEPARENT],
  ])('names no trace where it %s', (_, text) => {
    expect(parseXrayHeader(text)).toBeUndefined();
  });
});

describe("W3C's traceparent", () => {
  test.each([
    ['as it is', TRACEPARENT, ofTraceparent],
    ['with spaces around it', ` ${TRACEPARENT} `, ofTraceparent],
    ['not sampled', TRACEPARENT.replace(/01$/, '00'), { ...ofTraceparent, isSampled: false }],
    ['with flags of level 2', TRACEPARENT.replace(/01$/, '03'), ofTraceparent],
    ['of a later version', TRACEPARENT.replace(/^00/, 'cc'), ofTraceparent],
    ['of a later version, with more behind it', `${TRACEPARENT.replace(/^00/, 'cc')}-what-the-future-says`, ofTraceparent],
  ])('%s is read', (_, text, context) => {
    expect(parseTraceparent(text)).toEqual(context);
  });

  test.each([
    ['is empty', ''],
    ['has the version that is forbidden', TRACEPARENT.replace(/^00/, 'ff')],
    ['has something behind version 00', `${TRACEPARENT}-x`],
    ['has something behind it without a dash', `${TRACEPARENT.replace(/^00/, 'cc')}x`],
    ['is in capitals', TRACEPARENT.toUpperCase()],
    ['has a trace of zeros', TRACEPARENT.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32))],
    ['has a span of zeros', TRACEPARENT.replace('b7ad6b7169203331', '0'.repeat(16))],
    ['lacks its flags', TRACEPARENT.slice(0, -3)],
    ['is longer than any can be', `${TRACEPARENT.replace(/^00/, 'cc')}-${'x'.repeat(256)}`],
    ["is X-Ray's header", XRAY],
  ])('names no trace where it %s', (_, text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

test('whatever the text, neither throws, and what it names has the form of a span', () => {
  const nearly = fc.stringMatching(
    /^(Root=1-[0-9a-fA-F]{7,9}-[0-9a-f]{23,25}|Parent=[0-9a-g]{15,17}|Sampled=[01?]|;|[0-9a-f]{2}-| ){0,8}$/,
  );
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: anyCharacter }), nearly), (text) => {
      for (const context of [parseXrayHeader(text), parseTraceparent(text)]) {
        if (context === undefined) continue;
        expect(context.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
        expect(context.spanId).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
      }
    }),
  );
});
