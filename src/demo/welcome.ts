import type { Settings } from '../settings/settings.ts';
import { urlOf } from '../registry/server.ts';
import { withoutPasswords } from '../base/secrets.ts';
import type { Telemetry } from '../process/telemetry.ts';
import type { OuterEnvironment, ProxyVariables } from '../settings/environment.ts';

interface Places {
  /** The address of the embedded SQS, SNS and S3. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly healthUrl: string;
  /** Absent if another process serves the control plane, at the address of the settings. */
  readonly controlUrl?: string;
}

/** The welcome text of the embedded mode: the addresses, and what works as printed. Where people log in, the search is for their browser. */
export function welcome(
  settings: Settings,
  { endpoint, bucket, healthUrl, controlUrl = urlOf(settings.TALLY_HTTP_ADDRESS) }: Places,
): string {
  const search = '/v1/objects?q=readme';
  const hasLogin = settings.TALLY_OIDC_ISSUER !== undefined;
  const login = `${settings.TALLY_PUBLIC_URL ?? controlUrl}/login/authorize?return_to=${encodeURIComponent(search)}`;
  return `
Tally is running with embedded SQS, SNS and S3. Its data is in ${settings.TALLY_EMBEDDED_DATA}.

  S3, SQS, SNS   ${endpoint}   (path-style, any credentials; bucket ${bucket} is connected)
  Panel          ${controlUrl}/panel/
  Control plane  ${controlUrl}
  Health         ${healthUrl}/readyz

Try it from another terminal:

  curl -X PUT -d hello ${endpoint}/${bucket}/docs/README.md
  ${hasLogin ? `${login}   (in a browser: log in, and see what is found)` : `curl '${controlUrl}${search}'`}
  curl -X DELETE ${endpoint}/${bucket}/docs/README.md

Stop it with Ctrl-C.
`;
}

export function reportChoices(settings: Settings, { proxy }: OuterEnvironment, telemetry: Telemetry): void {
  reportProxy(proxy, telemetry);
  reportReaders(settings, telemetry);
  if (!settings.TALLY_ROLES.includes('http'))
    telemetry.info('commands cannot reach this process: it does not have the role http', { TALLY_ROLES: settings.TALLY_ROLES.join(',') });
}

/** Warns that everyone who logs in reads everything: the person who starts the registry must see that choice. */
function reportReaders({ TALLY_OIDC_ISSUER: issuer, TALLY_READERS: readers, TALLY_ROLES: roles }: Settings, telemetry: Telemetry): void {
  if (issuer === undefined || readers !== 'everyone' || !roles.includes('http')) return;
  telemetry.warn('every user who logs in may read every bucket', { TALLY_READERS: readers, advice: 'To grant parts instead, unset it.' });
}

/** Logs the proxy, because an unexpected one is hard to find. The log masks passwords. */
function reportProxy(proxy: ProxyVariables | undefined, telemetry: Telemetry): void {
  if (proxy === undefined) return;
  const shown = Object.entries(proxy).map(([name, value]) => [name, withoutPasswords(value)]);
  telemetry.info('requests use a proxy', Object.fromEntries(shown));
}
