/** The plan of a wish as code: a script for the AWS CLI, or a template. */
import { defined } from '../../domain/defined.ts';
import { emitScript } from '../../domain/provisioning/emitting/aws-cli.ts';
import { codeRuleOf, formatNames, templateOf, type EmitFormat, type TemplateFormat } from '../../domain/provisioning/emitting/parts.ts';
import { terraformOf } from '../../domain/provisioning/emitting/terraform.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import type { Observed } from '../../domain/provisioning/observed.ts';
import { planOf, type Plan } from '../../domain/provisioning/planning/plan.ts';
import { recordsBucket } from '../../domain/provisioning/trail.ts';
import { wiringOf, type Wiring, type Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { AwsReads } from '../ports/provision.ts';
import { ownedBucket, type Observe } from './observe.ts';

/** Throws what keeps an apply from writing, and `connect.no-template` where only the script can make what the wish needs. */
type Emit = (wish: Wish, format: EmitFormat, signal?: AbortSignal) => Promise<string>;

export function createEmit({ aws, observe }: { readonly aws: Pick<AwsReads, 'notificationOf'>; readonly observe: Observe }): Emit {
  /** The AWS CLI drops what it does not know, so the script would delete it. Where Tally may not read, the person must look. */
  async function refuseUnknown(wish: Wish, signal?: AbortSignal): Promise<void> {
    const { entry, eventBridge } = wiringOf(wish);
    if (entry === undefined && !eventBridge) return;
    const xml = await aws.notificationOf(ownedBucket(wish), signal).catch(unlessDenied);
    const read = xml === undefined ? undefined : parseNotification(xml);
    if (read?.ok !== false) return;
    throw new RequestError(
      'connect.unknown-configuration',
      `the notification configuration of ${wish.bucket} contains something that this version does not know: ${read.reason}. The script would delete it, so add Tally's topic by hand, or use a newer version of Tally`,
    );
  }

  /** The script for a wish, of what can be read. Throws what keeps an apply from writing. */
  async function scriptOf(wish: Wish, signal?: AbortSignal): Promise<string> {
    await refuseUnknown(wish, signal);
    // who may not read AWS gets the script all the same: it reads by itself
    const observed = await observe(wish, signal).catch(unlessDenied);
    if (observed === undefined) return emitScript(wish, wiringOf(wish));
    const plan = planOf(wish, observed);
    refuseBlocked(plan);
    return emitScript(wish, asFound(plan, observed));
  }

  /** A template for a wish. It writes whole policies, so they must be read first. Throws what keeps an apply from writing. */
  async function templateFor(wish: Wish, format: TemplateFormat, signal?: AbortSignal): Promise<string> {
    refuseNotification(wish, format);
    const observed = await observe(wish, signal);
    const plan = planOf(wish, observed);
    refuseBlocked(plan);
    const template = templateOf(plan, observed);
    if (format === 'terraform') return terraformOf(template);
    // it loads a writer of YAML, whose 70 modules no other request needs
    const { cloudFormationOf } = await import('../../domain/provisioning/emitting/cloudformation.ts');
    return cloudFormationOf(template);
  }

  return async function emit(wish, format, signal) {
    return format === 'aws-cli' ? scriptOf(wish, signal) : templateFor(wish, format, signal);
  };
}

function unlessDenied(error: unknown): undefined {
  if (!(error instanceof RequestError) || error.code !== 'connect.denied') throw error;
}

/** A bucket has one notification configuration, with what others configured. */
function refuseNotification({ bucket, source }: Wish, format: TemplateFormat): void {
  if (source !== 'notification') return;
  throw new RequestError(
    'connect.no-template',
    `no template is written: ${bucket} has one notification configuration, and ${formatNames[format]} would own it and overwrite what others have in it. Take the script, which reads, merges and compares, with \`tally bucket emit ${bucket} --format aws-cli\`, or a source that needs none: \`tally bucket emit ${bucket} --source eventbridge --format ${format}\``,
  );
}

/** What keeps an apply from writing keeps a script from it as well: S3 would refuse it half-way, or events would be missing. */
function refuseBlocked({ findings, token }: Plan): void {
  const blocking = findings.find(({ blocks }) => blocks);
  if (blocking === undefined) return;
  const { code, what, why, fix } = blocking;
  throw new RequestError(code === 'connect.overlap' ? code : 'connect.blocked', `nothing is written: ${what}: ${why}. ${fix}`, {
    finding: code,
    token,
  });
}

/**
 * The wiring as an apply would write it, but for the rule. A rule that was made by hand, the policy of an open topic of others and
 * the selectors of a trail that records the bucket stay as they are.
 */
function asFound({ wish, changes }: Plan, observed: Observed): Wiring {
  const { rule: _, topic, selector, ...rest } = wiringOf(wish);
  const isWritten = topic !== undefined && (topic.isForeign !== true || changes.some(({ part }) => part === 'topic-policy'));
  const isRecorded = observed.trails?.some(({ selectors }) => selectors !== undefined && recordsBucket(selectors, wish)) === true;
  return {
    ...rest,
    ...(isWritten && { topic }),
    ...(selector !== undefined && !isRecorded && { selector }),
    ...defined({ rule: codeRuleOf(wish, observed) }),
  };
}
