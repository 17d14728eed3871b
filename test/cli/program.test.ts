import { describe, expect, it } from 'vitest';
import { programOf } from '../../src/cli/program.ts';
import { FaultError } from '../../src/domain/fault.ts';
import { createCliWorld } from './world.ts';

describe('the program as it must be typed', () => {
  it.each([
    ['npx tally', { script: '/work/node_modules/.bin/tally', npmExecPath: '/usr/lib/node_modules/npm/bin/npm-cli.js' }],
    ['npx tally', { script: '/work/src/tally.js', npmExecPath: '/usr/lib/node_modules/npm/bin/npm-cli.js' }],
    ['tally', { script: '/usr/local/bin/tally', npmExecPath: undefined }],
    ['node /opt/tally/src/tally.js', { script: '/opt/tally/src/tally.js', npmExecPath: undefined }],
    ['tally', { script: undefined, npmExecPath: undefined }],
  ])('is %s for %j', (program, call) => {
    expect(programOf(call)).toBe(program);
  });

  it('stands in hints, in advice and in help', async () => {
    const world = createCliWorld({ program: 'npx tally' });
    expect((await world.run('reindex', 'photos')).stderr).toBe('To see its progress: npx tally jobs job-1\n');
    expect((await world.run('bucket', 'add', 'photos')).stderr).toContain(': npx tally reindex photos\n');
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket nope'));
    expect((await world.run('bucket', 'add', 'nope')).stderr).toContain('`npx tally bucket remove NAME`');
    const { stdout } = await world.run('search', '--help');
    expect(stdout).toContain('Usage: npx tally search');
    expect(stdout).toContain('\n  npx tally search annual report');
    expect((await world.run('serve', '--help')).stdout).toContain('https://user:pass@host:9200 npx tally serve');
    expect((await world.run('--help')).stdout).toContain('\n  npx tally serve --embedded');
  });
});
