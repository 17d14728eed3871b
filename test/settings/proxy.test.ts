import { describe, expect, it } from 'vitest';
import { parseProxy, withoutProxyFor } from '../../src/settings/environment.ts';

const LOOPBACK = 'localhost,127.0.0.1,::1,[::1]';

describe('the proxy', () => {
  it.each([
    ['nothing is set', {}, undefined],
    ['the variables are empty', { HTTPS_PROXY: '', http_proxy: ' ' }, undefined],
    ['only exceptions are set', { NO_PROXY: '*' }, undefined],
    ['only other variables are set', { ALL_PROXY: 'socks5://proxy:1080' }, undefined],
    ['one kind is set', { HTTPS_PROXY: 'http://proxy:3128' }, { https_proxy: 'http://proxy:3128', no_proxy: LOOPBACK }],
    [
      'both kinds and exceptions are set',
      { HTTPS_PROXY: 'https://user:p%40ss@proxy', HTTP_PROXY: 'http://other:80', NO_PROXY: '.internal,10.0.0.1' },
      { https_proxy: 'https://user:p%40ss@proxy', http_proxy: 'http://other:80', no_proxy: `.internal,10.0.0.1,${LOOPBACK}` },
    ],
    [
      'both cases are set',
      { HTTPS_PROXY: 'http://upper', https_proxy: 'http://lower', NO_PROXY: 'upper', no_proxy: 'lower' },
      { https_proxy: 'http://lower', no_proxy: `lower,${LOOPBACK}` },
    ],
    ['it has no scheme', { HTTPS_PROXY: 'proxy:3128' }, { https_proxy: 'http://proxy:3128', no_proxy: LOOPBACK }],
  ])('is read where %s', (_, environment, proxy) => {
    expect(parseProxy(environment)).toEqual({ ok: true, proxy });
  });

  it.each(['socks5://user:secret@proxy:1080', 'http://', 'http://secret:50%@proxy', 'http://pro xy:80'])(
    'is refused where it cannot be used, and not repeated, because it can contain a password: %s',
    (value) => {
      const result = parseProxy({ HTTPS_PROXY: value, http_proxy: value });
      expect(result.ok ? [] : result.mistakes).toEqual([
        expect.stringMatching(/^HTTPS_PROXY: must be the http or https URL of a proxy/),
        expect.stringMatching(/^http_proxy: must be the http or https URL of a proxy/),
      ]);
      expect(JSON.stringify(result)).not.toContain('secret');
    },
  );

  it('can leave out one more host', () => {
    expect(withoutProxyFor('10.0.0.5', undefined)).toBeUndefined();
    expect(withoutProxyFor('10.0.0.5', { https_proxy: 'http://proxy', no_proxy: 'a' })).toEqual({
      https_proxy: 'http://proxy',
      no_proxy: 'a,10.0.0.5',
    });
  });
});
