import { describe, expect, it } from 'vitest';
import type { ConnectionCheck } from '../../src/records/bucket.ts';
import type { Finding } from '../../src/connect/finding.rules.ts';
import { afterCheck, isCheckDue } from '../../src/connect/watch.rules.ts';

const HOUR_MS = 3_600_000;
const NOW = 1_800_000_000_000;

const finding = (severity: Finding['severity']): Finding => ({
  code: `connect.${severity}`,
  severity,
  what: 'w',
  why: 'y',
  fix: 'f',
  blocks: false,
});
const applied = { state: 'applied', changedAtMs: NOW - 10 * HOUR_MS } as const;

function checked(state: ConnectionCheck['state'], more: Partial<ConnectionCheck> = {}): ConnectionCheck {
  return { state, atMs: NOW - HOUR_MS, sinceMs: NOW - HOUR_MS, findings: [], ...more };
}

describe('a check of a connection is due', () => {
  const due = (last: ConnectionCheck | undefined, connection: Parameters<typeof isCheckDue>[1], nowMs = NOW) =>
    isCheckDue(last === undefined ? {} : { connectionCheck: last }, connection, nowMs);

  it('at once, then every hour', () => {
    expect(due(undefined, applied)).toBe(true);
    expect(due(checked('ok', { atMs: NOW - HOUR_MS + 1 }), applied)).toBe(false);
    expect(due(checked('ok'), applied)).toBe(true);
  });

  it.each(['broken', 'unknown'] as const)(
    'Fix: after as long as it has been %s, from a minute to an hour, since that is shown until then',
    (state) => {
      const dueAfter = (lastedMs: number): number | undefined =>
        [59_999, 60_000, 299_999, 300_000, HOUR_MS - 1, HOUR_MS].find((ms) =>
          due(checked(state, { atMs: NOW - ms, sinceMs: NOW - ms - lastedMs }), applied),
        );
      expect([0, 60_000, 300_000, 5 * HOUR_MS].map(dueAfter)).toEqual([60_000, 60_000, 300_000, HOUR_MS]);
    },
  );

  it('not while parts are being made by an apply, or taken away', () => {
    expect(due(undefined, { state: 'applying', changedAtMs: NOW - 1_000 })).toBe(false);
    expect(due(undefined, { state: 'applying', changedAtMs: NOW - HOUR_MS })).toBe(true);
    expect(due(undefined, { state: 'removing' })).toBe(false);
  });

  it('when a notification was paused or resumed since', () => {
    const last = checked('ok', { atMs: NOW - 1 });
    expect(due(last, { ...applied, state: 'paused' })).toBe(true);
    expect(due({ ...last, state: 'paused' }, { ...applied, state: 'paused' })).toBe(false);
    expect(due({ ...last, state: 'paused' }, applied)).toBe(true);
  });

  it('although a clock was set back by days', () => {
    expect(due(checked('ok', { atMs: NOW + 3 * HOUR_MS }), applied)).toBe(true);
  });
});

describe('after a check', () => {
  const checkedAfter = (
    before: ConnectionCheck | undefined,
    findings: readonly Finding[],
    connection: Parameters<typeof isCheckDue>[1] = applied,
  ) => afterCheck(before, { findings, passesBoth: false, isProven: true, connection, nowMs: NOW });

  it('a connection that breaks opens a gap at once, and one more when it is in order again', () => {
    const first = checkedAfter(checked('ok'), [finding('degraded'), finding('broken')]);
    expect(first).toMatchObject({ gap: 'lost', check: { state: 'broken', sinceMs: NOW, brokenSinceMs: NOW } });
    const second = checkedAfter(first.check, [finding('broken')]);
    expect(second.gap).toBeUndefined();
    expect(checkedAfter(second.check, [])).toEqual({
      gap: 'restored',
      isReadable: false,
      check: { state: 'ok', atMs: NOW, sinceMs: NOW, findings: [] },
    });
  });

  it('that stays broken opens its gap once, also while it cannot be read, and a last one when it is in order', () => {
    let check = checked('ok');
    const gaps: string[] = [];
    for (let hours = 0; hours <= 72; hours += 1) {
      const findings = [hours % 5 === 4 ? finding('unknown') : finding('broken')];
      const after = afterCheck(check, { passesBoth: false, isProven: true, findings, connection: applied, nowMs: NOW + hours * HOUR_MS });
      ({ check } = after);
      if (after.gap !== undefined) gaps.push(`${after.gap} ${hours}`);
    }
    expect(gaps).toEqual(['lost 0']);
    const after = afterCheck(check, { passesBoth: false, isProven: true, findings: [], connection: applied, nowMs: NOW + 73 * HOUR_MS });
    expect(after.gap).toBe('restored');
  });

  it('opens a last gap also after an apply, which others may have completed later', () => {
    const broken = checked('broken', { brokenSinceMs: NOW - HOUR_MS });
    expect(checkedAfter(broken, [], { state: 'applied', changedAtMs: NOW - 1_000 }).gap).toBe('restored');
  });

  it('what cannot be read opens none, and hides none', () => {
    expect(checkedAfter(checked('ok'), [finding('unknown')]).gap).toBeUndefined();
    const hidden = checkedAfter(checked('broken', { brokenSinceMs: NOW - HOUR_MS }), [finding('unknown')]);
    expect(hidden).toMatchObject({ check: { state: 'unknown', brokenSinceMs: NOW - HOUR_MS } });
    expect(checkedAfter(hidden.check, []).gap).toBe('restored');
  });

  it('a pause is no loss, and its time is that of the pause', () => {
    const paused = checkedAfter(checked('ok'), [finding('broken')], { state: 'paused', pausedAtMs: NOW - 5 });
    expect(paused).toMatchObject({ check: { state: 'paused', sinceMs: NOW - 5 } });
    expect(paused.gap).toBeUndefined();
  });

  it('a bucket for which nothing was made is shown, and opens no gap', () => {
    expect(
      afterCheck(checked('ok'), { passesBoth: false, isProven: false, findings: [finding('broken')], connection: undefined, nowMs: NOW })
        .gap,
    ).toBeUndefined();
  });

  it('keeps since when, and the first findings only', () => {
    const { check } = checkedAfter(
      checked('degraded'),
      Array.from({ length: 9 }, () => finding('degraded')),
    );
    expect(check).toMatchObject({ sinceMs: NOW - HOUR_MS, atMs: NOW });
    expect(check.findings).toHaveLength(3);
  });
});
