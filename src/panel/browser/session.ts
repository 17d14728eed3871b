/** Who is using the page, and what they may do. Controls that the registry would refuse are not shown. */
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

/** Whether the person may call the operation. */
export function may(key: Key): boolean {
  const known = session.read();
  return known !== undefined && facts.permitted[callerOf(known)].includes(key);
}

/** The login doesn't return to longer addresses. */
const RETURN_LENGTH_MAX = 1_000;

/** The address of the login that returns to this place. */
export function loginAddress(): string {
  const back = `${location.pathname}${location.search}`;
  return addressOf('GET /login/authorize', {
    query: { return_to: back.length <= RETURN_LENGTH_MAX ? back : `${location.pathname}${hrefOf('search')}` },
  }).href;
}
