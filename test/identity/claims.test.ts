/** The groups that an issuer states: input, which may have any form. */
import { describe, expect, it } from 'vitest';
import {
  groupsOf,
  claimHas,
  identityOf,
  type Claims,
  allowedRuleOf,
  claimRuleOf,
  isOfIssuer,
  matchedRules,
  notAllowedReason,
  roleOf,
  type LoginRules,
  isPublicIssuer,
} from '../../src/identity/claims.rules.ts';
import { userIdOf, appointeesOf, appointmentNameOf } from '../../src/identity/user.rules.ts';

const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `group-${at}`);
const leftOut = { groupsLeftOut: true };

describe('the groups of a login', () => {
  it.each([
    ['no claim', {}, { groups: [] }],
    ['one text', { groups: 'analysts' }, { groups: ['analysts'] }],
    ['an empty text', { groups: '' }, { groups: [] }],
    ['an empty list', { groups: [] }, { groups: [] }],
    ['a list', { groups: ['b', 'a'] }, { groups: ['b', 'a'] }],
    ['a list that repeats one', { groups: ['a', 'a', 'b'] }, { groups: ['a', 'b'] }],
    ['what is no text', { groups: [1, null, { a: 1 }, ['a'], true, 'a'] }, { groups: ['a'] }],
    ['an object', { groups: { a: true } }, { groups: [] }],
    ['a prototype', JSON.parse('{"__proto__": {"groups": ["a"]}}'), { groups: [] }],
    ['the longest name', { groups: ['g'.repeat(256)] }, { groups: ['g'.repeat(256)] }],
    ['a name that is longer', { groups: ['g'.repeat(257), 'a'] }, { groups: ['a'], ...leftOut }],
    ['a name with a line break', { groups: ['a\nb', 'a'] }, { groups: ['a'], ...leftOut }],
    ['a name with half of a surrogate pair', { groups: ['\ud83d', 'a'] }, { groups: ['a'], ...leftOut }],
    ['the most groups', { groups: numbered(1_000) }, { groups: numbered(1_000) }],
    ['one group more', { groups: numbered(1_001) }, { groups: numbered(1_000), ...leftOut }],
    ['a link in place of the groups', { _claim_names: { groups: 'src1' }, _claim_sources: { src1: {} } }, { groups: [], ...leftOut }],
    ['a link in place of another claim', { _claim_names: { address: 'src1' } }, { groups: [] }],
    ['a link beside the groups', { groups: ['a'], _claim_names: { groups: 'src1' } }, { groups: ['a'] }],
    ['a link that is no object', { _claim_names: 'groups' }, { groups: [] }],
    ['a link that is null', { _claim_names: null }, { groups: [] }],
  ])('of %s', (_, claims, groups) => {
    expect(groupsOf(claims, 'groups')).toEqual(groups);
  });

  it('are in the claim of the settings, which may be within another one or have dots in its name', () => {
    const claims = { groups: ['no'], realm: { roles: ['a'] }, 'https://example.com/groups': ['b'] };
    expect(groupsOf(claims, 'realm.roles').groups).toEqual(['a']);
    expect(groupsOf(claims, 'https://example.com/groups').groups).toEqual(['b']);
    expect(groupsOf({ _claim_names: { 'https://example.com/groups': 'src1' } }, 'https://example.com/groups')).toEqual({
      groups: [],
      ...leftOut,
    });
  });
});

const ISSUER = 'https://id.example.com/tenant';
const identified = (claims: Claims, trustEmail = false) => identityOf({ sub: 's1', ...claims }, { issuer: ISSUER, trustEmail });

function rulesOf(allowed: readonly string[], more: Partial<LoginRules> = {}): LoginRules {
  return { allowed: allowed.map((text) => allowedRuleOf(text)!), adminEmails: [], ...more };
}

/** As a login does it. */
function loginWith(rules: LoginRules, claims: Claims, trustEmail = false) {
  const user = { ...identified(claims, trustEmail), matched: matchedRules(rules, { sub: 's1', ...claims }) };
  return { isAllowed: notAllowedReason(rules, user) === undefined, role: roleOf(rules, user, false) };
}

describe('an e-mail address', () => {
  it.each([
    [true, false, true],
    ['true', false, true],
    [false, false, false],
    ['false', false, false],
    [1, false, false],
    ['TRUE', false, false],
    [undefined, false, false],
    [undefined, true, true],
    [false, true, false],
    ['false', true, false],
    [null, true, false],
  ])('with email_verified %j (trusted: %s) is verified: %s', (email_verified, trustEmail, emailVerified) => {
    expect(identified({ email: 'Bob@Example.com', email_verified }, trustEmail)).toMatchObject({ email: 'bob@example.com', emailVerified });
  });

  it.each([
    undefined,
    7,
    '',
    'bob',
    'bob@a@example.com',
    'bob @example.com',
    'bob@example.com\u202e',
    'bob@\u212aexample.com',
    `${'b'.repeat(250)}@example.com`,
    ['bob@example.com'],
  ])('%j is none, so that the subject stands for the user, unverified', (email) => {
    expect(identified({ email, email_verified: true }, true)).toMatchObject({ email: 's1@id.example.com', emailVerified: false });
  });
});

describe('an address that the issuer denies', () => {
  it.each([
    [false, true],
    ['false', true],
    [0, true],
    [true, undefined],
    [undefined, undefined],
    [null, undefined],
  ])('with email_verified %j is denied: %s, and only then no rule lets its person in', (email_verified, emailDenied) => {
    const claims = { email: 'bob@example.com', email_verified };
    expect(identified(claims).emailDenied).toBe(emailDenied);
    expect(loginWith(rulesOf(['any']), claims).isAllowed).toBe(emailDenied === undefined);
  });

  it('is none where the subject stands for the person', () => {
    expect(identified({ email_verified: false }).emailDenied).toBeUndefined();
  });
});

it.each([
  [undefined, 'https://id.example.com', true],
  ['https://id.example.com', 'https://id.example.com/', true],
  ['https://ID.example.com', 'https://id.example.com', true],
  ['https://id.example.com', 'https://id.example.com/other', false],
  ['https://id.example.com', 'https://other.example.com', false],
])('at the issuer %s a user of %s is known: %s', (issuer, ofUser, expected) => {
  expect(isOfIssuer({ issuer }, { issuer: ofUser })).toBe(expected);
});

it.each([
  ['groups', 'admins', { groups: ['users', 'admins'] }, true],
  ['groups', 'admins', { groups: 'admins' }, true],
  ['groups', 'admins', { groups: 'admins,users' }, false],
  ['groups', 'admins', { groups: { admins: true } }, false],
  ['groups', 'admins', {}, false],
  ['realm_access.roles', 'tally', { realm_access: { roles: ['tally'] } }, true],
  ['realm_access.roles', 'tally', { realm_access: [{ roles: ['tally'] }] }, false],
  ['https://example.com/groups', 'a', { 'https://example.com/groups': ['a'] }, true],
  ['a.b', 'whole', { 'a.b': 'whole', a: { b: 'inner' } }, true],
  ['level', '3', { level: 3 }, true],
  ['staff', 'true', { staff: true }, true],
  ['constructor.name', 'Object', {}, false],
  ['toString', 'x', {}, false],
  ['__proto__.polluted', 'x', {}, false],
  ['groups.length', '1', { groups: ['a'] }, false],
])('a rule on a claim: %s=%s on %j applies: %s', (path, value, claims, applies) => {
  expect(claimHas(claims, path, value)).toBe(applies);
});

describe('who may log in', () => {
  it.each([
    [['any'], {}, true],
    [['domain=example.com'], { email: 'a@example.com', email_verified: true }, true],
    [['domain=Example.COM'], { email: 'A@EXAMPLE.com', email_verified: true }, true],
    [['domain=example.com'], { email: 'a@example.com' }, false],
    [['domain=example.com'], { email: 'a@sub.example.com', email_verified: true }, false],
    [['domain=example.com'], { email: 'a@notexample.com', email_verified: true }, false],
    [['domain=example.com'], { email: '@example.com', email_verified: true }, false],
    [['domain=example.com', 'claim:groups=tally'], { groups: ['tally'] }, true],
    [['claim:groups=tally'], { groups: ['tally2'] }, false],
  ])('%j with %j: %s', (allowed, claims, expected) => {
    expect(loginWith(rulesOf(allowed), claims).isAllowed).toBe(expected);
  });

  it('the address of a subject without an address satisfies no rule', () => {
    const rules = rulesOf(['domain=id.example.com'], { adminEmails: ['s1@id.example.com'] });
    expect(loginWith(rules, { email_verified: true }, true)).toEqual({ isAllowed: false, role: { role: 'user', roleSource: 'none' } });
  });

  it.each(['', 'all', 'domain=', 'domain=localhost', 'domain=a b.c', 'claim:', 'claim:groups', 'claim:=x', 'claim:groups=', 'ANY'])(
    '%j is no rule',
    (text) => expect(allowedRuleOf(text)).toBeUndefined(),
  );
});

const rules = rulesOf(['any'], { adminClaim: claimRuleOf('groups=admins'), adminEmails: ['root@example.com'] });
it.each([
  [
    { email: 'Root@Example.com', email_verified: 'true' },
    { role: 'admin', roleSource: 'rule' },
  ],
  [
    { email: 'root@example.com', email_verified: false },
    { role: 'user', roleSource: 'none' },
  ],
  [{ groups: ['admins'] }, { role: 'admin', roleSource: 'rule' }],
  [{ groups: ['users'] }, { role: 'user', roleSource: 'none' }],
])('the role of %j is %j', (claims, role) => {
  expect(loginWith(rules, claims).role).toEqual(role);
});

it('a grant is found by the verified address or by the subject, and by nothing else', () => {
  const names = (user: Parameters<typeof appointeesOf>[0]) => appointeesOf(user).map(appointmentNameOf);
  const byEmail = appointmentNameOf({ email: 'Bob@example.com' });
  expect(names({ email: 'bob@example.com', emailVerified: true, subject: 's1' })).toContain(byEmail);
  expect(names({ email: 'bob@example.com', emailVerified: false, subject: 's1' })).not.toContain(byEmail);
  expect(names({ email: 'x@example.com', emailVerified: true, subject: 'bob@example.com' })).not.toContain(byEmail);
  expect(names({ email: 'x@example.com', emailVerified: false, subject: 's1' })).toContain(appointmentNameOf({ sub: 's1' }));
});

it('the same subject of two issuers is two users, with ids of 22 digits', () => {
  const ids = [userIdOf('https://a', 'b'), userIdOf('https://ab', ''), userIdOf('https://a', 'c'), userIdOf('https://a', 'b')];
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id).toMatch(/^[0-9A-Za-z]{22}$/);
});

it.each([
  ['https://accounts.google.com', true],
  ['https://login.microsoftonline.com/common/v2.0', true],
  ['https://login.microsoftonline.com/Organizations/v2.0', true],
  ['https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0', true],
  ['https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0', false],
  ['https://id.example.com', false],
])('everyone can have an account at %s: %s', (issuer, isPublic) => {
  expect(isPublicIssuer(issuer)).toBe(isPublic);
});
