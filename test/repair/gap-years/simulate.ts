/**
 * The entry of `npm run simulate:gaps`: plays random years of gaps and prints what was wrong. Exits with 0 if every year ended right
 * (with --mutant: if every mistake was found), and else with 1; each year can be played again by what is printed.
 *
 *   npm run simulate:gaps -- [--years 20] [--days 365] [--seed N] [--mutant all|NAME]
 *
 * Plays years from the seed on (a random one if none is given). With --mutant, plays them with a mistake in the product until it is
 * found; the mistakes are those of mutants.ts.
 */
import { parseArgs } from 'node:util';
import { mutants } from './mutants.ts';
import { playYear, type YearResult } from './play.ts';

const option = { type: 'string' } as const;
const { values } = parseArgs({ options: { years: option, days: option, seed: option, mutant: option } });
const years = Number(values.years ?? 20);
const days = Number(values.days ?? 365);
const firstSeed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const names = values.mutant === 'all' ? Object.keys(mutants) : [values.mutant ?? []].flat();

async function play(seed: number, mutant?: string): Promise<YearResult> {
  const before = process.cpuUsage();
  const result = await playYear(seed, { days, ...(mutant !== undefined && { mutant }) });
  const { user, system } = process.cpuUsage(before);
  const found = result.violations.length === 0 ? 'right' : 'WRONG';
  const { reported, jobs, closed, open } = result.counts;
  const text = `seed ${seed}: ${found}; ${reported} changes reported, ${jobs} jobs, ${closed} gaps closed, ${open} open at the end`;
  process.stdout.write(`${mutant === undefined ? '' : `${mutant}: `}${text}; ${((user + system) / 1_000_000).toFixed(1)} s of CPU\n`);
  for (const violation of result.violations) process.stdout.write(`  ${violation}\n`);
  return result;
}

let isRight = true;
for (const mutant of names) {
  let isFound = false;
  for (let year = 0; year < years && !isFound; year += 1) {
    const { violations } = await play(firstSeed + year, mutant);
    isFound = violations.some((violation) => mutants[mutant]?.finds.test(violation) === true);
  }
  isRight &&= isFound;
}
for (let year = 0; year < years && names.length === 0; year += 1) {
  const { seed, violations } = await play(firstSeed + year);
  if (violations.length > 0) process.stdout.write(`again: npm run simulate:gaps -- --years 1 --days ${days} --seed ${seed}\n`);
  isRight &&= violations.length === 0;
}
// a killed worker of the simulation never ends
process.exit(isRight ? 0 : 1);
