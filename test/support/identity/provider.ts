/** A real issuer in this process: oidc-provider, at which the chosen person is logged in without a page. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { get } from './browser.ts';

export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly groups?: readonly string[];
}

export const CLIENT_ID = 'tally';
export const CLIENT_SECRET = 'a secret of the tests, with + and & in it';

export interface StartedProvider {
  readonly url: string;
  /** Who logs in from now on. */
  personIs(person: Person): void;
  /** Follows the redirects from an authorization address until they leave the issuer. */
  authorize(location: string): Promise<string>;
  close(): Promise<void>;
}

/** Starts the issuer. `redirectUris`: of the registries that use it. `choices`: people choose on a page who they are. */
export async function startProvider(
  redirectUris: readonly string[],
  more: object = {},
  choices: readonly Person[] = [],
): Promise<StartedProvider> {
  let person: Person = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };
  const people = new Map<string, Person>();
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(url, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: redirectUris,
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
    cookies: { keys: ['only for tests'] },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ ...people.get(sub), sub }) }),
    ...more,
  });
  const callback = provider.callback();
  server.on('request', (request, response) => {
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
          .end(`<!doctype html><title>Issuer</title><h1>Who are you?</h1>${links.join('')}`);
      }
      if (prompt.name === 'login') return provider.interactionFinished(request, response, { login: { accountId: person.sub } });
      const grant = new provider.Grant({ accountId: person.sub, clientId: params.client_id });
      grant.addOIDCScope(params.scope);
      return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
    })();
  });
  return {
    url,
    personIs: (next) => {
      person = next;
    },
    async authorize(location) {
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
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
