import { expect, it } from 'vitest';
import { welcome } from '../../src/demo/welcome.ts';
import { parseSettings } from '../../src/settings/settings.ts';

it('the welcome of the embedded mode shows a login where callers must log in, and a search where they need not', () => {
  const shown = (env: Readonly<Record<string, string>>): string => {
    const parsed = parseSettings(env, () => expect.fail('no setting names a file'));
    if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
    const places = { endpoint: 'http://s3', bucket: 'demo', healthUrl: 'http://health', controlUrl: 'http://control' };
    return welcome(parsed.settings, places);
  };
  const identity = { TALLY_OIDC_ISSUER: 'http://127.0.0.1:1', TALLY_OIDC_CLIENT_ID: 'tally', TALLY_OIDC_ALLOWED: 'any' };
  expect(shown(identity)).toContain('  http://control/login/authorize?return_to=%2Fv1%2Fobjects%3Fq%3Dreadme ');
  expect(shown(identity)).not.toContain("curl 'http://control");
  expect(shown({})).toContain("curl 'http://control/v1/objects?q=readme'");
});
