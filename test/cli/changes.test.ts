import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { objectDocument } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

const pageOf = (cursor: string, more: boolean, ...keys: readonly string[]) => ({
  items: keys.map((key) => ({ ...objectDocument, key })),
  cursor,
  more,
});
const linesOf = (stdout: string): readonly Readonly<Record<string, unknown>>[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

describe('tally changes', () => {
  it('prints all there is, each page before its cursor, and goes on where it is told to', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...pageOf('one', true), reset: true });
    world.nextAnswers(pageOf('two', true, 'a', 'b'));
    world.nextAnswers(pageOf('two', false));
    const { exitCode, stdout, stderr } = await world.run('changes photos --prefix 2026/ --after zero');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(linesOf(stdout)).toEqual([
      { reset: true },
      { cursor: 'one', more: true },
      expect.objectContaining({ key: 'a' }),
      expect.objectContaining({ key: 'b' }),
      { cursor: 'two', more: true },
    ]);
    const query = { bucket: 'photos', prefix: '2026/', limit: 1_000 };
    expect(world.asked).toEqual(['zero', 'one', 'two'].map((after) => ['listChanges', { query: { ...query, after } }]));
  });

  it('--follow goes on over an outage, and ends with the grant', async () => {
    const world = createCliWorld();
    world.nextAnswers(pageOf('one', false, 'a'));
    world.nextFails(new FaultError('registry.unreachable', 'refused'));
    world.nextAnswers(pageOf('two', false, 'b'));
    world.nextFails(new RequestError('bucket.not-connected', 'photos is not connected'));
    const { exitCode, stdout, stderr } = await world.run('changes photos --follow');
    expect(exitCode).not.toBe(0);
    expect(linesOf(stdout).map(({ key, cursor }) => key ?? cursor)).toEqual(['a', 'one', 'b', 'two']);
    expect(stderr).toMatch(/refused.*; the command keeps trying\n.*photos is not connected/s);
    expect(world.asked.map(([, request]) => (request as { query: { after?: string } }).query.after)).toEqual([
      undefined,
      'one',
      'one',
      'two',
    ]);
  });

  it('--follow says after Ctrl-C how to go on with the same feed', async () => {
    const world = createCliWorld();
    world.nextDoes(async () => {
      world.interrupt();
      return pageOf('WyJuZXcu', true);
    });
    const { exitCode, stdout, stderr } = await world.run('changes photos --follow', '--prefix=-2026/my cat', '--after=WyJvbGQ');
    expect([exitCode, stdout]).toEqual([130, '{"cursor":"WyJuZXcu","more":true}\n']);
    expect(stderr).toBe("To continue: tally changes photos '--prefix=-2026/my cat' --after=WyJuZXcu --follow\n");
  });

  it('waits for a slow reader without collecting listeners', async () => {
    const stdout = new PassThrough({ highWaterMark: 1 });
    stdout.resume();
    const before = stdout.listenerCount('close');
    const world = createCliWorld({ stdout });
    for (let page = 1; page <= 20; page += 1) world.nextAnswers(pageOf(`page-${page}`, page < 20, 'a'));
    expect((await world.run('changes photos')).exitCode).toBe(0);
    expect(stdout.listenerCount('close')).toBe(before);
  });
});
