/** The lease under which AWS is changed. Policies are whole documents that buckets share, so one change at a time is made in the whole installation. */
import { RequestError } from '../../domain/request-error.ts';
import { createTakeLease } from '../records/lease.ts';

/** Renews the lease. Throws `connect.busy` if another process has taken it. */
export type KeepLock = () => Promise<void>;

/** Runs work under the lease; `held` if another process has it. */
export type UnderLock = <Result>(work: (keep: KeepLock) => Promise<Result>) => Promise<Result | 'held'>;

/** Creates the function. */
export function createConnectLock(dependencies: Parameters<typeof createTakeLease>[0]): UnderLock {
  const takeLease = createTakeLease(dependencies);
  return async function underLock(work) {
    const lease = await takeLease('connections');
    if (lease === undefined) return 'held';
    try {
      return await work(async () => {
        if (!(await lease.renew())) throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
      });
    } finally {
      await lease.release();
    }
  };
}
