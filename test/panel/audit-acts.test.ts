import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../src/domain/identity/audit.ts';
import { actorOf, actsOf, subjectOf } from '../../src/panel/browser/audit-acts.ts';
import { auditRecord } from '../support/fakes/control.ts';

let number = 0;
/** A record at a second after 03:00. */
function record(second: number, request: string, more: Partial<AuditRecord>): AuditRecord {
  const { reason: _, ...plain } = auditRecord;
  number += 1;
  return {
    ...plain,
    id: `audit-${number}`,
    eventtime: new Date(Date.UTC(2026, 0, 2, 3, 0, second)).toISOString(),
    request_id: request,
    outcome: 'done',
    ...more,
  };
}
/** The two records of an act, the newest first. */
const act = (second: number, request: string, more: Partial<AuditRecord>): readonly AuditRecord[] => [
  record(second + 1, request, { ...more, outcome: more.outcome ?? 'done', parameters: { ...more.parameters, job_id: request } }),
  record(second, request, { ...more, outcome: 'intended' }),
];
const shown = (records: readonly AuditRecord[]): readonly string[] =>
  actsOf(records).map(({ record: { eventname, outcome, eventtime }, beganAt, times }) =>
    [eventname, outcome, times, beganAt.slice(17, 19), eventtime.slice(17, 19)].join(' '),
  );

describe('the acts of the audit', () => {
  it('are one for the records before and after it, though other records are in between', () => {
    const [ended, begun] = act(10, 'a', { eventname: 'ReindexStart', parameters: { bucket: 'photos' } });
    const other = record(10, 'b', { eventname: 'Login' });
    expect(shown([ended!, other, begun!])).toEqual(['ReindexStart done 1 10 11', 'Login done 1 10 10']);
  });

  it('are one without its end, and one whose beginning is on a later page', () => {
    const [ended, begun] = act(10, 'a', { eventname: 'BucketRemove' });
    expect(shown([begun!])).toEqual(['BucketRemove intended 1 10 10']);
    expect(shown([ended!])).toEqual(['BucketRemove done 1 11 11']);
  });

  it('are one with a number where the same follows upon the same, and not where it ended otherwise or something else was done', () => {
    const apply = (second: number, name: string, outcome: 'done' | 'failed' = 'done') =>
      act(second, name, { eventname: 'BucketApply', parameters: { bucket: 'photos' }, outcome });
    const resume = act(40, 'e', { eventname: 'BucketResume', parameters: { bucket: 'photos' } });
    expect(shown([...apply(50, 'f'), ...resume, ...apply(30, 'd'), ...apply(20, 'c'), ...apply(10, 'b', 'failed')])).toEqual([
      'BucketApply done 1 50 51',
      'BucketResume done 1 40 41',
      'BucketApply done 2 20 31',
      'BucketApply failed 1 10 11',
    ]);
    const ofAnother = act(10, 'g', { eventname: 'BucketApply', parameters: { bucket: 'films' } });
    expect(shown([...apply(20, 'c'), ...ofAnother])).toHaveLength(2);
  });

  it('are one in an hour for what is counted in windows, with the number of all of them', () => {
    const use = (second: number, key: string, count: number) =>
      record(second, `${key} ${second}`, { eventname: 'ApiKeyUse', parameters: { operation: 'search', key, count } });
    expect(shown([use(4_000, 'a', 1), use(50, 'b', 2), use(45, 'a', 3), use(40, 'b', 4)])).toEqual([
      'ApiKeyUse done 1 40 40',
      'ApiKeyUse done 6 40 50',
      'ApiKeyUse done 3 45 45',
    ]);
  });
});

describe('a row of the audit', () => {
  it('names what the act was done to: the person of an appointment, and whom a grant means', () => {
    expect(subjectOf({ parameters: { id: 'sub:248289761001', role: 'admin' } })).toBe('sub:248289761001');
    expect(subjectOf({ parameters: { who: 'user:bob@example.com', where: 'photos/' } })).toBe('user:bob@example.com');
    expect(subjectOf({ parameters: { count: 2 } })).toBeUndefined();
  });

  it('names the API key beside its owner', () => {
    const identity = (auth: AuditRecord['useridentity']['sessionContext']['auth']) => ({
      useridentity: { email: 'alice@example.com', sessionContext: { auth } },
    });
    expect(actorOf(identity({ type: 'session' }))).toBe('alice@example.com');
    expect(actorOf(identity({ type: 'api_key', keyName: 'nightly', keyFingerprint: 'qk_0123…6789' }))).toBe('alice@example.com (nightly)');
  });
});
