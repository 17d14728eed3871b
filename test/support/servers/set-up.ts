/** What `tally setup` makes, by its own code, with names of its own on an emulator. */
import { ListTopicsCommand } from '@aws-sdk/client-sns';
import { ListQueuesCommand } from '@aws-sdk/client-sqs';
import { randomBytes } from 'node:crypto';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { createSharedParts } from '../../../src/connect/aws/shared-parts.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { queueArns } from '../../../src/connect/shared.rules.ts';
import { createSetup, type Setup, type SetupPlan } from '../../../src/connect/setup.ts';
import type { TestAws } from './aws.ts';

/** An emulator shows at once what it has made. */
const clock = { ...systemClock, sleep: async () => undefined };

/** The setup of the region of this emulator, with these queues in the settings. */
export function setupOn(aws: TestAws, ...queueUrls: readonly string[]): Setup {
  const clients = aws.clients();
  const parts = createProvisioner({ aws: clients, queueUrl: undefined, clock });
  const shared = createSharedParts(clients, parts);
  // the account of every emulator
  return createSetup({ aws: { ...shared, account: async () => '000000000000' }, clock, region: aws.region, queueUrls });
}

/** Sets up an installation of a fresh name, for its own region and these. */
export async function setUp(
  aws: TestAws,
  { regions = [], installation }: { readonly regions?: readonly string[]; readonly installation?: string } = {},
) {
  const name = `tally-test-${randomBytes(4).toString('hex')}-bucket-events`;
  // an emulator loads a service at its first request, which can take longer than Tally waits for an answer
  await Promise.all([aws.sqs.send(new ListQueuesCommand({ MaxResults: 1 })), aws.sns.send(new ListTopicsCommand({}))]);
  const setup = setupOn(aws, `${aws.endpoint}/000000000000/${name}`);
  let plan: SetupPlan = await setup.apply({ installation });
  for (const region of regions) plan = await setup.apply({ region });
  const { TALLY_QUEUE_URL: url = '', TALLY_DEAD_LETTER_QUEUE_URL: lettersUrl = '' } = plan.settings ?? {};
  const arns = queueArns(name, { partition: 'aws', region: aws.region, account: plan.account });
  return { installation: plan.installation, queue: { url, arn: arns.bucket }, deadLetters: { url: lettersUrl, arn: arns.letters } };
}
