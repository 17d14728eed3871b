/** Makes the parts of a plan, one write each, and takes them away. Every write may be repeated. */
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import type { Change } from '../../domain/provisioning/planning/plan.ts';
import { foreignStatements, parsePolicy, policyText, sameStatements, type Policy } from '../../domain/provisioning/policy.ts';
import { foreignSelectors, type Selectors } from '../../domain/provisioning/trail.ts';
import type { Removal } from '../../domain/provisioning/removal.ts';
import { prefixOf, tagsOf } from '../../domain/provisioning/names.ts';
import { sidsOf, type Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Provisioner } from '../ports/provision.ts';

type Part<Name> = Exclude<Change, { readonly part: 'notification' }> & { readonly part: Name };

/** Everything but the notification configuration, which has its own rules. */
export type MakeablePart = Part<Exclude<Change['part'], 'notification'>>;
export type RemovablePart = Exclude<Removal, { readonly part: 'notification' }>;

/**
 * Creates the functions. Policies and selectors are whole documents without a version. They are read again right before each
 * write, which is not made if they have changed since the plan: the caller plans again. After the write, what others wrote in
 * them must have stayed.
 */
export function createMakeParts(aws: Provisioner) {
  async function setPolicy(
    wish: Wish,
    arn: string,
    policies: { readonly before: Policy; readonly after: Policy },
    signal?: AbortSignal,
  ): Promise<void> {
    const isQueue = arn.split(':')[2] === 'sqs';
    const sids = new Set([...sidsOf(wish.installation).all, prefixOf(wish.installation)]);
    const readAgain = async (): Promise<Policy | undefined> =>
      parsePolicy(isQueue ? await queuePolicy(arn, signal) : await topicPolicy(wish, arn, signal));
    const current = await readAgain();
    if (current === undefined || !sameStatements(current.Statement, policies.before.Statement)) return;
    // SQS removes a policy that is empty
    const text = policies.after.Statement.length === 0 ? '' : policyText(policies.after);
    if (isQueue) await aws.setQueuePolicy(arn, text, signal);
    else await aws.setTopicPolicy(arn, text, signal);
    const stored = await readAgain();
    const [theirs, wanted] = [stored ?? policies.before, policies.before].map((policy) => foreignStatements(policy, sids));
    if (theirs === undefined || wanted === undefined || sameStatements(theirs, wanted)) return;
    throw new RequestError(
      'connect.changed-meanwhile',
      `the policy of ${arn} was changed by others while Tally wrote it. Compare it with what it had before, and restore what is missing: ${JSON.stringify(wanted)}`,
      { before: JSON.stringify(wanted), now: JSON.stringify(theirs) },
    );
  }

  async function setSelectors(
    wish: Wish,
    { name, before, after }: { readonly name: string; readonly before: Selectors; readonly after: Selectors },
    signal?: AbortSignal,
  ): Promise<void> {
    const [current] = await aws.trailsOf(wish.region, { arn: name }, signal);
    if (canonicalJson(current?.selectors) !== canonicalJson(before)) return;
    await aws.putSelectors(name, after, signal);
    const [trail] = await aws.trailsOf(wish.region, { arn: name }, signal);
    const [theirs, wanted] = [trail?.selectors ?? before, before].map((selectors) => canonicalJson(foreignSelectors(selectors, wish)));
    if (theirs === wanted) return;
    throw new RequestError(
      'connect.changed-meanwhile',
      `the selectors of ${name} were changed by others while Tally wrote them. Compare them with what it had before, and restore what is missing: ${wanted ?? ''}`,
      { before: wanted ?? '', now: theirs ?? '' },
    );
  }

  async function queuePolicy(queueArn: string, signal?: AbortSignal): Promise<string | undefined> {
    const queue = await aws.queueOf(queueArn, signal);
    return queue === 'absent' ? undefined : queue.policy;
  }

  async function topicPolicy({ queueArn }: Wish, topicArn: string, signal?: AbortSignal): Promise<string | undefined> {
    const read = await aws.topicOf(topicArn, queueArn, signal);
    return read === 'absent' ? undefined : read.topic.policy;
  }

  return {
    async make(wish: Wish, change: MakeablePart, signal?: AbortSignal): Promise<void> {
      const { installation, bucket, region } = wish;
      switch (change.part) {
        case 'topic':
          return aws.createTopic(change.name, tagsOf(installation), signal);
        case 'topic-policy':
        case 'queue-policy':
          return setPolicy(wish, change.name, change, signal);
        case 'subscription':
          if (change.action === 'create') return aws.subscribe(change.subscription, signal);
          return aws.setSubscription(change.name, change.after, signal);
        case 'rule':
          return aws.putRule(region, change.rule, tagsOf(installation, bucket), signal);
        case 'trail':
          return setSelectors(wish, change, signal);
        case 'target':
          return aws.putTarget(region, change.rule, signal);
      }
    },
    async remove(wish: Wish, removal: RemovablePart, signal?: AbortSignal): Promise<void> {
      switch (removal.part) {
        case 'rule':
          return aws.removeRule(wish.region, removal.rule, signal);
        case 'trail':
          return setSelectors(wish, removal, signal);
        case 'subscription':
          return aws.unsubscribe(removal.name, signal);
        case 'topic':
          return aws.deleteTopic(removal.name, signal);
        case 'topic-policy':
        case 'queue-policy':
          return setPolicy(wish, removal.name, removal, signal);
      }
    },
  };
}
