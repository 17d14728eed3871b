/** The dead-letter queue of a connection, when the redrive policy of the bucket queue is lost or wrong: the doctor names the setup, which heals it. */
import { expect, it } from 'vitest';
import type { Target } from '../../src/connect/plan.rules.ts';
import type { BucketSource } from '../../src/records/bucket.ts';
import { LETTERS_ARN, QUEUE_ARN } from '../support/fakes/aws-parts.ts';
import { startWorld, type World } from './world.ts';

async function applied(source: BucketSource): Promise<World> {
  const world = await startWorld();
  await world.setBucket({ source });
  await world.agree({ source });
  return world;
}

const queueIn = (world: World) => world.aws.parts.queues.get(QUEUE_ARN)!;
const targetOf = (world: World) => [...world.aws.parts.rules.values()][0]!.targets[0]!;

it('the target of a rule keeps its dead-letter queue where none is known, also when it is written for another reason', async () => {
  const world = await applied('eventbridge');
  delete queueIn(world).deadLetterArn;
  const [[name, rule] = []] = [...world.aws.parts.rules];
  world.aws.parts.rules.set(name!, {
    ...rule!,
    targets: [{ ...rule!.targets[0]!, RoleArn: 'arn:aws:iam::123456789012:role/x' } as Target],
  });
  await world.agree({ source: 'eventbridge' });
  expect(targetOf(world)).toMatchObject({ DeadLetterConfig: { Arn: LETTERS_ARN } });
  expect(targetOf(world)).not.toHaveProperty('RoleArn');
  // nothing is made with an empty name either
  const fresh = await startWorld();
  delete queueIn(fresh).deadLetterArn;
  await fresh.agree({ source: 'eventbridge' });
  expect(targetOf(fresh)).not.toHaveProperty('DeadLetterConfig');
});
