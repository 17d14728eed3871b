/** A registry on 127.0.0.1 that speaks the part of the API that clients need for logins, for tests of clients. */
import { createHash, randomBytes } from 'node:crypto';
import { problemSchema } from '../../../src/registry/contract/problem.ts';
import { listenScripted, type ScriptedRequest } from '../servers/scripted.ts';

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

/** Starts the registry. Tests change its fields. */
export async function startLoginRegistry() {
  const received: ReceivedRequest[] = [];
  const sessions = new Set<string>();
  const codes = new Map<string, { readonly challenge: string | null; readonly redirect: string | null }>();
  const keys = new Set<string>();
  const canned = new Map<string, Answer>();
  const settings = { version: '1.67.0', expiresInS: 604_800, registryUrl: '', iss: '', refusal: '' };

  const { url, close } = await listenScripted((request) => {
    const { status, headers, json } = answerTo(request);
    return { status, headers: { 'content-type': 'application/json', ...headers }, ...(json !== undefined && { body: json }) };
  });
  settings.registryUrl = url;
  settings.iss = url;

  function answerTo({ method, path, headers: { authorization }, body: text }: ScriptedRequest): Answer {
    const asked = new URL(path, url);
    const body: ReceivedRequest['body'] = text === '' ? {} : JSON.parse(text);
    const place = `${method} ${asked.pathname}`;
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
    const found = codes.get(String(body['code']));
    codes.delete(String(body['code']));
    const challenge = createHash('sha256').update(String(body['code_verifier'])).digest('base64url');
    const isRight = found !== undefined && found.challenge === challenge && (found.redirect ?? undefined) === body['redirect_uri'];
    if (!isRight) return problem(400, 'login.invalid-grant', 'the code is not valid');
    const session = `qs_${randomBytes(16).toString('hex')}`;
    sessions.add(session);
    return { status: 200, json: { access_token: session, token_type: 'Bearer', expires_in: settings.expiresInS } };
  }

  function known(place: string, bearer: string): Answer {
    const isSession = sessions.has(bearer);
    if (!isSession && !keys.has(bearer)) return problem(401, 'authentication.failed', FAILED);
    if (place === 'POST /login/logout' && isSession) {
      sessions.delete(bearer);
      return { status: 204 };
    }
    if (place === 'GET /v1/objects') return { status: 200, json: { items: [] } };
    const user = { id: 'u1', email: 'ada@example.com' };
    const caller = { user, role: 'user', scopes: ['read'], reads: ['photos/2026/'], catalog_url: url, version: settings.version };
    return { status: 200, json: isSession ? { ...caller, kind: 'session' } : { ...caller, kind: 'api_key', key: KEY } };
  }

  return {
    url,
    settings,
    received,
    keys,
    /** Answers that replace those of a place (`GET /config.json`). */
    canned,
    endSessions: (): void => sessions.clear(),
    sessions: (): number => sessions.size,
    places: (): readonly string[] => received.map(({ place }) => place),
    credentialsSent: (): readonly string[] => received.flatMap(({ authorization }) => authorization ?? []),
    close,
  };
}

function problem(status: number, code: string, detail: string): Answer {
  return { status, json: problemSchema.parse({ type: 'about:blank', title: code, status, detail, code }) };
}
