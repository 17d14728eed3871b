/** Which buckets a shared rule is for, by the records of what was made: others may have changed its pattern. */
import { connectionSchema } from '../../domain/provisioning/connection.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';
import type { MembersOf } from './observe.ts';

/** Creates the function. */
export function createMembersOf(state: StateStore): MembersOf {
  return async function membersOf(ruleName) {
    const connections = await listAllRecords(state, 'connection', connectionSchema);
    return connections
      .filter(({ parts }) => parts.some(({ kind, arn }) => kind === 'rule' && arn.endsWith(`/${ruleName}`)))
      .map(({ bucket }) => bucket);
  };
}
