/** The name of this installation, and the id of this registry, by which its parts in AWS are known. */
import { randomBytes } from 'node:crypto';
import type { Owner } from '../../domain/provisioning/names.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** 128 bits: no two registries ever have the same. */
const REGISTRY_BYTES = 16;

/** Returns the stored id with the name of the settings, else the stored one. The first call makes and stores both. */
export type OwnerOf = (signal?: AbortSignal) => Promise<Owner>;

interface OwnerDependencies {
  readonly state: StateStore;
  readonly named: string | undefined;
  /** Default: random. */
  readonly newRegistryId?: (() => string) | undefined;
}

/** Creates the function. */
export function createOwner({ state, named, newRegistryId = randomId }: OwnerDependencies): OwnerOf {
  return async function ownerOf(signal) {
    const { installation, registry } = (await readRecord(state, refs.installation, signal)) ?? (await make());
    return { installation: named ?? installation, registry };
  };

  async function make(): Promise<Owner> {
    const fresh = { installation: named ?? randomBytes(4).toString('hex'), registry: newRegistryId() };
    // another process may have been faster
    return updateRecord(state, refs.installation, (current) => current ?? fresh);
  }
}

function randomId(): string {
  return randomBytes(REGISTRY_BYTES).toString('hex');
}
