/**
 * The listener on 127.0.0.1 from which a login begins, and to which the browser returns at its end:
 *
 *   start address ──once──► the registry ──► return ──► its page
 *        └──a second time──► the login has ended
 *
 * The address that a browser is opened with is an argument of a process, which every user of this machine can read. It is
 * therefore an address here that leads to the registry once, and not the one with the secret parts of the login.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ClientError } from './client-error.ts';

/** A browser opens connections that it never uses. */
const HEADERS_TIMEOUT_MS = 10_000;

const NOTHING = { title: 'Nothing is here', text: 'This address belongs to a login that is under way.' } as const;

export interface Page {
  readonly title: string;
  readonly text: string;
}

/** The browser's return. */
export interface Return {
  readonly parameters: ReadonlyMap<string, string>;
  /** Shows the page in the browser; resolves once it is sent or cannot be sent. */
  show(page: Page): Promise<void>;
}

export interface Listener {
  /** The redirect_uri. */
  readonly address: string;
  /** The address to open, which leads to the one that `leadTo` was given. */
  readonly startAddress: string;
  leadTo(address: string): void;
  /** Rejects with `login.failed` if the start address was opened twice: another user of this machine may have been the first. */
  readonly returned: Promise<Return>;
  close(): void;
}

/** Listens from then on. Requests that do not carry this state are not for this login: it continues to wait. */
export async function listen(state: string): Promise<Listener> {
  const returned = Promise.withResolvers<Return>();
  returned.promise.catch(() => undefined);
  const start = `/start/${randomBytes(16).toString('hex')}`;
  let isAnswered = false;
  let target: string | undefined;
  let isStarted = false;

  function begin(response: ServerResponse): void {
    if (target === undefined || isAnswered) {
      void answer(response, 404, NOTHING);
    } else if (isStarted) {
      isAnswered = true;
      const text = 'the address of this login was opened twice, maybe by another user of this machine, so it was ended';
      void answer(response, 409, { title: 'The login has ended', text: `${text}. Begin it again.` });
      returned.reject(new ClientError('login.failed', `${text}: repeat the login`));
    } else {
      isStarted = true;
      response.writeHead(303, { location: target, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' });
      response.end();
    }
  }

  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: HEADERS_TIMEOUT_MS }, (request, response) => {
    const host = hostOf(server.address());
    const parameters = parametersOf(request, { host, state });
    if (request.method === 'GET' && request.url === start && request.headers.host === host) {
      begin(response);
    } else if (parameters === undefined) {
      void answer(response, 404, NOTHING);
    } else if (isAnswered) {
      void answer(response, 409, { title: 'Nothing was done', text: 'This login has been answered already.' });
    } else {
      isAnswered = true;
      returned.resolve({ parameters, show: (page) => answer(response, 200, page) });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    address: `http://${hostOf(server.address())}/callback`,
    startAddress: `http://${hostOf(server.address())}${start}`,
    leadTo(address) {
      target = address;
    },
    returned: returned.promise,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function hostOf(address: AddressInfo | string | null): string {
  return address === null || typeof address === 'string' ? '' : `127.0.0.1:${address.port}`;
}

/** Returns what the registry sends; undefined for a request that cannot come from this login. */
function parametersOf(
  { method, url = '', headers }: IncomingMessage,
  { host, state }: { readonly host: string; readonly state: string },
): ReadonlyMap<string, string> | undefined {
  // another name for this machine is a page of another site whose name was made to lead here
  if (method !== 'GET' || headers.host !== host) return undefined;
  const parsed = URL.parse(url, `http://${host}`);
  if (parsed?.pathname !== '/callback') return undefined;
  const pairs = [...parsed.searchParams];
  const parameters = new Map(pairs);
  // a name that is there twice could mean one thing here and another elsewhere
  return parameters.size === pairs.length && isSame(parameters.get('state') ?? '', state) ? parameters : undefined;
}

function isSame(text: string, expected: string): boolean {
  const [left, right] = [Buffer.from(text), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

async function answer(response: ServerResponse, status: number, { title, text }: Page): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    response.once('close', resolve);
  });
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Tally</title></head>
<body><h1>${escaped(title)}</h1><p>${escaped(text)}</p></body></html>
`,
  );
  await closed;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
