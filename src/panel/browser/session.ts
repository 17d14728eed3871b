/** Who uses the page, and what they may do: a control that would be refused is not shown. */
import type { SessionAnswer } from '../../registry/contract/login.ts';
import type { PanelCaller } from '../facts.ts';
import { addressOf, type Key } from './api.ts';
import { facts } from './facts.ts';
import { observed } from './observed.ts';
import { hrefOf } from './place.ts';

export const session = observed<SessionAnswer | undefined>(undefined);

function callerOf({ kind, role }: SessionAnswer): PanelCaller {
  return kind === 'local' ? 'local' : role;
}

/** Whether the operation is permitted to the person. */
export function may(key: Key): boolean {
  const known = session.read();
  return known !== undefined && facts.permitted[callerOf(known)].includes(key);
}

/** Longer addresses are not returned to. */
const RETURN_LENGTH_MAX = 1_000;

/** Where a person logs in, to come back to this place afterwards. */
export function loginAddress(): string {
  const back = `${location.pathname}${location.search}`;
  return addressOf('GET /login/authorize', {
    query: { return_to: back.length <= RETURN_LENGTH_MAX ? back : `${location.pathname}${hrefOf('search')}` },
  }).href;
}
