/** The name of this installation, by which its parts in AWS are known. */
import { randomBytes } from 'node:crypto';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** Returns the name of the settings, else the stored one. The first call makes and stores it. */
export type InstallationOf = (signal?: AbortSignal) => Promise<string>;

/** Creates the function. */
export function createInstallation({ state, named }: { readonly state: StateStore; readonly named: string | undefined }): InstallationOf {
  return async function installationOf(signal) {
    if (named !== undefined) return named;
    const stored = await readRecord(state, refs.installation, signal);
    if (stored !== undefined) return stored.installation;
    const fresh = { installation: randomBytes(4).toString('hex') };
    // another process may have been faster
    const kept = await updateRecord(state, refs.installation, (current) => current ?? fresh);
    return kept.installation;
  };
}
