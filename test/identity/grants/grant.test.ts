/** The texts of grants, and whom they mean. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatScope, granteesMatching, isGroup, parseScope, whereSchema } from '../../../src/identity/grants/grant.rules.ts';
import { accessRows } from '../../../src/registry/contract/access.ts';
import { policyOf } from '../../../src/identity/grants/policy.rules.ts';
import type { Grant } from '../../../src/identity/grants/grant.rules.ts';
import { anyCharacter } from '../../support/random/characters.ts';

const HALF = '\ud83d';
/** A title that stays short where the text is as long as it may be. */
const titled = (text: string) => ({ title: JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text), text });
const pairs = (cases: readonly (readonly [text: string, form: string])[]) => cases.map(([text, form]) => ({ ...titled(text), form }));
const secret = `qk_${'a1'.repeat(20)}`;

/** Who it is in an administrator's request; undefined if it is no one. */
const whoIn = (who: string) => accessRows['POST /v1/admin/grants'].body.safeParse({ who, where: 'photos' }).data?.who;

describe('who is granted something', () => {
  it.each(
    pairs([
      ['everyone', 'everyone'],
      ['user:bob@example.com', 'user:bob@example.com'],
      ['user:Bob@Example.COM', 'user:bob@example.com'],
      ['group:analysts', 'group:analysts'],
      ['group:Analysts', 'group:Analysts'],
      ['group:a:b/c = d, "e"', 'group:a:b/c = d, "e"'],
      ['group:user:bob@example.com', 'group:user:bob@example.com'],
      ['group:everyone', 'group:everyone'],
      ['group:\u{1f600}', 'group:\u{1f600}'],
      [`group:${'g'.repeat(256)}`, `group:${'g'.repeat(256)}`],
    ]),
  )('is understood: $title', ({ text, form }) => {
    expect(whoIn(text)).toBe(form);
    expect(whoIn(form)).toBe(form);
  });

  it.each(
    [
      '',
      'Everyone',
      'everyone ',
      '*',
      'bob@example.com',
      'user:',
      'user:bob',
      'user:*@example.com@',
      'user:bob@example.com\n',
      ' user:bob@example.com',
      'user:bob@example.com,ann@example.com',
      // in lower case the Kelvin sign is a k
      'user:\u212aevin@example.com',
      'user:bob@ex\u0430mple.com',
      `user:${'b'.repeat(250)}@example.com`,
      'User:bob@example.com',
      'role:admin',
      'group:',
      `group:${secret}`,
      `user:${secret}@example.com`,
    ].map(titled),
    // what is no group: the property below, and claims.test.ts
  )('is no one: $title', ({ text }) => {
    expect(whoIn(text)).toBeUndefined();
  });

  it('is never a mistake that only a part of the program notices', () => {
    fc.assert(
      fc.property(fc.constantFrom('user:', 'group:', 'everyone', ''), fc.string({ unit: anyCharacter }), (kind, text) => {
        const grantee = whoIn(`${kind}${text}`);
        expect(grantee !== undefined && kind === 'group:').toBe(kind === 'group:' && isGroup(text));
        if (grantee === undefined) return;
        expect(whoIn(grantee)).toBe(grantee);
        expect(JSON.parse(JSON.stringify(grantee))).toBe(grantee);
        expect(Buffer.from(grantee).toString()).toBe(grantee);
      }),
    );
  });
});

describe('what is granted', () => {
  it.each(
    pairs([
      ['*', '*'],
      ['photos', 'photos'],
      ['photos/', 'photos'],
      ['photos/2026/', 'photos/2026/'],
      ['photos/2026', 'photos/2026'],
      ['photos//', 'photos//'],
      ['photos/*', 'photos/*'],
      ['photos/../videos/', 'photos/../videos/'],
      ['photos/%2f', 'photos/%2f'],
      ['photos/a b\n\u0000', 'photos/a b\n\u0000'],
      ['photos/\u{1f600}', 'photos/\u{1f600}'],
      [`photos/${'\u00e9'.repeat(512)}`, `photos/${'\u00e9'.repeat(512)}`],
      ['Photos_1.old', 'Photos_1.old'],
    ]),
  )('is understood: $title', ({ text, form }) => {
    const part = parseScope(text);
    if (part !== 'everything' && 'mistake' in part) throw new Error(part.mistake);
    expect(formatScope(part)).toBe(form);
    expect(parseScope(form)).toEqual(part);
    expect(whereSchema.parse(text)).toBe(form);
    expect(accessRows['POST /v1/admin/grants'].body.parse({ who: 'everyone', where: text })).toEqual({ who: 'everyone', where: form });
  });

  it.each(
    [
      '',
      '/',
      '**',
      '*/',
      '*/a',
      'p*',
      '/photos',
      's3://photos/a',
      'ab',
      ' photos',
      'photos ',
      'photos\n',
      '-photos',
      'ph\u00f6tos/a',
      'b'.repeat(256),
      `photos/${HALF}`,
      `photos/a${HALF}b`,
      `photos/\ude00${HALF}`,
      `photos/${'\u00e9'.repeat(512)}x`,
      `photos/${'x'.repeat(1_025)}`,
    ].map(titled),
  )('is nothing: $title', ({ text }) => {
    expect(parseScope(text)).toHaveProperty('mistake');
    expect(whereSchema.safeParse(text).success).toBe(false);
    expect(accessRows['POST /v1/admin/grants'].body.safeParse({ who: 'everyone', where: text }).success).toBe(false);
  });

  it('is one text for each part, whatever its prefix', () => {
    fc.assert(
      fc.property(fc.constantFrom('photos', 'a-b.c'), fc.string({ unit: anyCharacter, maxLength: 40 }), (bucket, prefix) => {
        expect(parseScope(formatScope({ bucket, prefix }))).toEqual({ bucket, prefix });
      }),
    );
  });
});

describe('a policy', () => {
  const granted = (who: string, where: string): Grant => ({ who, where, granted_by: 'test', created_at: '2026-01-01T00:00:00.000Z' });
  const bob = { email: 'Bob@Example.com', emailVerified: true, groups: ['analysts', 'a:b'] };

  it('means a person by the address only if the issuer verified it', () => {
    expect(granteesMatching(bob)).toEqual(['everyone', 'user:bob@example.com', 'group:analysts', 'group:a:b']);
    expect(granteesMatching({ ...bob, emailVerified: false })).toEqual(['everyone', 'group:analysts', 'group:a:b']);
    expect(granteesMatching({ email: 'x@y', emailVerified: false })).toEqual(['everyone']);
  });

  it('gives no person what is meant for another, whatever the groups of the person are called', () => {
    const policy = policyOf([granted('user:ann@example.com', 'anns'), granted('everyone', 'all/x'), granted('group:ann', 'theirs')]);
    const groups = ['user:ann@example.com', 'everyone', 'group:ann', '*', 'anns', '__proto__', 'constructor'];
    expect(policy.readableBy({ ...bob, groups }).readable).toEqual([{ bucket: 'all', prefix: 'x' }]);
  });

  it('grants nothing by a stored text that it does not understand', () => {
    const policy = policyOf([granted('everyone', '!deny'), granted('everyone', 'photos/2026/'), granted('nobody', '*')]);
    expect(policy.readableBy(bob)).toEqual({ readable: [{ bucket: 'photos', prefix: '2026/' }], tooMany: false });
    expect(policy.grantsOf(bob).map(({ where }) => where)).toEqual(['photos/2026/']);
  });

  it('names the grants of which something lies in a part', () => {
    const wheres = ['*', 'photos', 'photos/2', 'photos/2026/', 'photos/2026/a', 'photos/3', 'videos', 'photo'];
    const policy = policyOf(wheres.map((where) => granted('everyone', where)));
    const on = (bucket: string, prefix: string) => policy.grantsOn({ bucket, prefix }).map(({ where }) => where);
    expect(on('photos', '2026/')).toEqual(['*', 'photos', 'photos/2', 'photos/2026/', 'photos/2026/a']);
    expect(on('photos', '')).toEqual(['*', 'photos', 'photos/2', 'photos/2026/', 'photos/2026/a', 'photos/3']);
    expect(on('never', '')).toEqual(['*']);
  });
});
