import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { textOf } from '../docs/pages.ts';

describe('the version', () => {
  it('is that of package.json wherever a file must repeat it', () => {
    const { version } = packageJson;
    expect(textOf('Dockerfile')).toContain(`image.version="${version}"`);
    expect(textOf('CHANGELOG.md')).toContain(`## ${version} — `);
    expect(textOf('package-lock.json').match(/"version": "([^"]+)"/)?.[1]).toBe(version);
    expect(textOf('clients/python/tally_sdk/_version.py')).toContain(`VERSION = "${version}"`);
    for (const [, tag] of textOf('config/scaling/workloads.yaml').matchAll(/image: tally:(\S+)/g)) expect(tag).toBe(version);
  });

  it('is one that the clients of this API accept: 1.67 or higher', () => {
    const [major = 0, minor = 0] = packageJson.version.split('.').map(Number);
    expect(major > 1 || (major === 1 && minor >= 67)).toBe(true);
  });
});
