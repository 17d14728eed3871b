import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuery, type ParsedQuery } from '../../src/search/parse.rules.ts';
import { isLong } from '../support/breadth.ts';
import { growthOf } from '../support/growth.ts';
import { anyCharacter } from '../support/random/characters.ts';

const NOW = Date.parse('2026-11-22T12:00:00.000Z');
const options = { nowMs: NOW, timeZone: 'UTC' };

function parsed(text: string, timeZone = 'UTC'): ParsedQuery {
  const query = parseQuery(text, { nowMs: NOW, timeZone });
  if ('message' in query) throw new Error(`${text}: at ${query.position}: ${query.message}`);
  return query;
}

const understood = (text: string, timeZone?: string): readonly string[] =>
  parsed(text, timeZone).clauses.map(
    ({ field, negated, operator = ':', values }) => `${negated ? '-' : ''}${field}${operator}${values.join(',')}`,
  );

describe('the one box', () => {
  it.each<[string, readonly string[]]>([
    ['', []],
    ['annual report', ['words:annual', 'words:report']],
    ['annual-report', ['words:annual-report']],
    ['year=2026/month=09', ['words:year=2026/month=09']],
    ['12:30', ['words:12:30']],
    ['cat,dog', ['words:cat,dog']],
    ['-tmp', ['-words:tmp']],
    ['"Annual Report (2)"', ['contains:Annual Report (2)']],
    ['"a \\"b\\" \\\\ c"', ['contains:a "b" \\ c']],
    ['"c:\\temp"', ['contains:c:\\temp']],
    ['*.tar.gz,img_????.jpg', ['match:*.tar.gz,img_????.jpg']],
    ['bucket:photos prefix:2026/', ['bucket:photos', 'prefix:2026/']],
    ['prefix:"My Folder/"', ['prefix:My Folder/']],
    ['ext:parquet,csv -ext:tar.gz', ['ext:parquet,csv', '-ext:tar.gz']],
    ['type:image/* class:glacier', ['type:image/*', 'class:glacier']],
    ['tag:team=ml meta:a%3Db=c=d', ['tag:team=ml', 'meta:a%3Db=c=d']],
    ['tag:team -meta:a,b=c', ['tag:team', '-meta:a,b=c']],
    [
      'tag:"team=*" key:"a*b" prefix:"?/" etag:"*" ext:"j?g" type:"image/*"',
      ['tag:team=*', 'key:a*b', 'prefix:?/', 'etag:*', 'ext:j?g', 'type:image/*'],
    ],
    ['size>1 cat k', ['size>1', 'words:cat', 'words:k']],
    ['size>1k b', ['size>1024', 'words:b']],
    ['key:"with space" cat', ['key:with space', 'words:cat']],
    ['cat key:a "b c" -d', ['words:cat', 'key:a', 'contains:b c', '-words:d']],
    ['key>=2026/m cat', ['key>=2026/m', 'words:cat']],
    ['key:a/b.txt etag:d41d8', ['key:a/b.txt', 'etag:d41d8']],
    ['size>1G', [`size>${2 ** 30}`]],
    ['size>=1GiB size<1GB size<=1.5k size=0', [`size>=${2 ** 30}`, 'size<1000000000', 'size<=1536', 'size=0']],
    ['size>10b size>1KB size>1.5M size>1T size>1PB', ['size>10', 'size>1000', 'size>1572864', `size>${2 ** 40}`, 'size>1000000000000000']],
    ['size > 1G size >=1K -size< 1M size = 0', [`size>${2 ** 30}`, 'size>=1024', `-size<${2 ** 20}`, 'size=0']],
    ['report modified < 7d', ['words:report', 'modified>=2026-11-15T12:00:00.001Z']],
    ['report or invoice', ['words:report', 'words:or', 'words:invoice']],
    ['modified<7d', ['modified>=2026-11-15T12:00:00.001Z']],
    ['modified>7d', ['modified<2026-11-15T12:00:00.000Z']],
    ['modified>2026-09-01', ['modified>=2026-09-02T00:00:00.000Z']],
    ['modified>=2026-09-01', ['modified>=2026-09-01T00:00:00.000Z']],
    ['modified<2026-09', ['modified<2026-09-01T00:00:00.000Z']],
    ['modified<=2026', ['modified<2027-01-01T00:00:00.000Z']],
    ['modified<2026-09-01T08:00+02:00', ['modified<2026-09-01T06:00:00.000Z']],
    ['modified<=2026-09-01T08:00', ['modified<2026-09-01T08:01:00.000Z']],
    ['modified<999999y', ['modified>=0000-01-01T00:00:00.000Z']],
    ['modified<=9999', ['modified<9999-12-31T23:59:59.999Z']],
    ['is:deleted prefix:a/', ['is:deleted', 'prefix:a/']],
    ['is:deleted key:a -key>=b', ['is:deleted', 'key:a', '-key>=b']],
    ['modified=2026-09-01', ['modified=2026-09-01T00:00:00.000Z/2026-09-02T00:00:00.000Z']],
    ['deleted=2026-09', ['deleted=2026-09-01T00:00:00.000Z/2026-10-01T00:00:00.000Z']],
    ['deleted<24h', ['deleted>=2026-11-21T12:00:00.001Z']],
    ['s3://photos/2026/a b,c.jpg', ['object:photos,2026/a b,c.jpg']],
    [' s3://photos ', ['object:photos,']],
    ['arn:aws:s3:::photos/a:b', ['object:photos,a:b']],
    ['https://photos.s3.eu-central-1.amazonaws.com/a%20b?X-Amz-Signature=1', ['object:photos,a b']],
    ['https://my.s3.photos.s3.dualstack.us-west-2.amazonaws.com/a', ['object:my.s3.photos,a']],
    ['https://s3.amazonaws.com/photos/a/b', ['object:photos,a/b']],
    ['https://eu-central-1.console.aws.amazon.com/s3/object/photos?region=eu-central-1&prefix=a/b.txt', ['object:photos,a/b.txt']],
    ['https://eu-central-1.console.aws.amazon.com/s3/buckets/photos?prefix=a/', ['object:photos,a/']],
  ])('understands %j', (text, clauses) => {
    expect(understood(text)).toEqual(clauses);
  });

  it.each<[string, number, string]>([
    ['cat extn:pdf', 4, 'there is no field extn; the fields are bucket, prefix, '],
    ['-extension:pdf', 1, 'there is no field extension'],
    ['modifed>3d', 0, 'there is no field modifed'],
    ['owner:bob', 0, 'and a tag is written tag:owner=VALUE. Put the text in quotes'],
    ['über:x', 0, 'there is no field über'],
    ['http://', 0, 'names no bucket'],
    ['s3://a', 0, 'names no bucket'],
    ['a "b c', 2, 'the quote is not closed'],
    ['"abc"d', 5, 'a space must follow'],
    ['"ab"', 0, 'at least 3'],
    ['"\u0301\u0302\u0303"', 0, 'at least 3'],
    ['ext:', 4, 'a value is missing'],
    ['ext:a,,b', 6, 'a value is missing'],
    ['cat,', 4, 'a value is missing'],
    ['ext:*.pdf', 4, 'write *.pdf alone'],
    ['ext:a.b.c', 4, 'one or two parts'],
    ['size:1G', 0, 'compare it: size>1G'],
    ['ext>5', 0, 'write ext:'],
    ['key>a', 0, 'write key:'],
    ['key>=a,b', 0, 'needs one key'],
    ['ext > 5', 0, 'write ext:'],
    ['size >', 6, 'a value is missing'],
    ['report OR invoice', 7, 'separate alternatives with commas'],
    ['report AND invoice', 7, 'all clauses must match'],
    ['report NOT draft', 7, 'put - before'],
    ['size>big', 5, 'not a size'],
    ['size>99999P', 5, 'not a size'],
    ['size>1e3', 5, 'not a size'],
    ['size>G', 5, 'not a size'],
    ['size>1,2', 7, 'one value'],
    ['modified>tomorrow', 9, 'neither an age'],
    ['modified>0050-01-01', 9, 'neither an age'],
    ['modified>2026-01-01T00:00+99:00', 9, 'neither an age'],
    ['modified=7d', 9, 'compare an age with <'],
    ['deleted=1d', 8, 'compare an age with <'],
    ['modified>7m', 9, 'neither an age'],
    ['type:*', 5, 'one type or a family'],
    ['type:*/json', 5, 'one type or a family'],
    ['type:image/p*', 5, 'one type or a family'],
    ['type:image/?', 5, 'one type or a family'],
    ['tag:', 4, 'a value is missing'],
    ['tag:team="a b"', 4, 'put quotes around all of it: tag:"team=VALUE"'],
    ['-meta:a,color="red"', 8, 'put quotes around all of it: meta:"color=VALUE"'],
    ['tag:=ml', 4, 'write NAME for any value, or NAME=VALUE'],
    ['-tag:owner=*', 5, 'write tag:NAME for any value, or tag:"owner=*"'],
    ['meta:own?r', 5, 'write meta:NAME for any value'],
    ['key:a*', 4, 'write a* alone, or key:"a*"'],
    ['-prefix:a,logs/*', 10, 'write logs/* alone, or prefix:"logs/*"'],
    ['bucket:photos-*', 7, 'write the whole value'],
    ['class:*', 6, 'write the whole value'],
    ['etag:d41*', 5, 'write the whole value'],
    ['size>1 k', 7, 'size>1k'],
    ['-size <= 1.5 GiB', 13, 'size<=1.5GiB'],
    ['tag=owner', 0, 'write tag: and a value, or put the text in quotes'],
    ['ext = pdf', 0, 'write ext: and a value'],
    ['key:with two spaces', 9, 'key with spaces in quotes: key:"with two"'],
    ['bucket:a', 7, 'not a valid bucket name'],
    ['***', 0, 'needs 3 characters in a row'],
    ['a*b', 0, 'needs 3 characters in a row'],
    ['abc*********', 0, 'at most 8 times *'],
    ['abc?????????', 0, 'at most 8 times ?'],
    [`"${'a'.repeat(257)}"`, 0, 'at most 256 characters'],
    ['/ cat', 0, 'no letters or digits'],
    ['-is:deleted', 0, 'remove this clause'],
    ['-deleted<1d', 0, 'reverse the comparison'],
    ['is:live', 3, 'one value, deleted'],
    ['is:deleted ext:pdf', 11, 'not by ext'],
    ['deleted<1d cat', 11, 'not by words'],
    ['a '.repeat(33), 64, 'at most 32 clauses'],
    [`ext:${'a,'.repeat(64)}a`, 132, 'at most 64 values'],
  ])('says of %j that at %i: …%s…', (text, position, message) => {
    expect(parseQuery(text, options)).toEqual({ position, message: expect.stringContaining(message) });
  });

  it('lets a pattern be short where a prefix stands beside it', () => {
    expect(understood('prefix:a/ *b*')).toEqual(['prefix:a/', 'match:*b*']);
    expect(parseQuery('-prefix:a/ *b*', options)).toMatchObject({ position: 11 });
  });

  it('takes the last word as the beginning of one, and no negated word', () => {
    expect(parsed('cat do -fis').conditions).toEqual([
      { negated: false, anyOf: [{ kind: 'words', words: [[{ whole: ['cat'] }]] }] },
      { negated: false, anyOf: [{ kind: 'words', words: [[{ whole: [], prefix: 'do' }]] }] },
      { negated: true, anyOf: [{ kind: 'words', words: [[{ whole: ['fis'] }]] }] },
    ]);
  });

  it('counts ages from the moment of the query, and says so', () => {
    expect(parsed('modified<7d').relative).toBe(true);
    expect(parsed('modified<2026').relative).toBe(false);
  });

  it('takes dates in the zone that was asked for, also where the clocks change', () => {
    expect(understood('modified>=2026-10-25', 'Europe/Berlin')).toEqual(['modified>=2026-10-24T22:00:00.000Z']);
    expect(understood('modified<=2026-10-25', 'Europe/Berlin')).toEqual(['modified<2026-10-25T23:00:00.000Z']);
    expect(understood('modified>=2026-03-29T03:30', 'Europe/Berlin')).toEqual(['modified>=2026-03-29T01:30:00.000Z']);
    expect(understood('modified>=2026-09-01T08:00Z', 'Asia/Kathmandu')).toEqual(['modified>=2026-09-01T08:00:00.000Z']);
    expect(understood('modified>=2026-09-01', '-03:30')).toEqual(['modified>=2026-09-01T03:30:00.000Z']);
  });

  it('names the place of each clause in the text', () => {
    const text = '  cat  -ext:"a",b   size>1k ';
    for (const { text: clause, position } of parsed(text).clauses) expect(text.slice(position, position + clause.length)).toBe(clause);
    expect(parsed(text).clauses.map((clause) => clause.text)).toEqual(['cat', '-ext:"a",b', 'size>1k']);
  });

  it('never throws, and names a place within the text', () => {
    const unit = fc.constantFrom(' ', ...'a 1 - " \\ , : > < = * ? / é 😀 ext size tag s3://'.split(' '));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit, maxLength: 40 }), fc.string({ unit: anyCharacter, maxLength: 60 })), (text) => {
        const query = parseQuery(text, options);
        if (!('message' in query)) return;
        expect(query.position).toBeGreaterThanOrEqual(0);
        expect(query.position).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: isLong ? 3_000 : 1_000 },
    );
  });

  it('reads back what is written with quotes, commas, minus signs and any space', () => {
    const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
    const clause = fc.record({
      field: fc.constantFrom('key', 'prefix', 'etag', 'class'),
      negated: fc.boolean(),
      values: fc.array(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 3 }),
    });
    const space = fc.constantFrom(' ', '\t', '\n', '\u00a0', '\u3000', '  ');
    fc.assert(
      fc.property(fc.array(clause, { minLength: 1, maxLength: 5 }), space, (clauses, between) => {
        const written = clauses.map(({ field, negated, values }) => `${negated ? '-' : ''}${field}:${values.map(quoted).join(',')}`);
        const read = parsed(`${between}${written.join(between)}${between}`).clauses;
        expect(read.map(({ field, negated, values }) => ({ field, negated, values }))).toEqual(clauses);
        expect(read.map(({ text }) => text)).toEqual(written);
      }),
      { numRuns: 500 },
    );
  });

  it('takes a time that is linear in the length of its text', () => {
    for (const unit of ['-', '"\\', '*a', 'ext:a,', '\u0301']) {
      expect(growthOf((text) => parseQuery(text, options), unit)).toBeLessThanOrEqual(15);
    }
    // a group that matches in many ways takes seconds for forty hyphens
    for (const unit of ['-', '.s3-a']) {
      const address = (text: string): string => `https://s3${text.slice(0, text.length / 250)}.example/a`;
      expect(growthOf((text) => parseQuery(address(text), options), unit)).toBeLessThanOrEqual(15);
    }
  });
});
