/**
 * Pauses the notification of a bucket, for the moment in which another notification is made that would overlap with it. Exactly
 * ours is taken away; `resume` is an apply, which makes it again.
 */
import type { ConnectionRecord } from '../../domain/provisioning/connection.ts';
import { notificationRemoval } from '../../domain/provisioning/planning/removal.ts';
import { wiringOf } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, updateRecord } from '../records/stored.ts';
import type { Apply, Applied } from './apply.ts';
import type { Pass, UnderLease } from './loop.ts';
import type { Observe } from './observe.ts';
import { wishOfConnection } from './wishes.ts';
import type { WithPorts } from '../ports/ports.ts';
import { refs } from './refs.ts';

interface PauseDependencies extends WithPorts<'state' | 'clock'> {
  readonly observe: Observe;
  readonly underLease: UnderLease;
  readonly apply: Apply;
}

/** Creates both functions. They throw `connect.not-applied`, `connect.blocked` for a source that needs no notification, and what an apply throws. */
export function createPause({ state, clock, observe, underLease, apply }: PauseDependencies) {
  async function pauseUnder(pass: Pass, connection: ConnectionRecord, signal: AbortSignal): Promise<ConnectionRecord> {
    const { bucket } = connection;
    const wish = wishOfConnection(connection);
    // stored first: nothing restores what is about to go. A pause that was interrupted is completed by the next one
    const paused = { ...connection, state: 'paused' as const, pausedAtMs: connection.pausedAtMs ?? clock.nowMs() };
    const look = async () => {
      const observed = await observe(wish, signal);
      const removal = notificationRemoval({ wish, wiring: wiringOf(wish), observed });
      if (removal !== undefined && 'reason' in removal)
        throw new RequestError('connect.blocked', `${removal.name} is left alone: ${removal.reason}`);
      await updateRecord(state, refs.connection(bucket), () => paused);
      return { observed, changes: removal === undefined ? [] : [removal] };
    };
    // a broken destination of others must not keep ours
    const ended = await pass.run({ wish, look, skipValidation: true });
    if ('observed' in ended) return paused;
    throw new RequestError('connect.busy', `the notifications of ${bucket} are being changed: repeat \`tally bucket pause ${bucket}\``);
  }

  return {
    async pause(bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
      const paused = await underLease({ bucket, wishes: [] }, signal, async (pass) => {
        const connection = await requireConnection(state, bucket, signal);
        if (connection.source !== 'notification') {
          throw new RequestError(
            'connect.blocked',
            `${bucket} has the source ${connection.source}, which needs no notification of Tally's own: nothing can overlap with it`,
          );
        }
        if (connection.state === 'removing') throw new RequestError('connect.removing', `${bucket} is being removed`);
        return pauseUnder(pass, connection, signal);
      });
      if (paused === 'held') throw new RequestError('connect.busy', 'another process changes connections now: repeat the request');
      return paused;
    },
    async resume(bucket: string, signal: AbortSignal): Promise<Applied> {
      const connection = await requireConnection(state, bucket, signal);
      // an apply that no pause preceded has its own plan to agree to
      const isResuming = connection.state === 'applying' && connection.pausedAtMs !== undefined;
      if (connection.state !== 'paused' && !isResuming) {
        throw new RequestError('connect.not-paused', `the notification of ${bucket} is not paused`);
      }
      return apply(wishOfConnection(connection), { isAgreed: true, isResuming: true }, signal);
    },
  };
}

async function requireConnection(state: StateStore, bucket: string, signal: AbortSignal): Promise<ConnectionRecord> {
  const connection = await readRecord(state, refs.connection(bucket), signal);
  if (connection !== undefined) return connection;
  throw new RequestError(
    'connect.not-applied',
    `Tally has made nothing in AWS for ${bucket}: see what it would make with \`tally bucket add ${bucket} --plan\``,
  );
}
