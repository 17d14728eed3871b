/**
 * The entry of `npm run simulate`: plays many histories of each mix and prints a table. Exits with 0 if every history ended right, and
 * else with 1; each that did not can be played again by what is printed.
 *
 *   npm run simulate -- [--mix NAME] [--histories 1000000] [--seed N]
 *
 * Plays histories of each mix from the seed on (a random one if none is given). One history alone is printed in full.
 */
import { parseArgs } from 'node:util';
import { drawHistory } from './simulation/history.ts';
import { mixes, type MixId } from './simulation/mixes.ts';
import { isWrong, play } from './simulation/play.ts';
import type { Counts } from './simulation/world.ts';

/** A mix that goes wrong often is broken: more seeds say nothing more. */
const WRONG_MAX = 10;
/** The mixes take turns of this many histories, so that a run that is ended early has played all of them. */
const TURN = 20_000;

const option = { type: 'string' } as const;
const { values } = parseArgs({ options: { mix: option, histories: option, seed: option } });
const ids = Object.keys(mixes).filter((id) => id === (values.mix ?? id)) as MixId[];
const histories = Number(values.histories ?? 1_000_000);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));

/** What was played of one mix: a row of the table. */
interface Played extends Partial<Counts> {
  readonly mix: MixId;
  histories: number;
  wrong: number;
  ms: number;
}

/** Plays the mix up to this many histories in all. */
function playUpTo(played: Played, upTo: number): void {
  const startedMs = performance.now();
  for (; played.histories < upTo && played.wrong < WRONG_MAX; played.histories += 1) {
    const at = seed + played.histories;
    const result = play(at, mixes[played.mix]);
    for (const [name, count] of Object.entries(result.counts) as [keyof Counts, number][]) played[name] = (played[name] ?? 0) + count;
    if (!isWrong(result)) continue;
    played.wrong += 1;
    process.stderr.write(`wrong: npm run simulate -- --mix ${played.mix} --histories 1 --seed ${at}\n`);
  }
  played.ms += Math.round(performance.now() - startedMs);
}

const all = ids.map((mix): Played => ({ mix, histories: 0, wrong: 0, ms: 0 }));
for (let upTo = 0; upTo < histories;) {
  upTo = Math.min(upTo + TURN, histories);
  for (const played of all) playUpTo(played, upTo);
  process.stderr.write(`${new Date().toISOString()} seed ${seed}: ${upTo} of each mix played\n`);
}
for (const id of histories === 1 ? ids : []) {
  const shown = { history: drawHistory(seed, mixes[id]), result: play(seed, mixes[id]) };
  process.stdout.write(`${id} ${seed} ${JSON.stringify(shown, undefined, 2)}\n`);
}
console.log(`\nseed ${seed}`);
console.table(all);
process.exitCode = all.length > 0 && all.every(({ wrong }) => wrong === 0) ? 0 : 1;
