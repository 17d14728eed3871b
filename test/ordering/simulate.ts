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

/** What was played of one mix: a row of the table. */
interface Played extends Partial<Counts> {
  readonly mix: MixId;
  histories: number;
  wrong: number;
  ms: number;
}

/** Plays the mix up to this many histories in all. */
function playUpTo(played: Played, { histories, seed }: Pick<Plan, 'histories' | 'seed'>): void {
  const startedMs = performance.now();
  for (; played.histories < histories && played.wrong < WRONG_MAX; played.histories += 1) {
    const at = seed + played.histories;
    const result = play(at, mixes[played.mix]);
    for (const [name, count] of Object.entries(result.counts) as [keyof Counts, number][]) played[name] = (played[name] ?? 0) + count;
    if (!isWrong(result)) continue;
    played.wrong += 1;
    process.stderr.write(`wrong: npm run simulate -- --mix ${played.mix} --histories 1 --seed ${at}\n`);
  }
  played.ms += Math.round(performance.now() - startedMs);
}

function simulate({ ids, histories, seed }: Plan): boolean {
  const all = ids.map((mix): Played => ({ mix, histories: 0, wrong: 0, ms: 0 }));
  for (let upTo = 0; upTo < histories;) {
    upTo = Math.min(upTo + TURN, histories);
    for (const played of all) playUpTo(played, { histories: upTo, seed });
    process.stderr.write(`${new Date().toISOString()} seed ${seed}: ${upTo} of each mix played\n`);
  }
  console.log(`\nseed ${seed}`);
  console.table(all);
  return all.every(({ wrong }) => wrong === 0);
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
