/** The bench `access`: how long the two questions about grants, a login and the narrowing of a request take. */
import { systemClock } from '../../../src/process/clock.ts';
import type { Grant } from '../../../src/identity/grants/grant.rules.ts';
import { createStoredGrants, createReadableBy, createAccessOperations } from '../../../src/identity/grants/grants.ts';
import { signIn } from '../../../src/identity/users.ts';
import type { StateStore } from '../../../src/store/store.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { localActor, sessionActor } from '../../support/identity/actors.ts';
import { commandOf, countOption, namesOption, OPENSEARCH_HELP } from '../bench-command.ts';
import { openIndex, products, type Product } from '../search/search.ts';
import { quantileOf } from '../report.ts';

interface AccessOptions {
  readonly index: readonly Product[];
  readonly grants: number;
  readonly users: number;
  readonly groups: number;
  readonly rounds: number;
}

/** The bench's command. */
export const accessBench = commandOf<AccessOptions>({
  name: 'access',
  description: 'The duration of the questions about grants, of a login with groups, and of finding out what a caller may read.',
  options: [
    namesOption('--index <names>', 'of the products', products),
    countOption('--grants <count>', 'of the policy', [1, 10_000], 10_000),
    countOption('--users <count>', 'who have logged in', [1, 10_000], 1_000),
    countOption('--groups <count>', 'of each user', [0, 1_000], 200),
    countOption('--rounds <count>', 'of all questions', [1, 1_000], 20),
  ],
  help: OPENSEARCH_HELP,
  run,
});

async function run({ index, ...options }: AccessOptions, tell: (text: string) => void) {
  const questions: object[] = [];
  for (const product of index) {
    const opened = await openIndex(product);
    try {
      await opened.store.setup.prepare();
      tell(`${product}: storing ${options.users} users and ${options.grants} grants`);
      questions.push(...(await measure(opened.store.state, options)).map((row) => ({ index: product, ...row })));
    } finally {
      await opened.dispose();
    }
  }
  return { questions };
}

/** Half of the grants are to teams, a fifth to persons, the rest to groups of nobody. Each person is in four teams and in other groups. */
function grantAt(at: number): Grant {
  const who = at % 10 < 5 ? `group:team-${at % 400}` : at % 10 < 7 ? `user:user${at % 1_000}@example.com` : `group:nobody-${at}`;
  return { who, where: `bucket-${at % 50}/folder-${at}/`, granted_by: 'bench', created_at: '2026-01-01T00:00:00.000Z' };
}

async function measure(state: StateStore, { grants, users, groups, rounds }: Omit<AccessOptions, 'index'>) {
  const clock = systemClock;
  const rules = { issuer: 'https://id.example.com', allowed: [{ kind: 'any' as const }], adminEmails: [] };
  const stored = createStoredGrants({ state, clock });
  await stored.change(() => Array.from({ length: grants }, (_, at) => grantAt(at)));
  const logIn = (at: number) =>
    signIn(
      { state, clock, rules },
      { issuer: rules.issuer, subject: `s-${at}`, email: `user${at}@example.com`, emailVerified: true },
      { groups: Array.from({ length: groups }, (_, group) => (group < 4 ? `team-${(at + group) % 400}` : `other-${group}`)) },
    );
  const [first] = await Promise.all(Array.from({ length: users }, (_, at) => logIn(at)));
  const id = first?.userId ?? '';
  const everyone = { everyoneReads: false };
  const readableBy = createReadableBy({ grants: stored, telemetry: createFakeTelemetry(), everyoneReads: false });
  const operations = createAccessOperations({
    grants: stored,
    state,
    rules,
    clock,
    audited: (_, operation) => operation,
    ...everyone,
  });
  const context = { actor: localActor, signal: new AbortController().signal };

  async function readers(): Promise<number> {
    let found = 0;
    let cursor: string | undefined;
    do {
      const query = { where: 'bucket-6/folder-6/', limit: 1_000, ...(cursor !== undefined && { cursor }) };
      const page = await operations.listReaders({ query }, context);
      found += page.items.length;
      cursor = page.next;
    } while (cursor !== undefined);
    return found;
  }
  const actor = sessionActor({ userId: id, email: 'user0@example.com', groups: first?.groups ?? [] });
  const fresh = () =>
    createReadableBy({ grants: createStoredGrants({ state, clock }), telemetry: createFakeTelemetry(), everyoneReads: false });
  const lengthOf = (readable: Awaited<ReturnType<typeof readableBy>>): number => (readable === 'everything' ? 1 : readable.length);
  const questions: Readonly<Record<string, () => Promise<number>>> = {
    'who reads this part': readers,
    'what does this person read': async () => (await operations.getAccess({ params: { id } }, context)).grants.length,
    'a login with groups': async () => (await logIn(0)).groups?.length ?? 0,
    'what the caller reads': async () => lengthOf(await readableBy(actor)),
    'what the caller reads, after a change': async () => lengthOf(await fresh()(actor)),
  };
  const rows = [];
  for (const [question, ask] of Object.entries(questions)) {
    const ms: number[] = [];
    let found = await ask();
    for (let round = 0; round < rounds; round += 1) {
      const beganMs = performance.now();
      found = await ask();
      ms.push(performance.now() - beganMs);
    }
    rows.push({ question, found, p50Ms: quantileOf(ms, 0.5), p95Ms: quantileOf(ms, 0.95) });
  }
  return rows;
}
