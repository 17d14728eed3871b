import { expect, it } from 'vitest';
import { createCliWorld } from './world.ts';

it('changes, when interrupted, says how to go on with the same feed', async () => {
  const world = createCliWorld();
  world.nextDoes(async () => {
    world.interrupt();
    return { items: [], cursor: 'WyJuZXcu', more: true };
  });
  const { exitCode, stdout, stderr } = await world.run('changes photos --follow', '--prefix=-2026/my cat', '--after=WyJvbGQ');
  expect([exitCode, stdout]).toEqual([130, '{"cursor":"WyJuZXcu","more":true}\n']);
  expect(stderr).toBe("To continue: tally changes photos '--prefix=-2026/my cat' --after=WyJuZXcu --follow\n");
});
