/** Login over HTTP: what browsers and clients send, and the pages and cookies that they receive. */
import { randomUUID, createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiKey } from './contract/api-keys.ts';
import { rowsOfListener, type Context, type LoginName } from './contract/contract.ts';
import { loginRows, type AuthorizeRequest, type SessionAnswer, type TokenRequest } from './contract/login.ts';
import { BROWSER_MS } from '../identity/session.rules.ts';
import { LOGIN_MS, type LoginRequest } from '../identity/login.rules.ts';
import { nameOfActor, type Actor } from '../base/actor.ts';
import { addressGroupOf } from '../identity/address-group.rules.ts';
import { AUTHENTICATION_FAILED } from '../identity/authorise.rules.ts';
import { scopesOfRole } from '../identity/api-key.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { Logins, Consent, Origin, Sessions, StartedSession } from '../identity/logins.ts';
import type { ReadOwnAccess } from '../identity/grants/grants.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { addressOf, type CallerParts, type Callers, cookieIn, cookieNamesOf, cookieOf } from './caller.ts';
import { LOOPBACK_HOST, requireOwnPage } from './guard.ts';
import { requestReader, type Handler, loggedProblemOf } from './server.ts';
import type { Problem } from './contract/problem.ts';

/** What login needs in addition to how callers are identified. */
export interface LoginParts extends CallerParts {
  readonly sessions: Pick<Sessions, 'check' | 'endByCookie'>;
  readonly logins: Logins;
}

interface LoginHandlerParts {
  /** Absent: callers are not authenticated, and no one logs in. */
  readonly identity: LoginParts | undefined;
  readonly callers: Callers;
  readonly telemetry: Telemetry;
  readonly version: string;
  /** The catalog's address, for this request's caller. */
  readonly catalogUrl: (request: FastifyRequest) => string;
  readonly ownAccess: ReadOwnAccess;
  /** Reads one of the actor's keys. */
  readonly readKey: (id: string, context: Context) => Promise<ApiKey>;
  /** Aborted when the listener closes. */
  readonly closing: AbortSignal;
}

/** Reading a key or a login takes milliseconds. */
const READ_MAX_MS = 30_000;
/** A login waits for the issuer at most this long: three requests of 10 s each. */
const ISSUER_MAX_MS = 30_000;
/** A quarter of a listener's connections, so that a hanging issuer leaves room for everyone else. */
const AT_ISSUER_MAX = 64;
/** The most logins of one network, because anyone can make the registry wait for the issuer. */
const AT_ISSUER_OF_NETWORK_MAX = 8;

type Handlers = Readonly<Record<LoginName, Handler>>;

/** Creates the handlers. Without identity only `getSession` answers; all others throw `login.not-configured`. */
export function createLoginHandlers(parts: LoginHandlerParts): Handlers {
  const { identity, callers, version, catalogUrl, ownAccess, readKey, closing } = parts;
  async function sessionOf(actor: Actor, more: Pick<SessionAnswer, 'version' | 'catalog_url'>): Promise<SessionAnswer> {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(READ_MAX_MS)]);
    const answer = sessionAnswer(actor, { ...(await ownAccess(actor, signal)), ...more });
    if (actor.kind !== 'api_key') return answer;
    const key = await readKey(actor.keyId, { actor, signal }).catch((error: unknown) => {
      // it was revoked within the seconds for which this process caches it
      if (error instanceof RequestError && error.code === 'api-key.not-found') throw failedAuthentication();
      throw error;
    });
    return { ...answer, key };
  }
  const getSession: Handler = async (request, reply) =>
    reply.send(await sessionOf(callers.actorOf(request), { version, catalog_url: catalogUrl(request) }));
  if (identity !== undefined) return { ...handlersOf({ ...parts, identity }), getSession };
  const absent: Handler = async () => {
    throw new RequestError(
      'login.not-configured',
      'this registry has no login: TALLY_OIDC_ISSUER is not set, and programs on its machine need none',
    );
  };
  return {
    beginLogin: absent,
    answerLogin: absent,
    showConsent: absent,
    decideLogin: absent,
    createToken: absent,
    logOut: absent,
    getSession,
  };
}

function failedAuthentication(): RequestError {
  return new RequestError(AUTHENTICATION_FAILED.code, AUTHENTICATION_FAILED.detail);
}

function handlersOf(parts: LoginHandlerParts & { readonly identity: LoginParts }): Omit<Handlers, 'getSession'> {
  const { identity, callers, telemetry, closing } = parts;
  const { logins, sessions } = identity;
  /** The networks of the callers that wait for the issuer, one entry each. */
  const atIssuer: string[] = [];
  const readers = new Map(rowsOfListener.map((row) => [row.operation, requestReader(row)]));
  const read = (name: LoginName, request: FastifyRequest) => readers.get(name)?.(request) ?? {};
  const cookies = () => cookieNamesOf(identity.publicUrl());
  const set = (reply: FastifyReply, name: string, value: string, maxAgeMs: number): void =>
    void reply.header('set-cookie', cookieOf(identity.publicUrl(), name, value, maxAgeMs));
  const forget = (reply: FastifyReply, name: string): void => set(reply, name, '', 0);

  function originOf(request: FastifyRequest): Origin {
    return { address: addressOf(request), requestId: randomUUID() };
  }

  /** Asks the issuer. Each waiting login holds a connection, and anyone can begin one. Throws `request.overloaded` above the limits. */
  async function askIssuer<Answer>(request: FastifyRequest, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const network = addressGroupOf(addressOf(request) ?? '');
    const isMany = atIssuer.filter((each) => each === network).length >= AT_ISSUER_OF_NETWORK_MAX;
    if (isMany || atIssuer.length >= AT_ISSUER_MAX) {
      const waiting = isMany ? `${AT_ISSUER_OF_NETWORK_MAX} logins from your address` : `${AT_ISSUER_MAX} logins`;
      throw new RequestError('request.overloaded', `${waiting} are already waiting for the issuer: try again in a second`);
    }
    atIssuer.push(network);
    try {
      return await ask(AbortSignal.any([closing, AbortSignal.timeout(ISSUER_MAX_MS)]));
    } finally {
      atIssuer.splice(atIssuer.indexOf(network), 1);
    }
  }

  /** The cookie of a browser's login. */
  function loginOf({ headers }: FastifyRequest): string {
    return cookieIn(headers.cookie, cookies().login) ?? '';
  }

  /** An invalid code counts as a failed credential. */
  async function sessionFor(
    { code, code_verifier: verifier, redirect_uri: redirectUri }: TokenRequest,
    origin: Origin,
  ): Promise<StartedSession> {
    try {
      return await logins.redeem({ code, verifier, redirectUri }, origin);
    } catch (error) {
      if (error instanceof RequestError && error.code === 'login.invalid-grant') {
        identity.attempts?.failed({ address: origin.address, reason: 'authorization_code not valid' });
      }
      throw error;
    }
  }

  /** Shows people their errors as a page. */
  function forPeople(handler: Handler): Handler {
    return async (request, reply) => {
      try {
        return await handler(request, reply);
      } catch (error) {
        if (!/text\/html/i.test(request.headers.accept ?? '')) throw error;
        const problem = loggedProblemOf(error, telemetry);
        return reply.code(problem.status).headers(pageHeaders).type(PAGE_TYPE).send(problemPage(problem));
      }
    };
  }

  return {
    beginLogin: forPeople(async (request, reply) => {
      const elsewhere = ownAddress(request, identity.publicUrl());
      if (elsewhere !== undefined) return reply.redirect(elsewhere, 302);
      const { query } = loginRows['GET /login/authorize'];
      const wanted = loginRequestOf(query.parse(read('beginLogin', request).query));
      const { cookie, location } = await askIssuer(request, (signal) => logins.begin(wanted, signal));
      set(reply, cookies().login, cookie, LOGIN_MS);
      return reply.redirect(location, 302);
    }),
    answerLogin: forPeople(async (request, reply) => {
      read('answerLogin', request);
      const query = request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : '';
      const answered = await askIssuer(request, (signal) => logins.answered(loginOf(request), query, originOf(request), signal));
      switch (answered.kind) {
        case 'asking':
          return reply.redirect('/login/consent', 303);
        case 'browser':
          // the cookie is replaced, so nobody could end this browser's earlier session
          await sessions.endByCookie(cookieIn(request.headers.cookie, cookies().session) ?? '');
          forget(reply, cookies().login);
          set(reply, cookies().session, answered.cookie, BROWSER_MS);
          return reply.redirect(answered.returnTo, 303);
        case 'failed':
          forget(reply, cookies().login);
          if (answered.redirect === undefined) throw answered.error;
          return reply.redirect(answered.redirect, 303);
      }
    }),
    showConsent: forPeople(async (request, reply) => {
      const consent = await logins.consent(loginOf(request), AbortSignal.any([closing, AbortSignal.timeout(READ_MAX_MS)]));
      return reply.headers(pageHeaders).type(PAGE_TYPE).send(consentPage(consent));
    }),
    async decideLogin(request, reply) {
      requireOwnPage(request, identity.publicUrl());
      const { login, allow } = loginRows['POST /login/consent'].body.parse(read('decideLogin', request).body);
      const decision = await logins.decide(loginOf(request), { token: login, allow }, originOf(request));
      forget(reply, cookies().login);
      return reply.send(decision);
    },
    async createToken(request, reply) {
      const body = loginRows['POST /login/token'].body.parse(read('createToken', request).body);
      const { token, lifeMs } = await sessionFor(body, originOf(request));
      return reply.send({ access_token: token, token_type: 'Bearer', expires_in: lifeMs / 1_000 });
    },
    async logOut(request, reply) {
      const actor = callers.actorOf(request);
      if (actor.kind === 'session') await logins.logOut(actor, originOf(request));
      forget(reply, cookies().session);
      return reply.code(204).send();
    },
  };
}

/**
 * The same request at the registry's own address, if it came to another name of this machine. Browsers don't send cookies of `localhost`
 * to 127.0.0.1, to which the issuer returns them.
 */
function ownAddress({ headers, url }: FastifyRequest, publicUrl: string): string | undefined {
  const own = new URL(publicUrl);
  const isOther = headers.host !== undefined && headers.host.toLowerCase() !== own.host;
  const isLocal = LOOPBACK_HOST.test(headers.host ?? '');
  // only on the same port: through a tunnel or proxy on another port, the browser would come back here
  const isSamePort = headers.host?.split(':').at(-1) === own.port;
  return own.protocol === 'http:' && isOther && isLocal && isSamePort ? `${own.origin}${url}` : undefined;
}

/** The login that the request means. Throws `request.invalid`. */
function loginRequestOf(query: AuthorizeRequest): LoginRequest {
  const {
    code_challenge: challenge,
    code_challenge_method: method,
    state,
    redirect_uri: redirectUri,
    machine,
    return_to: returnTo,
  } = query;
  if (returnTo !== undefined) {
    if (Object.keys(query).length === 1) return { flow: 'browser', returnTo };
    throw new RequestError(
      'request.invalid',
      'return_to: must be the only parameter; a client sends code_challenge, state and redirect_uri instead',
    );
  }
  if (challenge === undefined || method === undefined) {
    throw new RequestError('request.invalid', 'code_challenge and code_challenge_method=S256: must be given');
  }
  const client = { challenge, ...(machine !== undefined && { machine }) };
  if (query.no_browser === 'true') {
    if (redirectUri === undefined) return { flow: 'paste', ...client };
    throw new RequestError('request.invalid', 'redirect_uri: must not be given with no_browser=true, because a person copies the code');
  }
  if (redirectUri === undefined || state === undefined) {
    throw new RequestError('request.invalid', 'redirect_uri and state: must be given, unless no_browser=true');
  }
  return { flow: 'client', ...client, redirectUri, clientState: state };
}

function sessionAnswer(actor: Actor, more: Pick<SessionAnswer, 'reads' | 'advice' | 'version' | 'catalog_url'>): SessionAnswer {
  const { kind } = actor;
  if (kind === 'local')
    return { user: { id: 'local', email: nameOfActor(actor) }, role: 'admin', scopes: scopesOfRole('admin'), kind, ...more };
  const { userId, email, isUnverified, role } = actor;
  const scopes = kind === 'api_key' ? actor.scopes : scopesOfRole(role);
  return { user: { id: userId, email, email_verified: isUnverified !== true }, role, scopes, kind, ...more };
}

/**
 * The login's pages. They need no further request, their only script and style are permitted by hash, and every text from outside is
 * escaped.
 */

/** A piece of HTML, as opposed to a text that must be escaped. */
interface Html {
  readonly html: string;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** HTML from a template, with every inserted text escaped. Not named html, because the formatter would then change the text and its hashes. */
function markup(parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  const inserted = values.map((value) => {
    if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign] ?? '');
    return 'html' in value ? value.html : value.map((each) => each.html).join('');
  });
  return { html: parts.map((part, index) => `${part}${inserted[index] ?? ''}`).join('') };
}

const STYLE = `
:root { color-scheme: light dark; --text: #1a1a1a; --back: #ffffff; --line: #6b6b6b; --main: #0b57d0; --on-main: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #16181c; --line: #9a9a9a; --main: #8ab4f8; --on-main: #10131a; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
main { max-width: 32rem; margin: 2rem auto; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; }
dt { color: var(--text); opacity: .8; } dd { margin: 0; font-weight: 600; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem; }
button { font: inherit; min-height: 2.75rem; padding: .5rem 1.25rem; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit; cursor: pointer; }
button.main { background: var(--main); border-color: var(--main); color: var(--on-main); }
button:focus-visible, output:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
button:disabled { opacity: .6; cursor: default; }
output, code { font-family: ui-monospace, monospace; }
output { display: block; margin: 1rem 0; padding: .75rem; border: 1px solid var(--line); border-radius: .4rem; user-select: all; }
[hidden] { display: none; }
`;

const SCRIPT = `
const main = document.querySelector('main');
const status = document.querySelector('[role=status]');
const buttons = [...document.querySelectorAll('button[data-allow]')];
const report = (text) => { status.textContent = text; };
async function decide(allow) {
  for (const button of buttons) button.disabled = true;
  report('One moment…');
  try {
    const answer = await fetch('/login/consent', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json', 'x-tally-csrf': '1' },
      body: JSON.stringify({ login: main.dataset.login, allow }),
    });
    const body = await answer.json();
    if (!answer.ok) return report(body.detail);
    const target = body.redirect ? new URL(body.redirect) : undefined;
    if (target && target.protocol === 'http:' && ['127.0.0.1', '[::1]'].includes(target.hostname)) {
      report(allow ? 'You are logged in. You can close this page when the program says so.' : 'The login was refused.');
      return location.assign(target.href);
    }
    document.querySelector('.actions').hidden = true;
    if (body.code) {
      document.querySelector('#paste').hidden = false;
      const output = document.querySelector('output');
      output.textContent = body.code;
      output.focus();
      return report('Copy the code below. It is valid for one minute.');
    }
    report('The login was refused. You can close this page.');
  } catch {
    for (const button of buttons) button.disabled = false;
    report('The registry cannot be reached. Try again.');
  }
}
for (const button of buttons) button.addEventListener('click', () => decide(button.dataset.allow === 'true'));
document.querySelector('#copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(document.querySelector('output').textContent);
    report('The code was copied.');
  } catch {
    report('Select the code and copy it.');
  }
});
`;

function sourceOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Every page's headers. */
const pageHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    `script-src ${sourceOf(SCRIPT)}`,
    `style-src ${sourceOf(STYLE)}`,
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

const PAGE_TYPE = 'text/html; charset=utf-8';

interface Page {
  readonly title: string;
  readonly body: Html;
  readonly script?: Html;
}

// as a whole, because the hash covers everything between the tags
const styleElement: Html = { html: `<style>${STYLE}</style>` };
const scriptElement: Html = { html: `<script>${SCRIPT}</script>` };

function pageOf({ title, body, script = markup`` }: Page): string {
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Tally</title>
${styleElement}
</head>
<body>
${body}
${script}
</body>
</html>
`.html;
}

/** The page on which a person allows a client to act for them. */
export function consentPage({ email, emailVerified, userId, flow, machine, token }: Consent): string {
  const where = machine === undefined ? 'a program' : machine;
  const body = markup`<main data-login="${token}">
    <h1>Log in to Tally on ${where}?</h1>
    <p>
      A program asks to use Tally with your rights. Allow it only if you have just started this login
      yourself${flow === 'paste' ? ', in your own terminal or notebook' : ' on this machine'}.
    </p>
    <dl>
      <dt>You are</dt>
      <dd>${email}${emailVerified ? '' : ' (not verified)'}</dd>
      <dt>User ID</dt>
      <dd>${userId}</dd>
      <dt>Machine</dt>
      <dd>${machine ?? 'not named'}</dd>
    </dl>
    <noscript><p>This page needs JavaScript.</p></noscript>
    <div class="actions">
      <button type="button" class="main" data-allow="true">Allow</button><button type="button" data-allow="false">Refuse</button>
    </div>
    <p role="status" aria-live="polite"></p>
    <section id="paste" hidden>
      <p>Paste this code into the program that is waiting for it. Show it to nobody else.</p>
      <output tabindex="0" aria-label="Login code"></output>
      <button type="button" id="copy">Copy the code</button>
    </section>
  </main>`;
  return pageOf({ title: 'Log in', body, script: scriptElement });
}

/** What a person sees when a login fails. */
function problemPage({ title, detail, code, advice }: Problem): string {
  const body = markup`<main>
    <h1>The login did not succeed</h1>
    <p>${detail}.</p>
    ${advice === undefined ? markup`` : markup`<p>${advice}</p>`}
    <p>You can close this page and begin the login again.</p>
    <p>
      <small>${title}, <code>${code}</code></small>
    </p>
  </main>`;
  return pageOf({ title: 'Login failed', body });
}
