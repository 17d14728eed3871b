import { describe, expect, it } from 'vitest';
import { ruleNameOf } from '../../src/connect/names.rules.ts';
import { INSTALLATION } from '../support/fakes/aws-parts.ts';

describe('the name of a rule', () => {
  it('fits, and differs by bucket, source and installation', () => {
    const long = ['a'.repeat(63), `${'a'.repeat(62)}b`, 'OLD_Name', 'photos'];
    const names = long.flatMap((bucket) => (['eventbridge', 'routed'] as const).map((source) => ruleNameOf(INSTALLATION, bucket, source)));
    expect(new Set([...names, ruleNameOf('ffffffff', 'photos', 'routed')]).size).toBe(9);
    for (const name of names) expect(name).toMatch(/^[.\w-]{1,64}$/);
  });
});
