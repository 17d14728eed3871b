/** A process that fails where nobody catches it. */
import { exitOnUncaught } from '../../../src/serve/lifecycle.ts';

exitOnUncaught({ exitNow: (code) => process.exit(code), write: (line) => void process.stderr.write(line) });
const error = new Error('no connection to https://tally:secret@index:9200');
setImmediate(() => {
  if (process.argv[2] === 'throws') throw error;
  void Promise.reject(error);
});
// it goes on unless it is ended
setInterval(() => {}, 60_000);
