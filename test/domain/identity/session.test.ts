import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  acceptsAccess,
  acceptsCookie,
  ACCESS_MS,
  BROWSER_MS,
  isOver,
  newBrowserSession,
  newClientSession,
  refreshed,
  sessionIdOf,
  sessionRecordSchema,
  type SessionRecord,
} from '../../../src/domain/identity/session.ts';
import { challengeOf, familyOf } from '../../../src/domain/identity/tokens.ts';

const DAY_MS = 86_400_000;
const login = (nowMs = 0) => newClientSession({ userId: 'u', role: 'user', nowMs, machine: 'laptop' });

/** A family as its callers see it. */
function play() {
  const first = login();
  let { record } = first;
  return {
    first,
    get record() {
      return record;
    },
    refresh(token: string, nowMs: number) {
      const result = refreshed(record, token, nowMs);
      if (result.kind === 'refreshed') record = sessionRecordSchema.parse(JSON.parse(JSON.stringify(result.record)));
      return result;
    },
  };
}

function tokensOf(result: ReturnType<typeof refreshed>): { readonly access: string; readonly refresh: string } {
  if (result.kind !== 'refreshed') throw new Error(result.kind);
  return result;
}

describe('the tokens of a session', () => {
  it('have their prefixes, name one record, and are not in it', () => {
    const { record, access, refresh } = login();
    expect(access).toMatch(/^qs_[0-9A-Za-z]{65}$/);
    expect(refresh).toMatch(/^qr_[0-9A-Za-z]{65}$/);
    expect([sessionIdOf('access', access), sessionIdOf('refresh', refresh)]).toEqual([record.id, record.id]);
    expect(sessionIdOf('refresh', access)).toBeUndefined();
    const stored = JSON.stringify(record);
    for (const secret of [access.slice(3, 25), access.slice(25), refresh.slice(25)]) expect(stored).not.toContain(secret);
  });

  it.each([
    '',
    'qs_',
    'qk_' + 'a'.repeat(65),
    `qs_${'a'.repeat(64)}`,
    `qs_${'a'.repeat(66)}`,
    `qs_${'a'.repeat(64)}\n`,
    ` qs_${'a'.repeat(65)}`,
  ])('%j is none', (text) => expect(familyOf('access', text)).toBeUndefined());

  it('are valid for ten minutes, and not in another session', () => {
    const { record, access } = login();
    expect([0, ACCESS_MS - 1, ACCESS_MS].map((nowMs) => acceptsAccess(record, access, nowMs))).toEqual([true, true, false]);
    expect(acceptsAccess(login().record, access, 0)).toBe(false);
  });

  it('of a browser are one cookie, for half a day', () => {
    const { record, cookie } = newBrowserSession({ userId: 'u', role: 'user', nowMs: 0 });
    expect(cookie).toMatch(/^qb_/);
    expect([0, BROWSER_MS - 1, BROWSER_MS].map((nowMs) => acceptsCookie(record, cookie, nowMs))).toEqual([true, true, false]);
    expect(acceptsCookie(record, `${cookie.slice(0, -1)}${cookie.endsWith('a') ? 'b' : 'a'}`, 0)).toBe(false);
    expect(acceptsCookie(login().record, cookie, 0)).toBe(false);
  });
});

describe('a refresh', () => {
  it('gives new tokens; the access tokens before stay valid for their time', () => {
    const family = play();
    const next = tokensOf(family.refresh(family.first.refresh, 1_000));
    expect(next.refresh).not.toBe(family.first.refresh);
    expect(acceptsAccess(family.record, next.access, 1_000)).toBe(true);
    expect(acceptsAccess(family.record, family.first.access, 1_000)).toBe(true);
    expect(family.record.live).toHaveLength(1);
  });

  it('of a used token has another successor within 30 s, and both are live', () => {
    const family = play();
    const one = tokensOf(family.refresh(family.first.refresh, 0));
    const two = tokensOf(family.refresh(family.first.refresh, 29_999));
    expect(two.refresh).not.toBe(one.refresh);
    expect(tokensOf(family.refresh(one.refresh, 600_000)).refresh).toBeDefined();
    expect(tokensOf(family.refresh(two.refresh, 700_000)).refresh).toBeDefined();
  });

  it('of a token that was used 30 s ago ends the family', () => {
    const family = play();
    family.refresh(family.first.refresh, 0);
    expect(family.refresh(family.first.refresh, 30_000)).toEqual({ kind: 'reused' });
  });

  it('of a token that is not used for 30 days is refused, without a suspicion', () => {
    const family = play();
    expect(family.refresh(family.first.refresh, 30 * DAY_MS)).toEqual({ kind: 'idle' });
    expect(family.refresh(family.first.refresh, 30 * DAY_MS - 1).kind).toBe('refreshed');
  });

  it('is refused 90 days after the login, however often there was one', () => {
    const family = play();
    let token = family.first.refresh;
    for (let day = 20; day < 90; day += 20) token = tokensOf(family.refresh(token, day * DAY_MS)).refresh;
    expect(family.refresh(token, 90 * DAY_MS)).toEqual({ kind: 'idle' });
    expect(isOver(family.record, 90 * DAY_MS)).toBe(true);
  });

  it('of any number of processes at the same moment keeps each of them logged in, with at most eight live tokens', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 40 }), fc.array(fc.nat(29_000), { minLength: 40, maxLength: 40 }), (processes, delays) => {
        const family = play();
        const moments = delays.slice(0, processes).toSorted((a, b) => a - b);
        const all = moments.map((atMs) => tokensOf(family.refresh(family.first.refresh, atMs)));
        expect(family.record.live.length).toBeLessThanOrEqual(8);
        // each continues with what it received, the last one first
        for (const { access } of all.slice(-32)) expect(acceptsAccess(family.record, access, 30_000)).toBe(true);
        const answers = all.toReversed().map(({ refresh }) => family.refresh(refresh, 100_000).kind);
        expect(new Set(answers)).toEqual(new Set(['refreshed']));
      }),
      { numRuns: 50 },
    );
  });

  it('of several lines at different times never suspects one of them', () => {
    // each process keeps its token in memory and refreshes when it likes; each delay is between two refreshes of any of them
    const steps = fc.array(fc.record({ process: fc.nat(7), afterMs: fc.integer({ min: 1, max: DAY_MS / 4 }) }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (all) => {
        const family = play();
        const tokens = Array.from({ length: 8 }, () => tokensOf(family.refresh(family.first.refresh, 0)).refresh);
        let nowMs = 0;
        for (const { process, afterMs } of all) {
          nowMs += afterMs;
          const next = family.refresh(tokens[process]!, nowMs);
          expect(next.kind).toBe('refreshed');
          tokens[process] = tokensOf(next).refresh;
          expect(family.record.live.length).toBeLessThanOrEqual(8);
          expect(family.record.access.length).toBeLessThanOrEqual(32);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('with a stolen token ends the family at the latest when its owner and the thief have both used it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 20 }),
        fc.integer({ min: 30_000, max: DAY_MS }),
        fc.boolean(),
        (stolenAt, laterMs, thiefFirst) => {
          const family = play();
          let nowMs = 0;
          let token = family.first.refresh;
          for (let turn = 0; turn < stolenAt; turn += 1) token = tokensOf(family.refresh(token, (nowMs += 600_000))).refresh;
          const [owner, thief] = [token, token];
          expect(family.refresh(thiefFirst ? thief : owner, nowMs).kind).toBe('refreshed');
          expect(family.refresh(thiefFirst ? owner : thief, nowMs + laterMs)).toEqual({ kind: 'reused' });
        },
      ),
    );
  });

  it('with an invented token of the family ends it too', () => {
    const family = play();
    const invented = `${family.first.refresh.slice(0, 25)}${'0'.repeat(43)}`;
    expect(family.refresh(invented, 0)).toEqual({ kind: 'reused' });
  });

  it('never grows the record without end, however fast a program refreshes', () => {
    const family = play();
    let token = family.first.refresh;
    for (let turn = 0; turn < 300; turn += 1) token = tokensOf(family.refresh(token, turn)).refresh;
    const { live, spent, access }: SessionRecord = family.record;
    expect([live.length, spent.length, access.length]).toEqual([1, 64, 32]);
  });
});

it('the challenge is that of RFC 7636, appendix B', () => {
  expect(challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});
