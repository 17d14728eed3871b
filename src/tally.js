#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=131072 node --max-semi-space-size=16
/**
 * The program's first file: it checks the version of Node, in a syntax that older versions can read, and starts main.ts.
 *
 * The option in the first line keeps V8 from using 128 MiB for objects that are younger than a message in hand. It can
 * only be given before the start, so the npm scripts and config/systemd/tally.service contain it too.
 *
 * The variable keeps glibc's threshold where it begins (mallopt(3), M_MMAP_THRESHOLD): buffers above 128 KiB, such as large
 * answers of SQS, are given back to the system when they are free. Otherwise glibc raises it up to 32 MiB and keeps them.
 */
// 24.5 is the first version whose agents can use a proxy
var needed = [24, 5];
var version = process.versions.node.split('.').map(Number);

if (version[0] < needed[0] || (version[0] === needed[0] && version[1] < needed[1])) {
  process.stderr.write(
    'tally: Tally needs Node ' +
      needed.join('.') +
      ' or later, and this is Node ' +
      process.versions.node +
      '. In a clone, `npm ci` installs it for `npm start` and `npm run`; otherwise see https://nodejs.org.\n',
  );
  process.exitCode = 78;
} else {
  // What V8 compiled, and the sources without their types, is kept beside the program for its next start. Who can write there can
  // change the program as well, which is not so in the folder for temporary files that Node would take. Where the program cannot
  // write, it starts without it.
  const { enableCompileCache } = await import('node:module');
  const { fileURLToPath } = await import('node:url');
  enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/tally', import.meta.url)));
  // When an ES module imports node:http, Node reads all of its exports. These three load Node's client for fetch and WebSocket, which
  // Tally doesn't use: 60 ms of CPU at each start.
  const http = process.getBuiltinModule('node:http');
  for (const unused of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, unused);
  await import('./main.ts');
}
