import type { Settings } from '../settings/settings.ts';
import { urlOf } from '../http/server.ts';

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
