/** A control plane with identity, on stores in memory and with an issuer in memory, and its callers of each kind. */
import type { CheckedOperations } from '../../../src/registry/contract/contract.ts';
import type { Actor, KeyScope } from '../../../src/base/actor.ts';
import type { Store } from '../../../src/store/store.ts';
import type { LoadFiles } from '../../../src/registry/panel.ts';
import type { FailedAttempts } from '../../../src/identity/audit-windows.ts';
import { createPeople } from '../../../src/identity/people.ts';
import { createFakeControl } from '../fakes/control.ts';
import { listenControlPlane } from '../servers/control-plane.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { keyActor } from './actors.ts';
import { createIdentityWorld, logIn, type IdentityWorld } from './world.ts';

interface HttpWorldOptions {
  readonly operations?: CheckedOperations;
  readonly store?: Store;
  /** Default: the bound address. */
  readonly publicUrl?: string;
  readonly catalogUrl?: string;
  readonly trustedProxies?: readonly string[];
  /** Default: failures are noted, and none is too many. */
  readonly attempts?: Pick<FailedAttempts, 'failed'>;
  /** Default: files with some text. */
  readonly loadPanel?: LoadFiles;
}

const EXAMPLES = ['index.html', 'panel-QSV32F7P.js', 'README.html', 'concepts.html', 'reference/error-codes.html'];

/** The files that the examples of the contract name. */
export const someFiles: LoadFiles = async () => new Map(EXAMPLES.map((name) => [name, new TextEncoder().encode('text')]));

export async function startHttpWorld(options: HttpWorldOptions = {}) {
  const { operations, store, publicUrl, catalogUrl, trustedProxies = [], attempts, loadPanel = someFiles } = options;
  let url = '';
  const world = createIdentityWorld({ allowed: ['any'], publicUrl: () => publicUrl ?? url, ...(store !== undefined && { store }) });
  const fake = createFakeControl();
  const failures: { readonly address: string | undefined; readonly reason: string }[] = [];
  const keys = new Map<string, Extract<Actor, { kind: 'api_key' }>>();
  const listener = await listenControlPlane({
    operations: operations ?? fake.checked,
    telemetry: world.telemetry,
    version: '1.67.0',
    loadPanel,
    identity: {
      sessions: world.sessions,
      logins: world.logins,
      authenticateKey: async (secret) => keys.get(secret),
      attempts: attempts ?? { failed: ({ address, reason }) => void failures.push({ address, reason }) },
      trustedProxies,
      publicUrl: world.publicUrl,
    },
    publicUrl,
    catalogUrl,
  });
  const { port } = listener;
  ({ url } = listener);

  return {
    ...world,
    fake,
    /** The credentials that were not valid. */
    failures,
    port,
    url,
    tokenOf: (role: Role) => tokenIn(world, role),
    /** Makes a key valid, and returns its secret. */
    keyOf(role: 'user' | 'admin', scopes: readonly KeyScope[]): string {
      const secret = `qk_${role}${scopes.join('')}`;
      keys.set(secret, keyActor({ role, scopes }));
      return secret;
    },
    send: (method: string, path: string, sent: Parameters<typeof get>[1] = {}): Promise<BrowserAnswer> =>
      get(`${url}${path}`, { ...sent, method }),
    close: () => listener.close(),
    listenAtSocket: (path: string) => listener.listenAtSocket(path),
  };
}

type Role = 'user' | 'admin';

/** Logs a person of the role in as a program, and resolves with the token. */
export async function tokenIn(world: IdentityWorld, role: Role): Promise<string> {
  const sub = `s-${role}`;
  world.issuer.personIs({ sub, email: `${role}@example.com`, email_verified: true });
  const { store, clock } = world;
  const rules = { allowed: [{ kind: 'any' as const }], adminEmails: [] };
  if (role === 'admin') await createPeople({ state: store.state, clock, rules }).change(`sub:${sub}`, { role: 'admin' }, 'root');
  return (await logIn(world)).token;
}

export type HttpWorld = Awaited<ReturnType<typeof startHttpWorld>>;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export const jsonOf = ({ text }: BrowserAnswer): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;
