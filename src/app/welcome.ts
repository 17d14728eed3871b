import type { Settings } from '../settings/settings.ts';

/** What people are shown when the embedded mode runs: where things are, and three commands that work as printed. */
export function welcome(settings: Settings, { endpoint, bucket }: { readonly endpoint: string; readonly bucket: string }): string {
  const url = `http://${settings.TALLY_HTTP_ADDRESS.host}:${settings.TALLY_HTTP_ADDRESS.port}`;
  return `
Tally is running, with SQS, SNS and S3 of its own (data in ${settings.TALLY_EMBEDDED_DATA}).

  S3, SQS, SNS   ${endpoint}   (path-style, any credentials; bucket ${bucket} is connected)
  Control plane  ${url}
  Health         http://${settings.TALLY_HEALTH_ADDRESS.host}:${settings.TALLY_HEALTH_ADDRESS.port}/readyz

Try it from another terminal in this folder:

  curl -T README.md ${endpoint}/${bucket}/docs/README.md
  curl '${url}/v1/objects?q=readme'
  curl -X DELETE ${endpoint}/${bucket}/docs/README.md

Stop it with Ctrl-C.
`;
}
