/** What the neighbours of a caller behind one address may do to it. */
import { expect, it } from 'vitest';
import { createFailedAttempts } from '../../src/identity/audit.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { bearer, jsonOf, openHttpWorld } from '../support/identity/http-world.ts';
import { logIn, VERIFIER } from '../support/identity/world.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';

it('Fix: every credential that is not valid gets the one answer, however many failed before at its address', async () => {
  const clock = createFakeClock();
  const attempts = createFailedAttempts({ audit: createMemoryAudit(), clock, telemetry: createFakeTelemetry(), host: 'registry' });
  const world = await openHttpWorld({ identity: { attempts } });
  const { token: ended } = await logIn(world);
  await world.clock.advance(7 * 86_400_000);
  const { token: valid } = await logIn(world);
  const session = (token: string) => world.send('GET', '/v1/session', { headers: bearer(token) });
  const refusal = { status: 401, code: 'authentication.failed', detail: 'Authentication failed. Check your credentials or API key.' };
  for (let guess = 0; guess < 50; guess += 1) {
    for (const token of [`qs_${'0'.repeat(43)}`, newKeySecret(), 'qk_short', 'a b', ended])
      expect(jsonOf(await session(token))).toMatchObject(refusal);
  }
  const body = JSON.stringify({ grant_type: 'authorization_code', code: '0'.repeat(44), code_verifier: VERIFIER });
  const redeem = () => world.send('POST', '/login/token', { headers: { 'content-type': 'application/json' }, body });
  const ungranted = { status: 400, code: 'login.invalid-grant', error: 'invalid_grant' };
  for (let guess = 0; guess < 50; guess += 1) expect(jsonOf(await redeem())).toMatchObject(ungranted);
  expect((await session(valid)).status).toBe(200);
});

it('one address has eight logins that wait for the issuer, all addresses have 64, and what is answered makes room', async () => {
  const world = await openHttpWorld({ trustedProxies: ['127.0.0.1/32'] });
  const answer = Promise.withResolvers<void>();
  const answering = { ...world.issuer };
  let asks = () => undefined as void;
  world.issuer.authorizationUrl = async (...asked) => {
    asks();
    await answer.promise;
    return answering.authorizationUrl(...asked);
  };
  const begin = (network: number) =>
    world.send('GET', '/login/authorize?return_to=/', { headers: { 'x-forwarded-for': `198.51.${network}.7` } });
  const overloaded = { status: 503, code: 'request.overloaded' };
  const begun: Promise<{ readonly status: number }>[] = [];
  for (let network = 0; network < 8; network += 1) {
    for (let login = 0; login < 8; login += 1) {
      const waits = new Promise<void>((resolve) => (asks = resolve));
      begun.push(begin(network));
      await waits;
    }
    expect(jsonOf(await begin(network))).toMatchObject(overloaded);
  }
  expect(jsonOf(await begin(100))).toMatchObject({ ...overloaded, detail: expect.stringContaining('64 logins') });
  answer.resolve();
  expect(new Set((await Promise.all(begun)).map(({ status }) => status))).toEqual(new Set([302]));
  expect((await begin(0)).status).toBe(302);
});
