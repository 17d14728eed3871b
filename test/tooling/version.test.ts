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
    expect(textOf('config/helm/tally/Chart.yaml').match(/^(version|appVersion): .*$/gm)).toEqual([
      `version: ${version}`,
      `appVersion: ${version}`,
    ]);
    expect(new Set(textOf('docs/guides/systemd.md').match(/tally-\d[\d.]*\d/g))).toEqual(new Set([`tally-${version}`]));
    expect(textOf('docs/guides/kubernetes.md').match(/tally:\d\S+/g)).toEqual([`tally:${version}`, `tally:${version}`]);
  });

  it('is published with the same home everywhere', () => {
    const [home = ''] = packageJson.homepage.split('#');
    expect(packageJson.repository.url).toBe(`git+${home}.git`);
    const texts = ['clients/python/pyproject.toml', 'clients/python/README.md'].map(textOf).join('\n');
    const addresses = [...texts.matchAll(/https:\/\/github\.com\/[\w-]+\/[\w-]+/g)].map(([address]) => address);
    expect(new Set(addresses)).toEqual(new Set([home]));
  });
});
