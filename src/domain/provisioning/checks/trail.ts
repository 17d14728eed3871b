/** Checks of the audit trail. */
import type { Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { ObservedTrail } from '../observed.ts';
import { advancedSelector, exceededLimit, recordsBucket, withSelector } from '../trail.ts';
import { degraded, blocking, healable, type Check, broken } from './finding.ts';

export const trailUnknown: Check = ({ wish, wiring: { selector }, observed: { trails } }) => {
  if (selector === undefined) return undefined;
  if (trails !== undefined && trails.length > 0) return undefined;
  const named = wish.trailArn ?? wish.trailBucket;
  const { account } = wish;
  const trailAccount = parseArn(wish.trailArn ?? '')?.account ?? account;
  if (trailAccount !== account) {
    return degraded(
      'connect.trail-account',
      `a trail of the account ${account} must record the data events of ${wish.bucket}, and ${wish.trailArn} is of the account ${trailAccount}`,
      'the rule matches only what trails of its account record',
      adding(selector),
    );
  }
  if (named !== undefined) {
    return blocking(
      'connect.trail-missing',
      `there is no trail for ${named}`,
      'the rule matches only what a trail records',
      'aws cloudtrail describe-trails',
    );
  }
  return degraded(
    'connect.trail-unchecked',
    `a trail must record the data events of ${wish.bucket}, and TALLY_TRAIL_ARN and TALLY_TRAIL_BUCKET name none that Tally could read`,
    'the rule matches nothing without them. PostObject and RenameObject are not among the five operations',
    adding(selector),
  );
};

/** CloudTrail replaces the selectors of a trail as a whole: with this one alone it would record nothing else any more. */
function adding(selector: object): string {
  return `add this to the selectors of the trail. put-event-selectors replaces all of them, so send those that get-event-selectors shows as well: ${JSON.stringify(selector)}`;
}

/** The trail that is looked at: of several with one bucket of logs, the first that records the bucket. */
function trailOf({ wish, observed: { trails = [] } }: Facts): ObservedTrail | undefined {
  return trails.find(({ selectors }) => selectors !== undefined && recordsBucket(selectors, wish)) ?? trails[0];
}

export const trailStopped: Check = (facts) => {
  const trail = trailOf(facts);
  if (trail === undefined || trail.isLogging) return undefined;
  const fix = `aws cloudtrail start-logging --region ${trail.homeRegion} --name ${trail.arn}`;
  return broken('connect.trail-stopped', `the trail ${trail.arn} is stopped`, 'it records nothing, so the rule matches nothing', fix);
};

export const trailElsewhere: Check = (facts) => {
  const trail = trailOf(facts);
  if (trail === undefined || trail.isMultiRegion || trail.homeRegion === facts.wish.region) return undefined;
  return blocking(
    'connect.trail-region',
    `the trail ${trail.arn} records ${trail.homeRegion} only, and ${facts.wish.bucket} is in ${facts.wish.region}`,
    'the rule matches nothing',
    `aws cloudtrail update-trail --region ${trail.homeRegion} --name ${trail.arn} --is-multi-region-trail`,
  );
};

export const trailOfItself: Check = (facts) => {
  const trail = trailOf(facts);
  if (trail === undefined || trail.logBucket !== facts.wish.bucket) return undefined;
  return blocking(
    'connect.trail-own-bucket',
    `the trail ${trail.arn} delivers its logs to ${facts.wish.bucket}`,
    'each delivery would be recorded and delivered again, without end',
    'TALLY_TRAIL_ARN=… another trail',
  );
};

export const trailOfOrganization: Check = (facts) => {
  const trail = trailOf(facts);
  if (facts.wish.trailArn === undefined || trail?.isOrganization !== true || parseArn(trail.arn)?.account === facts.wish.account)
    return undefined;
  return blocking(
    'connect.trail-organization',
    `the trail ${trail.arn} belongs to the organisation`,
    'only its management account can change it',
    'TALLY_TRAIL_BUCKET=… the bucket of its logs, and ask the owner of the trail to add the selector',
  );
};

export const trailSelector: Check = (facts) => {
  const { wish, observed } = facts;
  const trail = trailOf(facts);
  if (trail === undefined || observed.trails === undefined) return undefined;
  const { arn, selectors } = trail;
  const show = `aws cloudtrail get-event-selectors --region ${trail.homeRegion} --trail-name ${arn}`;
  if (selectors === undefined)
    return blocking('connect.trail-unreadable', `the selectors of ${arn} have an unknown form`, 'a write would replace them', show);
  if (recordsBucket(selectors, wish)) return undefined;
  const what = `the trail ${arn} does not record the data events of ${wish.bucket}`;
  const limit = exceededLimit(withSelector(selectors, wish));
  if (limit !== undefined) return blocking('connect.trail-limit', what, `CloudTrail allows ${limit}, and it has no room for another`, show);
  if (wish.trailArn !== undefined) return healable(facts, 'connect.trail-selector', what, 'the rule matches nothing');
  const added = selectors.kind === 'advanced' ? [advancedSelector(wish)] : withSelector({ ...selectors, list: [] }, wish).list;
  return {
    ...healable(
      facts,
      'connect.trail-selector',
      what,
      'the rule matches nothing. Tally does not write to a supplied trail: add this selector to those of the trail',
    ),
    fix: adding(added),
  };
};
