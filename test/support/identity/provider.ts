/** A real issuer in this process: oidc-provider, at which the chosen person is logged in without a page. */
import { createServer, type RequestListener } from 'node:http';
import { Provider } from 'oidc-provider';
import { get } from './browser.ts';
import { closeServer, listen } from '../servers/listening.ts';

export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly groups?: readonly string[];
}

export const CLIENT_ID = 'tally';
export const CLIENT_SECRET = 'a secret of the tests, with + and & in it';

export type StartedProvider = Awaited<ReturnType<typeof startProvider>>;

/**
 * Starts the issuer. `redirectUris`: of the registries that use it; a function is called at the first request, because a
 * registry knows its port only after it was started with the address of the issuer. `choices`: people choose on a page who they are.
 */
export async function startProvider(
  redirectUris: readonly string[] | (() => readonly string[]),
  more: object = {},
  choices: readonly Person[] = [],
) {
  let person: Person = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };
  const people = new Map<string, Person>();
  const server = createServer();
  const url = `http://127.0.0.1:${await listen(server)}`;
  const create = (): Provider =>
    new Provider(url, {
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          redirect_uris: typeof redirectUris === 'function' ? redirectUris() : redirectUris,
          response_types: ['code'],
          grant_types: ['authorization_code'],
        },
      ],
      pkce: { required: () => true },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
      cookies: { keys: ['only for tests'] },
      // in seconds; without them it reports each default that it uses
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
      findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ ...people.get(sub), sub }) }),
      ...more,
    });
  let created: { readonly provider: Provider; readonly callback: RequestListener } | undefined;
  function issuer() {
    if (created !== undefined) return created;
    const provider = create();
    created = { provider, callback: provider.callback() };
    return created;
  }
  const asked: string[] = [];
  server.on('request', (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const { provider, callback } = issuer();
    // people choose at each login, also after they have chosen before
    if (choices.length > 0) request.headers.cookie = withoutSession(request.headers.cookie ?? '');
    if (request.url?.startsWith('/interaction/') !== true) {
      callback(request, response);
      return;
    }
    const chosen = choices.find(({ sub }) => request.url?.endsWith(`?as=${sub}`) === true);
    if (chosen !== undefined) person = chosen;
    people.set(person.sub, person);
    void (async () => {
      const { prompt, params } = await provider.interactionDetails(request, response);
      if (prompt.name === 'login' && choices.length > 0 && chosen === undefined) {
        const links = choices.map(({ sub, email }) => `<p><a href="?as=${sub}">${email}</a></p>`);
        return response
          .setHeader('content-type', 'text/html')
          .end(
            `<!doctype html><meta name="viewport" content="width=device-width"><title>Issuer</title><h1>Who are you?</h1>${links.join('')}`,
          );
      }
      const login = { accountId: person.sub };
      if (prompt.name === 'login' && chosen === undefined) return provider.interactionFinished(request, response, { login });
      const grant = new provider.Grant({ accountId: person.sub, clientId: params.client_id });
      grant.addOIDCScope(params.scope);
      const consent = { grantId: await grant.save() };
      // both in one step for a person who chose, because the session is forgotten between two
      return provider.interactionFinished(request, response, chosen === undefined ? { consent } : { login, consent });
    })();
  });
  return {
    url,
    /** The method and the URL of each request, as its access log would have them. */
    asked: asked as readonly string[],
    /** Who logs in from now on. */
    personIs: (next: Person): void => {
      person = next;
    },
    /** Follows the redirects from an authorization address until they leave the issuer. */
    async authorize(location: string): Promise<string> {
      const cookies = new Map<string, string>();
      let next = location;
      // login and consent, each with a redirect there and back
      for (let step = 0; step < 10 && new URL(next).origin === url; step += 1) {
        const answer = await get(next, { cookies });
        if (answer.location === undefined) throw new Error(`${next} answered ${answer.status}: ${answer.text}`);
        next = new URL(answer.location, next).href;
      }
      return next;
    },
    close: () => closeServer(server),
  };
}

/** Forgets who is logged in at the issuer. */
function withoutSession(cookies: string): string {
  return cookies
    .split('; ')
    .filter((cookie) => !cookie.startsWith('_session'))
    .join('; ');
}
