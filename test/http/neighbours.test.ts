/** What the neighbours of a caller behind one address may do to it. */
import { expect, it } from 'vitest';
import { createFailedAttempts } from '../../src/pipeline/identity/failed-attempts.ts';
import { createAbuseLimits } from '../../src/pipeline/identity/limits.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { bearer, jsonOf, startHttpWorld } from '../support/identity/http-world.ts';
import { logIn } from '../support/identity/world.ts';

it('credentials that failed before at its address do not keep a program from refreshing its session', async () => {
  const clock = createFakeClock();
  const parts = { audit: createMemoryAudit(), clock, telemetry: createFakeTelemetry() };
  const attempts = createFailedAttempts({ ...parts, limits: createAbuseLimits({ clock }), host: 'registry' });
  const world = await startHttpWorld({ attempts });
  try {
    const { access, refresh } = await logIn(world);
    await world.clock.advance(600_000);
    const session = (token: string) => world.send('GET', '/v1/session', { headers: bearer(token) });
    const guessed = `qs_${'0'.repeat(65)}`;
    for (let guess = 0; guess < 20; guess += 1) expect((await session(guessed)).status).toBe(401);
    expect(jsonOf(await session(guessed))).toMatchObject({ status: 429, code: 'request.too-many-failures' });
    // the program learns that its token has ended, and not that others have guessed
    expect(jsonOf(await session(access))).toMatchObject({ status: 401, code: 'authentication.failed' });
    const tokens = (token: string) =>
      world.send('POST', '/login/token', {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ grant_type: 'refresh_token', refresh_token: token }),
      });
    const { access_token: next } = jsonOf(await tokens(refresh));
    expect((await session(String(next))).status).toBe(200);
    expect(jsonOf(await tokens(`qr_${'0'.repeat(65)}`))).toMatchObject({ code: 'request.too-many-failures' });
  } finally {
    await world.close();
  }
});
