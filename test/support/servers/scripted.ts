/** HTTP servers on loopback that answer as a test says. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { closeServer, listen } from './listening.ts';

export interface ScriptedRequest {
  readonly method: string;
  /** As it arrived, with its query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface ScriptedAnswer {
  readonly status?: number;
  readonly phrase?: string;
  /** Undefined: there is no such header, also where Node would send one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** What is no text is sent as JSON. */
  readonly body?: unknown;
  /** The connection ends within the body. */
  readonly isCut?: true;
}

/** Undefined: the request is never answered. */
export type Script<Request = ScriptedRequest> = (request: Request) => ScriptedAnswer | undefined | Promise<ScriptedAnswer | undefined>;

/** Ends with the test. */
export async function startScripted(script: Script) {
  const server = await listenScripted(script);
  onTestFinished(server.close);
  return server;
}

/** The same for several tests, until it is closed. */
export async function listenScripted(script: Script) {
  const asked: ScriptedRequest[] = [];
  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const request = { method, path: url, headers, body: await text(incoming) };
    asked.push(request);
    const answer = await script(request);
    if (answer !== undefined) send(outgoing, answer);
  }
  // a client's idle connection is not closed under its next request
  const server = createServer(
    { keepAliveTimeout: 3_600_000 },
    (incoming, outgoing) => void serve(incoming, outgoing).catch(() => outgoing.destroy()),
  );
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    /** The requests so far. */
    asked,
    close: () => closeServer(server),
  };
}

function send(outgoing: ServerResponse, { status = 200, phrase, headers = {}, body = '', isCut }: ScriptedAnswer): void {
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) outgoing.setHeader(name, value);
    else if (name === 'date') outgoing.sendDate = false;
  }
  outgoing.writeHead(status, ...(phrase === undefined ? [] : [phrase]));
  const content = typeof body === 'string' ? body : JSON.stringify(body);
  if (isCut) outgoing.write(content, () => outgoing.destroy());
  else outgoing.end(content);
}
