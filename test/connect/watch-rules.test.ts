import { describe, expect, it } from 'vitest';
import type { Connection, ConnectionCheck } from '../../src/records/bucket.ts';
import { spec } from '../support/fakes/aws-parts.ts';
import type { Finding } from '../../src/connect/finding.rules.ts';
import { afterCheck, isCheckDue } from '../../src/connect/watch.ts';

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
const applied = connected('applied', 10 * HOUR_MS);

function connected(state: Connection['state'], sinceMs: number): Connection {
  return { ...spec, state, made: [], changedAtMs: NOW - sinceMs };
}

function checked(state: ConnectionCheck['state'], more: Partial<ConnectionCheck> = {}): ConnectionCheck {
  return { state, atMs: NOW - HOUR_MS, sinceMs: NOW - HOUR_MS, findings: [], ...more };
}

describe('a check of a connection is due', () => {
  const due = (last: ConnectionCheck | undefined, connection: Connection) =>
    isCheckDue({ connection, ...(last && { connectionCheck: last }) }, NOW);

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

  it('not while parts are being made by an apply, or are taken away', () => {
    expect(due(undefined, connected('applying', 1_000))).toBe(false);
    expect(due(undefined, connected('applying', HOUR_MS))).toBe(true);
    for (const state of ['paused', 'removing'] as const) expect(due(checked('ok'), connected(state, HOUR_MS))).toBe(false);
  });

  it('although a clock was set back by days', () => {
    expect(due(checked('ok', { atMs: NOW + 3 * HOUR_MS }), applied)).toBe(true);
  });
});

describe('after a check', () => {
  const checkedAfter = (before: ConnectionCheck | undefined, findings: readonly Finding[]) =>
    afterCheck(before, { findings, passesBoth: false, isConnected: true, nowMs: NOW });

  it('what cannot be read opens none, and hides none', () => {
    expect(checkedAfter(checked('ok'), [finding('unknown')]).gap).toBeUndefined();
    const hidden = checkedAfter(checked('broken', { brokenSinceMs: NOW - HOUR_MS }), [finding('unknown')]);
    expect(hidden).toMatchObject({ check: { state: 'unknown', brokenSinceMs: NOW - HOUR_MS } });
    expect(checkedAfter(hidden.check, []).gap).toBe('restored');
  });

  it('what S3 refused of enrichment stands until a check can read and none is refused any longer; then one gap opens', () => {
    const sinceMs = NOW - HOUR_MS;
    const after = (before: ConnectionCheck, more: Partial<Parameters<typeof afterCheck>[1]>) =>
      afterCheck(before, { findings: [], passesBoth: false, isConnected: true, nowMs: NOW, ...more });
    const refused = { reason: '403', key: 'k' };
    const unread = { reason: '403', sinceMs, key: 'k' };
    // it was refused to an event, whatever this check may read
    expect(after(checked('ok'), { refused, isReadable: true })).toMatchObject({
      check: { unread: { reason: '403', sinceMs: NOW, key: 'k' } },
      isReadable: false,
    });
    const before = checked('ok', { unread });
    expect(after(before, { refused, isReadable: true }).check.unread).toEqual(unread);
    expect(after(before, {}).check.unread).toEqual(unread);
    expect(after(before, { refused: { reason: 'denied', key: 'l' } }).check.unread).toEqual({ reason: 'denied', sinceMs, key: 'l' });
    const readable = after(before, { isReadable: true });
    expect([readable.check.unread, readable.isReadable]).toEqual([undefined, true]);
  });

  it('a bucket for which nothing was made is shown, and opens no gap', () => {
    const after = afterCheck(checked('ok'), { passesBoth: false, isConnected: false, findings: [finding('broken')], nowMs: NOW });
    expect([after.check.state, after.gap]).toEqual(['broken', undefined]);
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
