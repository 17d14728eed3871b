/** Logs at the start what the person who starts the process may not expect. */
import { withoutPasswords } from '../domain/passwords.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { OuterEnvironment, ProxyVariables } from '../settings/proxy.ts';
import type { Settings } from '../settings/settings.ts';

export function reportChoices(settings: Settings, { proxy }: OuterEnvironment, telemetry: Telemetry): void {
  reportProxy(proxy, telemetry);
  reportReaders(settings, telemetry);
  if (!settings.TALLY_ROLES.includes('http'))
    telemetry.info('commands cannot reach this process: it does not have the role http', { TALLY_ROLES: settings.TALLY_ROLES.join(',') });
}

/** Logs who reads, where people log in: that everyone does is a choice that the person who starts the registry must see. */
function reportReaders({ TALLY_OIDC_ISSUER: issuer, TALLY_READERS: readers, TALLY_ROLES: roles }: Settings, telemetry: Telemetry): void {
  if (issuer === undefined || !roles.includes('http')) return;
  if (readers === 'everyone') {
    telemetry.warn('every user who logs in may read every bucket', { TALLY_READERS: readers, advice: 'To grant parts instead, unset it.' });
  } else telemetry.info('users read what is granted to them; administrators read everything', { TALLY_READERS: readers });
}

/** Logs the proxy, because an unexpected one is hard to find. The log masks passwords. */
function reportProxy(proxy: ProxyVariables | undefined, telemetry: Telemetry): void {
  if (proxy === undefined) return;
  const shown = Object.entries(proxy).map(([name, value]) => [name, withoutPasswords(value)]);
  telemetry.info('requests use a proxy', Object.fromEntries(shown));
}
