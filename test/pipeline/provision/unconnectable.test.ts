import { describe, expect, it } from 'vitest';
import type { NotificationEntry } from '../../../src/domain/provisioning/notification.ts';
import { ACCOUNT, REGION } from '../../support/fakes/aws-parts.ts';
import { allTo, startWorld, theirs, type World } from './world.ts';

const EARLIER = 'tally-99999999-77777777';
const earlier = { ...allTo(`arn:aws:sns:${REGION}:${ACCOUNT}:tally-99999999-events`), id: EARLIER };

async function startAfterAnother(entries: readonly NotificationEntry[] = [...theirs, earlier]): Promise<World> {
  const world = await startWorld();
  world.populate();
  world.notify(entries);
  return world;
}

describe('the notification of another registry', () => {
  it('is an overlap that is not touched: that registry may be in use', async () => {
    const world = await startAfterAnother();
    const plan = await world.plan();
    expect(plan.findings).toContainEqual(
      expect.objectContaining({ code: 'connect.overlap', fix: 'tally bucket add photos --source eventbridge', blocks: true }),
    );
    await expect(world.apply()).rejects.toMatchObject({ code: 'connect.overlap' });
    expect(world.aws.writes).toEqual([]);
  });
});

describe('a bucket that cannot be connected', () => {
  it('is named before anything is read: a directory bucket sends no events', async () => {
    const world = await startWorld();
    await expect(world.plan({ bucket: 'photos--use1-az4--x-s3' })).rejects.toMatchObject({
      code: 'connect.blocked',
      message: expect.stringContaining('directory bucket'),
    });
  });
});
