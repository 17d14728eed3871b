import { describe, expect, it } from 'vitest';
import { faults } from '../../src/base/fault.ts';
import {
  checkOfFault,
  createLastFailure,
  createReadiness,
  OK,
  type CheckSource,
  type ReadinessCheck,
} from '../../src/observing/readiness.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

const failed: ReadinessCheck = { status: 'failed', code: 'index.unreachable' };

function source(name: string, neededBy: CheckSource['neededBy'], check: ReadinessCheck): CheckSource {
  return { name, neededBy, check: () => check };
}

describe('readiness', () => {
  it('is lost by the roles that need what fails, and by the process as a whole', () => {
    const report = createReadiness(
      ['ingest', 'http'],
      [source('index', ['ingest', 'http'], OK), source('queue', ['ingest'], failed)],
    ).read();
    expect(report).toMatchObject({ ready: false, roles: { ingest: { ready: false }, http: { ready: true } }, checks: { queue: failed } });
  });

  it('is not lost by a warning, nor by a check that only roles of other processes need', () => {
    const warning = { status: 'warning', code: 'queue.no-dead-letter' } as const;
    const sources = [source('dead-letter-queue', ['ingest'], warning), source('queue', ['reindex'], failed)];
    const report = createReadiness(['ingest'], sources).read();
    expect(report).toMatchObject({ ready: true, roles: { ingest: { ready: true } }, checks: { 'dead-letter-queue': warning } });
    expect(Object.keys(report.roles)).toEqual(['ingest']);
  });

  it('says of a fault what happened and what to do', () => {
    expect(checkOfFault(undefined)).toBe(OK);
    expect(checkOfFault({ code: 'index.denied', reason: '401 security_exception' })).toEqual({
      status: 'failed',
      code: 'index.denied',
      detail: '401 security_exception',
      advice: faults['index.denied'].advice,
    });
  });
});

it('Fix: the last failure of one queue is not forgotten because another one answers, and is forgotten after twenty minutes without a try', async () => {
  const clock = createFakeClock();
  const last = createLastFailure(clock);
  const denied = { code: 'queue.unreachable', reason: 'kms:Decrypt is denied' } as const;
  last.failed('one', denied);
  last.succeeded('two');
  expect([last.current(), last.current('one'), last.current('two')]).toEqual([denied, denied, undefined]);
  last.succeeded('one');
  expect(last.current()).toBeUndefined();
  last.failed('one', denied);
  await clock.advance(1_199_999);
  expect(last.current()).toEqual(denied);
  await clock.advance(1);
  expect(last.current()).toBeUndefined();
});
