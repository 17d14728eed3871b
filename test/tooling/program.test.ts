import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { textOf } from '../docs/pages.ts';
import { MAIN, nodeOptions, ownVariables } from '../support/servers/program.ts';

it('is given the same options however it is started', () => {
  const started = ['node', ...nodeOptions()].join(' ');
  expect(packageJson.scripts.start).toBe(`${started} src/tally.js serve --embedded`);
  expect(packageJson.scripts.tally).toBe(`${started} src/tally.js`);
  expect(textOf('config/systemd/tally.service')).toContain(`\nExecStart=/usr/bin/${started} /opt/tally/dist/program/tally.js serve\n`);
  for (const [name, value] of Object.entries(ownVariables())) {
    expect(textOf('config/systemd/tally.service')).toContain(`\nEnvironment=${name}=${value}\n`);
  }
});

/** Says on stderr, when the process ends, whether Node's own client for fetch and WebSocket was loaded. */
const SAYS = "data:text/javascript,process.on('exit',()=>console.error(process.moduleLoadList.some((each)=>each.includes('undici'))))";

it('does not load, with node:http, a client that it does not use', async () => {
  const { stderr } = await promisify(execFile)(process.execPath, ['--import', SAYS, MAIN, '--version']);
  expect(stderr).toBe('false\n');
});
