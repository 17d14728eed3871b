import { describe, expect, it } from 'vitest';
import { settingGroups, settingsSchema } from '../../src/settings/settings.ts';

describe('docs/reference/settings.md', () => {
  it('has every setting, in one group', () => {
    const grouped = Object.values(settingGroups).flatMap((group) => Object.keys(group));
    expect(grouped.toSorted()).toEqual(Object.keys(settingsSchema.shape).toSorted());
  });

  it('describes every setting in sentences that fit into a table', () => {
    for (const [name, { description }] of Object.entries(settingsSchema.shape)) {
      expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z/][^|\n]+\.$/)]);
    }
  });
});
