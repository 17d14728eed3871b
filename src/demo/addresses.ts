/** The addresses of the embedded AWS, for the process that runs it and for commands that use it. */

/** The account id of all resources in fauxqs. */
export const ACCOUNT = '000000000000';

export const embeddedQueues = { bucket: 'tally-bucket-events', deadLetters: 'tally-dead-letters' } as const;

/** The endpoint that clients on this machine use. */
export function embeddedEndpoint({ host, port }: { readonly host: string; readonly port: number }): string {
  return `http://${reachable(host)}:${port}`;
}

/** The host for a URL. For an address that means all interfaces it is loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** The URL of a queue. */
export function embeddedQueueUrl(endpoint: string, name: string): string {
  return `${endpoint}/${ACCOUNT}/${name}`;
}
