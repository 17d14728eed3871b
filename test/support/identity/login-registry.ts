/** A registry on 127.0.0.1 that speaks the part of the API that clients need for logins, for tests of clients. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { problemSchema } from '../../../src/api/problem.ts';

/** What the registry shows of every key. */
const KEY = {
  id: 'k0123456789abcdefghijAB',
  name: 'nightly',
  user_email: 'ada@example.com',
  fingerprint: 'qk_0123…6789',
  status: 'ACTIVE',
  created_at: '2026-11-22T00:00:00.000Z',
  expires_at: '2027-02-20T00:00:00.000Z',
  last_used_at: null,
  scopes: ['read'],
};

const FAILED = 'Authentication failed. Check your credentials or API key.';

export interface ReceivedRequest {
  /** `GET /v1/session`. */
  readonly place: string;
  readonly query: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
}

/** A family of tokens. */
interface Family {
  readonly access: Set<string>;
  readonly refresh: Set<string>;
  /** Refresh tokens that were used. They give further ones while `isLenient`. */
  readonly used: Set<string>;
}

/** Starts the registry. Tests change its fields. */
export async function startLoginRegistry() {
  const received: ReceivedRequest[] = [];
  const families = new Set<Family>();
  const codes = new Map<string, { readonly challenge: string | null; readonly redirect: string | null }>();
  const keys = new Set<string>();
  const canned = new Map<string, Answer>();
  const settings = { version: '1.67.0', expiresInS: 600, isLenient: true, registryUrl: '', iss: '', refusal: '' };

  const server = createServer((request, response) => {
    void (async () => {
      const { status, headers = {}, json } = await answerTo(request);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(json === undefined ? undefined : JSON.stringify(json));
    })();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${address.port}`;
  settings.registryUrl = url;
  settings.iss = url;

  async function answerTo(request: IncomingMessage): Promise<Answer> {
    const asked = new URL(request.url ?? '', url);
    const text = (await request.toArray()).join('');
    const body: ReceivedRequest['body'] = text === '' ? {} : JSON.parse(text);
    const place = `${request.method} ${asked.pathname}`;
    const { authorization } = request.headers;
    received.push({ place, query: Object.fromEntries(asked.searchParams), authorization, body });
    const fixed = canned.get(place);
    if (fixed !== undefined) return fixed;
    if (place === 'GET /config.json')
      return { status: 200, json: { registryUrl: settings.registryUrl, catalogUrl: url, version: settings.version } };
    if (place === 'GET /login/authorize') return authorize(asked.searchParams);
    if (place === 'POST /login/token') return token(body);
    if (place === 'POST /v1/api-keys/revoke') return { status: 204 };
    return known(place, (authorization ?? '').replace(/^Bearer /, ''));
  }

  function authorize(query: URLSearchParams): Answer {
    const code = randomBytes(16).toString('hex');
    codes.set(code, { challenge: query.get('code_challenge'), redirect: query.get('redirect_uri') });
    if (query.get('no_browser') === 'true') return { status: 200, json: { code } };
    const back = new URL(query.get('redirect_uri') ?? '');
    const outcome = settings.refusal === '' ? { code } : { error: 'access_denied', error_description: settings.refusal };
    for (const [name, value] of Object.entries({ ...outcome, state: query.get('state') ?? '', iss: settings.iss }))
      back.searchParams.set(name, value);
    return { status: 302, headers: { location: back.href } };
  }

  function token(body: ReceivedRequest['body']): Answer {
    if (body['grant_type'] === 'authorization_code') {
      const found = codes.get(String(body['code']));
      codes.delete(String(body['code']));
      const challenge = createHash('sha256').update(String(body['code_verifier'])).digest('base64url');
      const isRight = found !== undefined && found.challenge === challenge && (found.redirect ?? undefined) === body['redirect_uri'];
      if (!isRight) return problem(400, 'login.invalid-grant', 'the code is not valid');
      const family: Family = { access: new Set(), refresh: new Set(), used: new Set() };
      families.add(family);
      return issue(family);
    }
    const given = String(body['refresh_token']);
    const family = [...families].find(({ refresh, used }) => refresh.has(given) || used.has(given));
    if (family !== undefined && (family.refresh.delete(given) || settings.isLenient)) {
      family.used.add(given);
      return issue(family);
    }
    return problem(400, 'login.invalid-grant', 'the refresh token is not valid');
  }

  function issue({ access, refresh }: Family): Answer {
    const tokens = { access_token: `qs_${randomBytes(16).toString('hex')}`, refresh_token: `qr_${randomBytes(16).toString('hex')}` };
    access.add(tokens.access_token);
    refresh.add(tokens.refresh_token);
    return { status: 200, json: { ...tokens, token_type: 'Bearer', expires_in: settings.expiresInS } };
  }

  function known(place: string, bearer: string): Answer {
    const family = [...families].find(({ access }) => access.has(bearer));
    if (family === undefined && !keys.has(bearer)) return problem(401, 'authentication.failed', FAILED);
    if (place === 'POST /login/logout' && family !== undefined) {
      families.delete(family);
      return { status: 204 };
    }
    if (place === 'GET /v1/objects') return { status: 200, json: { items: [] } };
    const user = { id: 'u1', email: 'ada@example.com' };
    const caller = { user, role: 'user', scopes: ['read'], catalog_url: url, version: settings.version };
    return { status: 200, json: family === undefined ? { ...caller, kind: 'api_key', key: KEY } : { ...caller, kind: 'session' } };
  }

  return {
    url,
    settings,
    received,
    keys,
    /** Answers that replace those of a place (`GET /config.json`). */
    canned,
    /** Access tokens are no longer valid; refresh tokens are. */
    endAccess: (): void => families.forEach(({ access }) => access.clear()),
    endSessions: (): void => families.clear(),
    sessions: (): number => families.size,
    places: (): readonly string[] => received.map(({ place }) => place),
    credentialsSent: (): readonly string[] => received.flatMap(({ authorization }) => authorization ?? []),
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

function problem(status: number, code: string, detail: string): Answer {
  return { status, json: problemSchema.parse({ type: 'about:blank', title: code, status, detail, code }) };
}
