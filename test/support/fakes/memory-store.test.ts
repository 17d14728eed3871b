import { scanContract } from '../../contracts/scan-contract.ts';
import { createMemoryStore } from './memory-store.ts';

// what the pipeline's tests stand on
scanContract('the memory store', async () => ({ store: createMemoryStore(), dispose: async () => {} }), { runs: 150 });
