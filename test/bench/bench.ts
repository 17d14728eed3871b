/** The entry of `npm run bench`: one command for each benchmark. Exit codes: 0 measured; 1 what was measured went wrong; 64 called in a way it cannot be. */
import { runBenches } from './run-benches.ts';
import { ingestBench } from './ingest/ingest.ts';
import { idleBench } from './idle/idle.ts';
import { largeBench } from './large/large.ts';
import { panelBench } from './panel/panel.ts';
import { reindexBench } from './reindex/reindex.ts';
import { accessBench } from './access/access.ts';
import { searchBench } from './search/search.ts';
import { startBench } from './start/start.ts';

process.exitCode = await runBenches(
  [ingestBench, reindexBench, largeBench, searchBench, accessBench, panelBench, idleBench, startBench],
  process.argv.slice(2),
  {
    print: (text) => void process.stdout.write(text),
    tell: (text) => void process.stderr.write(text),
  },
);
