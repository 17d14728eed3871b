/** A registry whose TALLY_INSTALLATION was changed: its parts in AWS have the former name until they go. */
import { describe, expect, it } from 'vitest';
import { INSTALLATION, MARK, provisioningOn, QUEUE_ARN } from '../../support/fakes/aws-parts.ts';
import { startWorld, trail } from './world.ts';

const NEW_NAME = 'cafe0001';
const TRAIL = trail.arn;
const signal = new AbortController().signal;

async function startRenamed() {
  const world = await startWorld({ trailArn: TRAIL });
  world.populate();
  world.aws.parts.trails.set(TRAIL, trail);
  const { aws, clock, state, storage } = world;
  const renamed = provisioningOn(aws, { state, storage, clock, trailArn: TRAIL, installation: NEW_NAME });
  const agree = async (source: 'eventbridge' | 'routed') => {
    const request = { bucket: 'photos', source };
    const { plan } = await renamed.plan(request);
    return renamed.apply(request, { token: plan.token });
  };
  return { world, renamed, agree, text: () => JSON.stringify(aws.snapshot()) };
}

describe.each(['eventbridge', 'routed'] as const)('a registry with another name than before, and %s', (source) => {
  it('remembers what it made under the former one, and takes exactly that away', async () => {
    const { world, renamed, agree, text } = await startRenamed();
    await world.agree({ source });
    // a second bucket has the former name still, until it is applied again
    await world.apply({ bucket: 'videos', source: 'notification' });
    await agree(source);
    expect(await world.connection()).toMatchObject({ installation: NEW_NAME, earlier: [{ source, installation: INSTALLATION }] });
    await world.closeGap();
    expect(await renamed.removeEarlier('photos', signal)).toEqual([]);
    const { plan } = await renamed.plan({ bucket: 'photos', source });
    expect(plan.changes).toEqual([]);
    expect(plan.findings.filter(({ severity }) => severity === 'broken')).toEqual([]);
    // what the second bucket needs is as it was
    const ofOther = await world.plan({ bucket: 'videos', source: 'notification' });
    expect(ofOther.changes).toEqual([]);
    await world.remove('videos');
    expect(text()).not.toContain(MARK);
    expect(text()).not.toContain(`tally-${INSTALLATION}`);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(NEW_NAME);
  });

  it('takes the parts of both names away with the bucket', async () => {
    const { world, renamed, agree, text } = await startRenamed();
    await world.agree({ source });
    await agree(source);
    await renamed.remove('photos', { keepAws: false });
    for (const name of [INSTALLATION, NEW_NAME]) expect(text()).not.toContain(`tally-${name}`);
    expect(text()).not.toContain('tally 5e6f7081 photos');
  });
});

it('leaves the notification that it made under its former name, and says which name finds it', async () => {
  const { world, renamed } = await startRenamed();
  await world.agree();
  const { plan } = await renamed.plan({ bucket: 'photos' });
  expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.overlap', fix: `TALLY_INSTALLATION=${INSTALLATION}` }));
});
