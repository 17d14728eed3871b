/** The audit of the uses of keys: one record for each key, operation, address and five seconds, with the number of uses. */
import type { KeyActor } from '../../domain/identity/actor.ts';
import { createAuditWindows, type AuditWindowDependencies, type StoresWindows } from './audit-windows.ts';

const WINDOW_MS = 5_000;

export interface KeyUses extends StoresWindows {
  /** Counts one use. */
  used(actor: KeyActor & { readonly address?: string }, operation: string): void;
}

/** Creates the recorder. */
export function createKeyUses(dependencies: AuditWindowDependencies): KeyUses {
  const { count, ...windows } = createAuditWindows(dependencies, WINDOW_MS);
  return {
    ...windows,
    used(actor, operation) {
      const name = JSON.stringify([actor.keyId, operation, actor.address]);
      count(name, { event: 'ApiKeyUse', outcome: 'done', actor, parameters: { operation } });
    },
  };
}
