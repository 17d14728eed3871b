/**
 * The entry of `npm run simulate:gaps`: plays random years of gaps and prints what was wrong. Exit codes: 0 every year ended
 * right (with --mutant: every mistake was found); 1 not so, and each year can be played again by what is printed; 64 wrong usage.
 */
import { parseArgs } from 'node:util';
import { mutants } from './mutants.ts';
import { playYear, type YearResult } from './play.ts';

const USAGE = `usage: npm run simulate:gaps -- [--years 20] [--days 365] [--seed N] [--mutant all|NAME]

Plays years from the seed on (a random one if none is given). With --mutant, plays them with a mistake in the product until it is
found. The mistakes: ${Object.keys(mutants).join('; ')}.
`;

interface Plan {
  readonly years: number;
  readonly days: number;
  readonly seed: number;
  readonly names: readonly string[];
}

function planOf(args: readonly string[]): Plan | undefined {
  try {
    const option = { type: 'string' } as const;
    const { values } = parseArgs({ args: [...args], options: { years: option, days: option, seed: option, mutant: option } });
    const years = Number(values.years ?? 20);
    const days = Number(values.days ?? 365);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
    const names = values.mutant === 'all' ? Object.keys(mutants) : [values.mutant ?? []].flat();
    const areKnown = names.every((name) => Object.hasOwn(mutants, name));
    return areKnown && [years, days, seed].every((each) => Number.isSafeInteger(each) && each >= 0)
      ? { years, days, seed, names }
      : undefined;
  } catch {
    return undefined;
  }
}

async function play(seed: number, days: number, mutant?: string): Promise<YearResult> {
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

/** Whether every year of the product ended right, or every mistake was found. */
async function simulate({ years, days, seed, names }: Plan): Promise<boolean> {
  let isRight = true;
  for (const mutant of names) {
    let isFound = false;
    for (let year = 0; year < years && !isFound; year += 1) {
      const { violations } = await play(seed + year, days, mutant);
      isFound = violations.some((violation) => mutants[mutant]?.finds.test(violation) === true);
    }
    isRight &&= isFound;
  }
  for (let year = 0; year < years && names.length === 0; year += 1) {
    const { violations } = await play(seed + year, days);
    if (violations.length > 0) process.stdout.write(`again: npm run simulate:gaps -- --years 1 --days ${days} --seed ${seed + year}\n`);
    isRight &&= violations.length === 0;
  }
  return isRight;
}

const plan = planOf(process.argv.slice(2));
if (plan === undefined) process.stderr.write(USAGE);
// a killed worker of the simulation never ends
process.exit(plan === undefined ? 64 : (await simulate(plan)) ? 0 : 1);
