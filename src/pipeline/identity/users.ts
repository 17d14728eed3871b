/** Users as stored. */
import type { UserRecord } from '../../domain/identity/user.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

export interface Users {
  /** Reads a user in realtime; undefined if no such user has logged in. */
  get(userId: string, signal?: AbortSignal): Promise<UserRecord | undefined>;
}

/** Creates the reader. */
export function createUsers({ state }: { readonly state: StateStore }): Users {
  return { get: (userId, signal) => readRecord(state, refs.user(userId), signal) };
}
