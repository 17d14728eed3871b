/** The check of the audit trail: the rule of a routed bucket matches only what a trail records. */
import type { Facts } from '../facts.ts';
import type { ObservedTrail } from '../observed.ts';
import { advancedSelector, recordsBucket, withSelector } from '../trail.ts';
import type { Wish } from '../wiring.ts';
import { blocking, broken, note, type Check, type Finding } from './finding.ts';

/** Of a trail that Tally may not change, or that no setting names, the selector is printed. */
export const trailCheck: Check = (facts) => {
  const { wish, wiring, observed } = facts;
  if (wiring.selector === undefined) return undefined;
  const trail = trailOf(facts);
  if (trail === undefined) return noTrail(wish, wiring.selector, observed.trails !== undefined);
  return harmful(wish, trail) ?? stopped(trail) ?? unselected(wish, trail);
};

/** The trail that is looked at: of several with one bucket of logs, the first that records the bucket. */
function trailOf({ wish, observed: { trails = [] } }: Facts): ObservedTrail | undefined {
  return trails.find(({ selectors }) => selectors !== undefined && recordsBucket(selectors, wish)) ?? trails[0];
}

function noTrail({ bucket, trailArn, trailBucket }: Wish, selector: object, isNamed: boolean): Finding {
  if (isNamed)
    return blocking(
      'connect.trail-missing',
      `there is no trail for ${trailArn ?? trailBucket ?? ''}`,
      'the rule matches only what a trail records',
      'aws cloudtrail describe-trails',
    );
  return note(
    'connect.trail-unchecked',
    `a trail must record the data events of ${bucket}, and TALLY_TRAIL_ARN and TALLY_TRAIL_BUCKET name none`,
    'the rule matches nothing without them',
    adding(selector),
  );
}

/** What Tally must not write to: selectors that it cannot read, and a trail that would record its own deliveries without end. */
function harmful({ bucket, trailArn }: Wish, { arn, selectors, logBucket, homeRegion }: ObservedTrail): Finding | undefined {
  if (logBucket === bucket)
    return blocking(
      'connect.trail-own-bucket',
      `the trail ${arn} delivers its logs to ${bucket}`,
      'each delivery would be recorded and delivered again, without end',
      'TALLY_TRAIL_ARN=… another trail',
    );
  if (selectors !== undefined || trailArn === undefined) return undefined;
  return blocking(
    'connect.trail-unreadable',
    `the selectors of ${arn} have an unknown form`,
    'a write would replace them',
    `aws cloudtrail get-event-selectors --region ${homeRegion} --trail-name ${arn}`,
  );
}

function stopped({ arn, isLogging, homeRegion }: ObservedTrail): Finding | undefined {
  if (isLogging) return undefined;
  const fix = `aws cloudtrail start-logging --region ${homeRegion} --name ${arn}`;
  return broken('connect.trail-stopped', `the trail ${arn} is stopped`, 'it records nothing, so the rule matches nothing', fix);
}

/** A trail of Tally's is changed by an apply. */
function unselected(wish: Wish, { arn, selectors }: ObservedTrail): Finding | undefined {
  if (wish.trailArn !== undefined || (selectors !== undefined && recordsBucket(selectors, wish))) return undefined;
  const added = selectors?.kind === 'basic' ? withSelector({ ...selectors, list: [] }, wish).list : [advancedSelector(wish)];
  return broken(
    'connect.trail-selector',
    `the trail ${arn} does not record the data events of ${wish.bucket}`,
    'the rule matches nothing. Tally does not write to a supplied trail: add this selector to those of the trail',
    adding(added),
  );
}

/** CloudTrail replaces the selectors of a trail as a whole: with this one alone it would record nothing else any more. */
function adding(selector: object): string {
  return `add this to the selectors of the trail. put-event-selectors replaces all of them, so send those that get-event-selectors shows as well: ${JSON.stringify(selector)}`;
}
