/**
 * The entry of `npm run simulate`: plays many histories of each mix and prints a table. Exit codes: 0 every history ended
 * right; 1 some did not, and each can be played again by what is printed; 64 called in a way it cannot be.
 */
import { parseArgs } from 'node:util';
import { drawHistory } from './simulation/history.ts';
import { mixes, type MixId } from './simulation/mixes.ts';
import { isWrong, play } from './simulation/play.ts';
import type { Counts } from './simulation/world.ts';

const USAGE = `usage: npm run simulate -- [--mix ${Object.keys(mixes).join('|')}] [--histories 1000000] [--seed N]

Plays histories of each mix from the seed on (a random one if none is given). One history alone is printed in full.
`;
/** A mix that goes wrong often is broken: more seeds say nothing more. */
const WRONG_MAX = 10;
/** The mixes take turns of this many histories, so that a run that is ended early has played all of them. */
const TURN = 20_000;

/** What happened, over all histories of a mix. */
const NOTHING: Readonly<Counts> = { joined: 0, exactDeletes: 0, misfits: 0, heldBack: 0, handedOver: 0 };
const countNames = Object.keys(NOTHING) as readonly (keyof Counts)[];

interface Plan {
  readonly ids: readonly MixId[];
  readonly histories: number;
  readonly seed: number;
}

function planOf(args: readonly string[]): Plan | undefined {
  try {
    const options = { mix: { type: 'string' }, histories: { type: 'string' }, seed: { type: 'string' } } as const;
    const { values } = parseArgs({ args: [...args], options });
    const histories = Number(values.histories ?? 1_000_000);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
    const ids = values.mix === undefined ? (Object.keys(mixes) as MixId[]) : [values.mix].filter(isMixId);
    return ids.length > 0 && Number.isSafeInteger(histories) && histories > 0 && Number.isSafeInteger(seed)
      ? { ids, histories, seed }
      : undefined;
  } catch {
    return undefined;
  }
}

function isMixId(text: string): text is MixId {
  return Object.hasOwn(mixes, text);
}

/** What was played of one mix. */
interface Played {
  readonly id: MixId;
  histories: number;
  wrong: number[];
  ms: number;
  readonly counts: Counts;
}

/** Plays the mix up to this many histories in all. */
function playUpTo(played: Played, { histories, seed }: Pick<Plan, 'histories' | 'seed'>): void {
  const startedMs = performance.now();
  while (played.histories < histories && played.wrong.length < WRONG_MAX) {
    const result = play(seed + played.histories, mixes[played.id]);
    for (const name of countNames) played.counts[name] += result.counts[name];
    if (isWrong(result)) {
      played.wrong.push(seed + played.histories);
      process.stderr.write(`wrong: ${commandOf(played.id, seed + played.histories)}\n`);
    }
    played.histories += 1;
  }
  played.ms += performance.now() - startedMs;
}

function simulate({ ids, histories, seed }: Plan): boolean {
  const all = ids.map((id): Played => ({ id, histories: 0, wrong: [], ms: 0, counts: { ...NOTHING } }));
  for (let upTo = Math.min(TURN, histories); ; upTo = Math.min(upTo + TURN, histories)) {
    for (const played of all) playUpTo(played, { histories: upTo, seed });
    const wrong = all.reduce((sum, played) => sum + played.wrong.length, 0);
    process.stderr.write(`${new Date().toISOString()} seed ${seed}: ${upTo} of each mix played, ${wrong} wrong\n`);
    if (upTo === histories) break;
  }
  console.log(`\nseed ${seed}`);
  console.table(
    all.map(({ id, wrong, ms, counts, ...rest }) => ({
      mix: id,
      ...rest,
      wrong: wrong.length,
      seconds: Math.round(ms / 1_000),
      ...counts,
    })),
  );
  const again = all.flatMap(({ id, wrong }) => wrong.map((each) => commandOf(id, each)));
  if (again.length > 0) process.stdout.write(`\nwrong; each alone:\n${again.join('\n')}\n`);
  return again.length === 0;
}

function commandOf(id: MixId, seed: number): string {
  return `npm run simulate -- --mix ${id} --histories 1 --seed ${seed}`;
}

function show({ ids, seed }: Plan): void {
  for (const id of ids) {
    const shown = { history: drawHistory(seed, mixes[id]), result: play(seed, mixes[id]) };
    process.stdout.write(`${id} ${seed} ${JSON.stringify(shown, undefined, 2)}\n`);
  }
}

const plan = planOf(process.argv.slice(2));
if (plan === undefined) {
  process.stderr.write(USAGE);
  process.exitCode = 64;
} else {
  if (plan.histories === 1) show(plan);
  process.exitCode = simulate(plan) ? 0 : 1;
}
