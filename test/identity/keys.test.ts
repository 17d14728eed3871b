import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { keysContract } from '../support/identity/keys-contract.ts';

keysContract('one store in memory', async () => {
  const store = createMemoryStore();
  return { a: store, b: store, dispose: async () => undefined };
});
