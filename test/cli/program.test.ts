import { describe, expect, it } from 'vitest';
import { containerOf, programOf, typedProgram } from '../../src/cli/program.ts';
import { FaultError } from '../../src/domain/fault.ts';
import { job } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

const NPM = '/usr/lib/node_modules/npm/bin/npm-cli.js';

describe('the program as it must be typed', () => {
  it.each([
    ['npx @tally-index/tally', { script: '/root/.npm/_npx/5f3d/node_modules/.bin/tally', npmExecPath: NPM }],
    ['npx @tally-index/tally', { script: '/work/node_modules/.bin/tally', npmExecPath: undefined }],
    ['npm run -s tally --', { script: '/work/src/tally.js', npmExecPath: NPM }],
    ['tally', { script: '/usr/local/bin/tally', npmExecPath: undefined }],
    ['node /opt/tally/src/tally.js', { script: '/opt/tally/src/tally.js', npmExecPath: undefined }],
    ['tally', { script: undefined, npmExecPath: undefined }],
    ['tally', { script: '/usr/local/bin/tally', npmExecPath: NPM }],
    ["node '/my disk/src/tally.js'", { script: '/my disk/src/tally.js', npmExecPath: undefined }],
    [
      'docker exec 0123456789ab tally',
      {
        script: '/usr/local/bin/tally',
        npmExecPath: undefined,
        container: containerOf({ isDocker: true, hostname: '0123456789ab', pid: 7, ppid: 0, isServing: false }),
      },
    ],
  ])('is %s for %j', (program, call) => {
    expect(programOf(call)).toBe(program);
  });

  it.each([
    ['a shell inside of the container called it', { ppid: 1 }],
    ['it is the container and leaves nothing behind', { pid: 1 }],
    ['someone else named the container', { hostname: 'tally-ingest-7d9f' }],
    ['there is no container', { isDocker: false }],
  ])('names no container where %s', (_, facts) => {
    const outside = { isDocker: true, hostname: '0123456789ab', pid: 7, ppid: 0, isServing: false };
    expect(containerOf({ ...outside, ...facts })).toBeUndefined();
    expect(containerOf({ ...outside, pid: 1, isServing: true })).toBe('0123456789ab');
  });

  it('stands with --registry where that was typed, but for what asks no registry', async () => {
    const world = createCliWorld({ program: 'npm run -s tally --' });
    const at = ['--registry', 'http://127.0.0.1:8080'];
    expect((await world.run('reindex photos', ...at)).stderr).toBe(
      'To see its progress: npm run -s tally -- --registry http://127.0.0.1:8080 jobs job-1\n',
    );
    world.nextFails(new FaultError('index.state-missing', 'nothing is there'));
    const { stderr } = await world.run('jobs', ...at);
    expect(stderr).toContain('or `npm run -s tally -- login https://HOST`');
  });

  it('serves in a container by the arguments of the container', () => {
    const typed = typedProgram('docker exec 0123456789ab tally', undefined);
    expect([typed('serve'), typed('jobs')]).toEqual(['tally', 'docker exec 0123456789ab tally']);
  });

  it('stands in what a registry says: findings, advice of a job and reasons of gaps', async () => {
    const world = createCliWorld({ program: 'npm run -s tally --' });
    const finding = {
      code: 'c',
      severity: 'broken',
      what: 'see `tally gaps`',
      why: 'w',
      fix: 'aws sns x && tally bucket apply photos',
      blocks: false,
    };
    world.nextAnswers({
      bucket: 'photos',
      status: 'broken',
      checked_at: '',
      findings: [finding, { ...finding, fix: 'tally bucket plan photos' }],
    });
    const { stdout } = await world.run('doctor photos');
    expect(stdout).toContain('broken: see `npm run -s tally -- gaps` (c)');
    expect(stdout).toContain('do   aws sns x && npm run -s tally -- bucket apply photos');
    expect(stdout).toContain('do   npm run -s tally -- bucket plan photos');
    world.nextAnswers({ ...job, state: 'failed', error: { code: 'bucket.missing', reason: 'gone' } });
    expect((await world.run('jobs job-1')).stdout).toContain('`npm run -s tally -- doctor NAME`');
  });

  it('quotes names for a shell, and lets none of them become a command', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...job, id: '$(reboot)' });
    expect((await world.run('reindex photos')).stderr).toBe("To see its progress: tally jobs '$(reboot)'\n");
  });

  it('stands in hints, in advice and in help', async () => {
    const world = createCliWorld({ program: 'npm run -s tally --' });
    expect((await world.run('reindex photos')).stderr).toBe('To see its progress: npm run -s tally -- jobs job-1\n');
    expect((await world.run('bucket add photos --no-reindex')).stderr).toContain(': npm run -s tally -- reindex photos\n');
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket nope'));
    expect((await world.run('bucket add nope')).stderr).toContain('`npm run -s tally -- doctor NAME`');
    const { stdout } = await world.run('search --help');
    expect(stdout).toContain('Usage: npm run -s tally -- search');
    expect(stdout).toContain('\n  npm run -s tally -- search annual report');
    expect((await world.run('serve --help')).stdout).toContain('https://user:pass@host:9200 npm run -s tally -- serve');
    expect((await world.run('--help')).stdout).toContain('\n  npm run -s tally -- serve --embedded');
  });
});
