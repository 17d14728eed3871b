import { expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createReadiness, createStoreAccess } from '../../src/observing/readiness.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const broken: { search?: FaultError; audit?: FaultError } = {};
  const answer = async (error: FaultError | undefined): Promise<number> => {
    if (error !== undefined) throw error;
    return 0;
  };
  const access = createStoreAccess({
    objects: { count: () => answer(broken.search) },
    audit: { probe: async () => void (await answer(broken.audit)) },
    clock,
    telemetry,
  });
  const { signal } = new AbortController();
  return { clock, telemetry, broken, look: () => access.look(signal), read: () => createReadiness(['http'], access.checks).read() };
}

const denied = new FaultError('index.denied', 'no permissions for [indices:data/…]');

it('Fix: the role http is not ready while the audit or all searches are denied, and is so at the next look once they are not', async () => {
  const { broken, look, read, telemetry } = setUp();
  expect(read()).toMatchObject({ ready: true, checks: { search: { status: 'unknown' }, audit: { status: 'unknown' } } });
  await look();
  expect(read()).toEqual({ ready: true, roles: { http: { ready: true } }, checks: { search: { status: 'ok' }, audit: { status: 'ok' } } });
  for (const part of ['search', 'audit'] as const) {
    broken[part] = denied;
    await look();
    expect(read()).toMatchObject({
      ready: false,
      checks: { [part]: { status: 'failed', code: 'index.denied', advice: expect.any(String) } },
    });
    delete broken[part];
    await look();
    expect(read().ready).toBe(true);
  }
  expect(telemetry.recorded('requestFailed').map(([operation]) => operation)).toEqual(['search all buckets', 'store an audit record']);
});

it('warns while the index of one bucket keeps all buckets from being searched at once', async () => {
  const { broken, look, read } = setUp();
  broken.search = new FaultError('bucket.index-blocked', 'index [tally-objects-secret-bucket] closed');
  await look();
  expect(JSON.stringify(read())).not.toContain('secret-bucket');
  expect(read()).toMatchObject({
    ready: true,
    checks: { search: { status: 'warning', code: 'bucket.index-blocked' }, audit: { status: 'ok' } },
  });
});

it('takes no silence of the store for a refusal, and does not know later than two minutes after its last look', async () => {
  const { clock, broken, look, read } = setUp();
  await look();
  broken.search = new FaultError('index.unreachable', 'no answer');
  await expect(look()).rejects.toThrow(broken.search);
  expect(read()).toMatchObject({ checks: { search: { status: 'ok' } } });
  await clock.advance(121_000);
  expect(read()).toMatchObject({ ready: true, checks: { search: { status: 'unknown' }, audit: { status: 'unknown' } } });
});
