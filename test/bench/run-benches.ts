/** The command line of the benchmarks. */
import { Command, CommanderError } from 'commander';
import type { AddBench, Output } from './bench-command.ts';

const exitCodes = { ok: 0, failed: 1, usage: 64 } as const;

/** Runs the benchmark that the arguments name and prints its report; answers the exit code. */
export async function runBenches(benches: readonly AddBench[], args: readonly string[], { print, tell }: Output): Promise<number> {
  const program = new Command('bench')
    .usage('BENCH [options]')
    .description('Benchmarks. They measure and check; they assert no time.')
    .helpOption('-h, --help', 'print help')
    .exitOverride()
    .configureOutput({ writeOut: print, writeErr: tell, getOutHelpWidth: () => 80, getErrHelpWidth: () => 80 })
    .addHelpText('after', '\nExit codes: 0 measured; 1 failed, or what was measured did its work wrong; 64 called in a way it cannot be.');
  for (const addBench of benches) addBench(program, { print, tell });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    tell(`bench: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.failed;
  }
}
