/** The groups that an issuer states: input, which may have any form. */
import { describe, expect, it } from 'vitest';
import { groupsOf } from '../../src/identity/claims.rules.ts';

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
