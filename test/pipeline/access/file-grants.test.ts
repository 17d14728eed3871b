/** What the file of grants does to the stored ones. */
import { describe, expect, it } from 'vitest';
import type { FileGrant } from '../../../src/domain/access/grant.ts';
import { GRANTS_MAX } from '../../../src/domain/access/policy.ts';
import { createApplyFileGrants } from '../../../src/pipeline/access/file-grants.ts';
import { createStoredGrants } from '../../../src/pipeline/access/policy.ts';
import { createAudited } from '../../../src/pipeline/identity/audited.ts';
import { createMemoryAudit } from '../../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { localActor, sessionActor } from '../../support/identity/actors.ts';

const { signal } = new AbortController();
const line = (who: string, where: string): FileGrant => ({ who, where });

function createWorld() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const audit = createMemoryAudit();
  const grants = createStoredGrants({ state, clock });
  const audited = createAudited({ audit, clock, telemetry: createFakeTelemetry() });
  const applyFileGrants = createApplyFileGrants({ grants, audited, clock });
  return {
    audit,
    clock,
    grants,
    apply: (...lines: readonly FileGrant[]) => applyFileGrants(lines, localActor, signal),
    /** What a command grants. */
    command: (who: string, where: string) =>
      grants.change((before) => [...before, { who, where, grantedBy: 'ann', createdAtMs: clock.nowMs(), source: 'command' }]),
    stored: async () => (await grants.current()).grants.map(({ who, where, source }) => `${who} ${where} ${source}`),
    /** The acts that ended, and what they came to. */
    acts: () => audit.records.filter(({ outcome }) => outcome === 'done').map(({ eventname, parameters }) => [eventname, parameters]),
  };
}

describe('the grants of a file', () => {
  it('exist as long as their lines do, beside those of commands', async () => {
    const { apply, command, stored } = createWorld();
    await command('everyone', 'videos');
    await apply(line('everyone', 'photos/a/'), line('group:a', 'photos'));
    expect(await stored()).toEqual(['everyone photos/a/ file', 'everyone videos command', 'group:a photos file']);
    await apply(line('group:a', 'photos'), line('group:b', 'photos'));
    expect(await stored()).toEqual(['everyone videos command', 'group:a photos file', 'group:b photos file']);
    await apply();
    expect(await stored()).toEqual(['everyone videos command']);
  });

  it('take over what a command granted, which ends with the line then', async () => {
    const { apply, command, stored, grants } = createWorld();
    await command('everyone', 'photos');
    await apply(line('everyone', 'photos'));
    expect(await stored()).toEqual(['everyone photos file']);
    expect((await grants.current()).grants).toMatchObject([{ grantedBy: 'alice@build-1' }]);
    await apply();
    expect(await stored()).toEqual([]);
  });

  it('are stored once if two lines are the same', async () => {
    const { apply, stored } = createWorld();
    await apply(line('everyone', 'photos'), line('everyone', 'photos'));
    expect(await stored()).toEqual(['everyone photos file']);
  });

  it('are one audited act for all that a start changes, and none if it changes nothing', async () => {
    const { apply, acts, audit, clock, grants } = createWorld();
    await apply();
    expect(audit.records).toEqual([]);
    await apply(line('everyone', 'photos'), line('group:a', 'videos'));
    const first = (await grants.current()).grants;
    await clock.advance(60_000);
    await apply(line('group:a', 'videos'), line('everyone', 'photos'));
    expect((await grants.current()).grants).toEqual(first);
    await apply(line('group:a', 'videos'), line('group:b', 'videos'));
    const named = { grants_added: ['everyone → photos', 'group:a → videos'], grants_removed: [] };
    expect(acts()).toEqual([
      ['GrantsFile', { added: 2, removed: 0, ...named }],
      ['GrantsFile', { added: 1, removed: 1, grants_added: ['group:b → videos'], grants_removed: ['everyone → photos'] }],
    ]);
    expect(audit.records).toHaveLength(4);
  });

  it('keep the time and the name of the start that stored them', async () => {
    const { apply, clock, grants } = createWorld();
    await apply(line('everyone', 'photos'));
    const [before] = (await grants.current()).grants;
    await clock.advance(60_000);
    await apply(line('everyone', 'photos'), line('everyone', 'videos'));
    const [same, added] = (await grants.current()).grants;
    expect(same).toEqual(before);
    expect(added?.createdAtMs).toBe(clock.nowMs());
  });

  it('stay as they were if there would be too many with those of commands, and the act is recorded as failed', async () => {
    const { apply, audit, command, stored } = createWorld();
    await command('everyone', 'videos');
    await apply(line('group:a', 'photos'));
    const lines = Array.from({ length: GRANTS_MAX }, (_, at) => line('everyone', `photos/${at}/`));
    await expect(apply(...lines)).rejects.toMatchObject({ code: 'grant.limit' });
    expect(await stored()).toEqual(['everyone videos command', 'group:a photos file']);
    expect(audit.records.at(-1)).toMatchObject({
      eventname: 'GrantsFile',
      outcome: 'failed',
      parameters: { added: GRANTS_MAX, removed: 1 },
    });
    await apply(...lines.slice(1));
    expect(await stored()).toHaveLength(GRANTS_MAX);
  });

  it('do not change where the audit cannot be written', async () => {
    const { state } = createMemoryStore();
    const clock = createFakeClock();
    const grants = createStoredGrants({ state, clock });
    const audit = { append: () => Promise.reject(new Error('full')) };
    const audited = createAudited({ audit, clock, telemetry: createFakeTelemetry() });
    const apply = createApplyFileGrants({ grants, audited, clock });
    await expect(apply([line('everyone', 'photos')], sessionActor(), signal)).rejects.toMatchObject({ code: 'audit.unavailable' });
    expect((await grants.current()).grants).toEqual([]);
  });
});
