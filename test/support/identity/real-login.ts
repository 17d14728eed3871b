/** A login at running registries: the way of a browser through a real issuer, and what a program does with its code. */
import { challengeOf } from '../../../src/domain/identity/tokens.ts';
import { get } from './browser.ts';
import { jsonOf } from './http-world.ts';
import type { StartedProvider } from './provider.ts';
import { REDIRECT, VERIFIER } from './world.ts';

const json = { 'content-type': 'application/json' };
const client = {
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
  state: 'mine',
  redirect_uri: REDIRECT,
  machine: 'laptop',
};

interface Way {
  readonly provider: Pick<StartedProvider, 'authorize'>;
  /** The address that the issuer knows. */
  readonly publicUrl: string;
  /** Where the registries really are. Each step is served by the next of them. */
  readonly urls: readonly string[];
}

/** Resolves with the token. */
export async function logInAt({ provider, publicUrl, urls }: Way): Promise<string> {
  let step = 0;
  const next = () => urls[step++ % urls.length]!;
  const cookies = new Map<string, string>();
  const begun = await get(`${next()}/login/authorize?${new URLSearchParams(client).toString()}`, { cookies });
  const back = await provider.authorize(begun.location ?? '');
  await get(back.replace(publicUrl, next()), { cookies });
  const page = await get(`${next()}/login/consent`, { cookies });
  const login = /data-login="([^"]+)"/.exec(page.text)?.[1];
  const headers = { ...json, 'x-tally-csrf': '1', origin: publicUrl };
  const decided = await get(`${next()}/login/consent`, { cookies, method: 'POST', headers, body: JSON.stringify({ login, allow: true }) });
  const code = new URL(String(jsonOf(decided)['redirect'])).searchParams.get('code');
  const body = JSON.stringify({ grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: REDIRECT });
  return String(jsonOf(await get(`${next()}/login/token`, { method: 'POST', headers: json, body }))['access_token']);
}
