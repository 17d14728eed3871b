import { describe, expect, test } from 'vitest';
import { runTally } from '../support/servers/daemon.ts';
import { openFlow } from '../support/worlds/flow.ts';

describe('a second daemon on one SQLite file', () => {
  test.concurrent('ends with 78 and says why, while commands reach the first', async () => {
    await using flow = await openFlow('sqlite');
    const { world } = flow;
    const daemon = await flow.start();
    world.send(world.put('docs/a.txt'));
    await flow.converged(daemon);

    const second = await flow.start({}, { awaitReady: false });
    expect(await second.exited).toEqual({ code: 78, signal: null });
    expect(second.text).toContain('is served by another tally process');

    const list = await runTally(['bucket', 'list', '--json'], daemon.operator);
    expect(list).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(list.stdout)).toMatchObject({ items: [{ bucket: world.bucket }, { bucket: world.neighbour.bucket }] });
    world.send(world.put('docs/b.txt'));
    await flow.converged(daemon);
    expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  }, 600_000);
});
