/** The entry of `npm run bench`: one command for each benchmark. Exit codes: 0 measured; 1 what was measured went wrong; 64 called in a way it cannot be. */
import { Command, CommanderError } from 'commander';
import { ingestBench } from './ingest/ingest.ts';
import { feedBench } from './feed/feed.ts';
import { idleBench } from './idle/idle.ts';
import { largeBench } from './large/large.ts';
import { reindexBench } from './reindex/reindex.ts';
import { accessBench } from './access/access.ts';
import { searchBench } from './search/search.ts';
import { startBench } from './start/start.ts';

const program = new Command('bench')
  .usage('BENCH [options]')
  .description('Benchmarks. They measure and check; they assert no time.')
  .exitOverride()
  .addHelpText('after', '\nExit codes: 0 measured; 1 failed, or what was measured did its work wrong; 64 called in a way it cannot be.');
for (const addBench of [ingestBench, reindexBench, largeBench, searchBench, feedBench, accessBench, idleBench, startBench])
  addBench(program);
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 64;
  else {
    console.error(error);
    process.exitCode = 1;
  }
}
