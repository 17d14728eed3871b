import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** Creates a name for this process that no other process has or had. Leases and claims are stored under it. */
export function createWorkerName(): string {
  return `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
}
