/** Where the embedded AWS is, for the process that runs it and for commands beside it. */

/** The account of everything in fauxqs. */
export const ACCOUNT = '000000000000';

export const embeddedQueues = { bucket: 'tally-bucket-events', work: 'tally-work', deadLetters: 'tally-dead-letters' } as const;

/** The endpoint that clients on this machine use. */
export function embeddedEndpoint({ host, port }: { readonly host: string; readonly port: number }): string {
  return `http://${reachable(host)}:${port}`;
}

/** The host of a URL; of an address that means every interface, loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** The URL of a queue. */
export function embeddedQueueUrl(endpoint: string, name: string): string {
  return `${endpoint}/${ACCOUNT}/${name}`;
}
