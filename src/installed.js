/**
 * Node strips the types of no file below node_modules, which is where npm puts the package. Imported there before main.ts, this
 * strips the types of Tally's own files in the same way.
 */
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

const OWN = new URL('.', import.meta.url).href;

// Node 24 calls the function experimental at its first use, and strips the types of all other programs without a word
const emitWarning = process.emitWarning.bind(process);
process.emitWarning = () => undefined;
stripTypeScriptTypes('');
process.emitWarning = emitWarning;

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(OWN) || !url.endsWith('.ts')) return nextLoad(url, context);
    return { format: 'module', shortCircuit: true, source: stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8')) };
  },
});
