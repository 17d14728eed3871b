/**
 * The plan as a script for the AWS CLI and jq, for people who may not let Tally change AWS. It reads, merges, compares and puts,
 * so it may be run again, and what others configured stays.
 */
import { sdkConfiguration } from '../notification.ts';
import { MARK_PATTERN, markOf, parseArn, REGISTRY_TAG, tagList, tagsOf } from '../names.ts';
import { selectorName, withSelector } from '../trail.ts';
import { partsPlace, queueStatements, sdkTarget, type Wiring, type Wish } from '../wiring.ts';

/** Writes the script. A failed substitution within an argument would not end it, and send an empty policy: each is a variable first. */
export function emitScript(wish: Wish, wiring: Wiring): string {
  return [
    head(wish),
    ...(wiring.topic === undefined ? [] : [topicText(wish, wiring.topic)]),
    ...(wiring.undelivered === undefined ? [] : [undeliveredText(wish, wiring.undelivered)]),
    ...wiring.queues.filter(({ senders }) => Object.keys(senders).length > 0).map((queue) => queueText(wish, queue)),
    ...(wiring.subscription === undefined ? [] : [subscriptionText(wish, wiring.subscription)]),
    ...(wiring.rule === undefined ? [] : [ruleText(wish, wiring.rule)]),
    ...(wiring.selector === undefined ? [] : [selectorText(wish, wiring.selector)]),
    ...(wiring.entry === undefined && !wiring.eventBridge ? [] : [notificationText(wish, wiring)]),
  ].join('\n\n');
}

/** In single quotes for a shell. */
function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? '');
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Where the accounts differ, a profile of the AWS CLI for each: commands are sent with that of the bucket unless they say otherwise. */
function profilesText(wish: Wish): string {
  const { account } = partsPlace(wish);
  if (account === wish.account) return '';
  return `# BUCKET_PROFILE and QUEUE_PROFILE name the profiles of the AWS CLI for the account of the bucket and for that of the bucket queue
: "\${BUCKET_PROFILE:?a profile of the account ${account}}" "\${QUEUE_PROFILE:?a profile of the account ${wish.account}}"
PROFILE=$BUCKET_PROFILE
aws() { command aws --profile "$PROFILE" "$@"; }
`;
}

/** The beginning of commands on the side of the bucket queue. */
function onQueueSide(wish: Wish): string {
  return partsPlace(wish).account === wish.account ? '' : 'PROFILE="$QUEUE_PROFILE" ';
}

function head(wish: Wish): string {
  const { bucket, source, region, bucketAccount, registry } = wish;
  return `#!/usr/bin/env bash
# Connects the bucket ${bucket} to Tally (source ${source}). It needs the AWS CLI 2 and jq, and may be run again.
set -euo pipefail
${profilesText(wish)}export AWS_REGION=${quoted(region)}
BUCKET=${quoted(bucket)}
OWNER=${quoted(bucketAccount)}
REGISTRY=${quoted(registry)}
FOLDER=$(mktemp -d)
# A write that AWS refuses must not be sent again without a new read: run the script again instead.
export AWS_MAX_ATTEMPTS=1

# ends the script unless the registry's id is among the tags $2 of $1: a topic or rule with this name may be another registry's
ours_or_stop() {
  local owner
  owner=$(jq -rn --argjson tags "$2" '[$tags[] | select(.Key == "${REGISTRY_TAG}") | .Value][0] // "none"')
  [ "$owner" = "$REGISTRY" ] && return
  echo "$1 is left as it is: the registry in its tags is $owner, and this one is $REGISTRY. Set TALLY_INSTALLATION to a name that no other registry has" >&2
  exit 1
}

# the statements of $2 in the policy $1, in place of those with the same ids
merged() { jq -cn --argjson policy "$1" --argjson ours "$2" '
  ($ours | map(.Sid)) as $ids | $policy | .Statement = ([.Statement] | flatten | map(select(.Sid as $id | $ids | index([$id]) | not))) + $ours'; }

# the statements $2 with what those of the same ids in the policy $1 allow already: other buckets share them
kept() { jq -cn --argjson policy "$1" --argjson ours "$2" '
  def both($one; $more): [$one, $more] | flatten | map(select(. != null)) | unique;
  ([$policy.Statement] | flatten) as $present | $ours | map(. as $one
    | [$present[] | select(.Sid == $one.Sid)] as $known
    | if .Principal.Service then
        .Principal.Service |= both(.; [$known[].Principal.Service?] | flatten | map(strings | select(test("^sns[.][a-z0-9-]+[.]amazonaws[.]com$")))) else . end
    | if .Condition.ArnLike["aws:SourceArn"] then .Condition.ArnLike["aws:SourceArn"] |= both(.; [$known[].Condition.ArnLike["aws:SourceArn"]?]) else . end
    | if .Condition.StringEquals["aws:SourceAccount"] then
        .Condition.StringEquals["aws:SourceAccount"] |= both(.; [$known[].Condition.StringEquals["aws:SourceAccount"]?]) else . end)'; }`;
}

function topicText(wish: Wish, { arn, statements, isForeign }: NonNullable<Wiring['topic']>): string {
  return `# the topic, and who may publish to it
TOPIC=${quoted(arn)}
${isForeign === true ? '' : ownTopicText(wish, arn)}POLICY=$(aws sns get-topic-attributes --topic-arn "$TOPIC" --query Attributes.Policy --output text)
OURS=$(kept "$POLICY" ${quoted(statements)})
POLICY=$(merged "$POLICY" "$OURS")
aws sns set-topic-attributes --topic-arn "$TOPIC" --attribute-name Policy --attribute-value "$POLICY"`;
}

/** A topic of Tally's is made where there is none, and must be this registry's. One of the operator's has no tags of Tally. */
function ownTopicText(wish: Wish, arn: string): string {
  const tags = Object.entries(tagsOf(wish)).map(([name, value]) => `Key=${name},Value=${value}`);
  return `if ! FOUND=$(aws sns get-topic-attributes --topic-arn "$TOPIC" 2>&1); then
  case "$FOUND" in *NotFound*) ;; *) echo "$FOUND" >&2; exit 1 ;; esac
  aws sns create-topic --name ${quoted(parseArn(arn)?.resource ?? '')} --tags ${tags.map(quoted).join(' ')} > /dev/null
fi
TAGS=$(aws sns list-tags-for-resource --resource-arn "$TOPIC" --query Tags --output json)
ours_or_stop "$TOPIC" "$TAGS"
`;
}

function queueText(wish: Wish, queue: Wiring['queues'][number]): string {
  const [region, name] = queue.arn.split(':').filter((_, index) => index === 3 || index === 5);
  const statements = queueStatements(wish, queue, []);
  const side = onQueueSide(wish);
  return `# who may send to the queue ${name}
QUEUE_URL=$(${side}aws sqs get-queue-url --region ${quoted(region)} --queue-name ${quoted(name)} --query QueueUrl --output text)
POLICY=$(${side}aws sqs get-queue-attributes --region ${quoted(region)} --queue-url "$QUEUE_URL" --attribute-names Policy --query Attributes.Policy --output text)
case "$POLICY" in '{'*) ;; *) POLICY='{"Version":"2012-10-17","Statement":[]}' ;; esac
OURS=$(kept "$POLICY" ${quoted(statements)})
POLICY=$(merged "$POLICY" "$OURS")
ATTRIBUTES=$(jq -cn --arg policy "$POLICY" '{Policy: $policy}')
${side}aws sqs set-queue-attributes --region ${quoted(region)} --queue-url "$QUEUE_URL" --attributes "$ATTRIBUTES"`;
}

/** A queue that exists keeps its attributes. */
function undeliveredText({ region, ...wish }: Wish, arn: string): string {
  const name = parseArn(arn)?.resource ?? '';
  const side = onQueueSide({ region, ...wish });
  const queue = `--region ${quoted(region)} --queue-name ${quoted(name)}`;
  return `# the queue for what SNS and EventBridge of this region cannot deliver
if ! FOUND=$(${side}aws sqs get-queue-url ${queue} 2>&1); then
  case "$FOUND" in *NonExistentQueue* | *QueueDoesNotExist*) ;; *) echo "$FOUND" >&2; exit 1 ;; esac
  ${side}aws sqs create-queue ${queue} --attributes MessageRetentionPeriod=1209600 > /dev/null
fi`;
}

function subscriptionText(wish: Wish, { topicArn, queueArn, deadLetterArn }: NonNullable<Wiring['subscription']>): string {
  const side = onQueueSide(wish);
  const redrive = deadLetterArn === undefined ? undefined : JSON.stringify({ deadLetterTargetArn: deadLetterArn });
  const attributes = redrive === undefined ? {} : { RedrivePolicy: redrive };
  const set = (name: string, value: string): string =>
    `${side}aws sns set-subscription-attributes --subscription-arn "$SUBSCRIPTION" --attribute-name ${name} --attribute-value ${quoted(value)}`;
  // one that exists keeps the attributes that it has, and SNS refuses to subscribe with others
  return `# the subscription of the bucket queue: raw delivery, a filter and another dead-letter queue are taken from one that exists
LISTED=$(aws sns list-subscriptions-by-topic --topic-arn ${quoted(topicArn)} --output json)
SUBSCRIPTION=$(jq -r --arg queue ${quoted(queueArn)} '[.Subscriptions[] | select(.Protocol == "sqs" and .Endpoint == $queue and (.SubscriptionArn | startswith("arn:"))) | .SubscriptionArn][0] // empty' <<< "$LISTED")
if [ -z "$SUBSCRIPTION" ]; then
  ${side}aws sns subscribe --topic-arn ${quoted(topicArn)} --protocol sqs --notification-endpoint ${quoted(queueArn)} --return-subscription-arn --attributes ${quoted(attributes)} > /dev/null
else
  ${[set('RawMessageDelivery', 'false'), set('FilterPolicy', '{}'), ...(redrive === undefined ? [] : [set('RedrivePolicy', redrive)])].join('\n  ')}
fi`;
}

function ruleText(wish: Wish, { name, arn, pattern, target }: NonNullable<Wiring['rule']>): string {
  const tags = tagList(tagsOf(wish, wish.bucket));
  return `# the rule and its target
RULE=${quoted(arn)}
if FOUND=$(aws events describe-rule --name ${quoted(name)} 2>&1); then
  TAGS=$(aws events list-tags-for-resource --resource-arn "$RULE" --query Tags --output json)
  ours_or_stop "$RULE" "$TAGS"
  # EventBridge ignores tags of a rule that exists
  aws events put-rule --name ${quoted(name)} --event-pattern ${quoted(pattern)} --state ENABLED > /dev/null
else
  case "$FOUND" in *ResourceNotFound*) ;; *) echo "$FOUND" >&2; exit 1 ;; esac
  aws events put-rule --name ${quoted(name)} --event-pattern ${quoted(pattern)} --state ENABLED --tags ${quoted(tags)} > /dev/null
fi
TAGS=$(aws events list-tags-for-resource --resource-arn "$RULE" --query Tags --output json)
ours_or_stop "$RULE" "$TAGS"
aws events put-targets --rule ${quoted(name)} --targets ${quoted([sdkTarget(target)])} > /dev/null`;
}

/** As an apply: only the trail that the settings give to Tally is written to, in the kind of selectors that it has. */
function selectorText(wish: Wish, selector: object): string {
  if (wish.trailArn === undefined)
    return `# A trail must record the data events of the bucket: add this advanced selector to those that it has. Writing selectors
# replaces all of them, so read them first: aws cloudtrail get-event-selectors
# ${JSON.stringify(selector)}`;
  const basic = withSelector({ kind: 'basic', list: [] }, wish).list[0];
  return `# the selector of the bucket, beside those that the trail has: a write replaces all of them
TRAIL=${quoted(wish.trailArn)}
TRAIL_REGION=${quoted(parseArn(wish.trailArn)?.region ?? wish.region)}
selectors() { aws cloudtrail get-event-selectors --region "$TRAIL_REGION" --trail-name "$TRAIL" --output json | jq -cS '{EventSelectors: (.EventSelectors // []), AdvancedEventSelectors: (.AdvancedEventSelectors // [])}'; }
BEFORE=$(selectors)
AFTER=$(jq -cS --arg name ${quoted(selectorName(wish))} --argjson advanced ${quoted(selector)} --argjson basic ${quoted(basic)} '
  if (.AdvancedEventSelectors | length) > 0 then .AdvancedEventSelectors |= ([.[] | select(.Name != $name)] + [$advanced])
  elif any(.EventSelectors[]; (if .ExcludeManagementEventSources == [] then del(.ExcludeManagementEventSources) else . end) == $basic) then .
  else .EventSelectors += [$basic] end' <<< "$BEFORE")
if [ "$AFTER" != "$BEFORE" ]; then
  NOW=$(selectors)
  if [ "$NOW" != "$BEFORE" ]; then
    echo "the selectors of the trail were changed meanwhile: run this script again" >&2
    exit 1
  fi
  INPUT=$(jq -c --arg trail "$TRAIL" 'with_entries(select(.value | length > 0)) + {TrailName: $trail}' <<< "$AFTER")
  aws cloudtrail put-event-selectors --region "$TRAIL_REGION" --cli-input-json "$INPUT" > /dev/null
fi`;
}

/** The configuration is written only if it was not changed meanwhile. */
function notificationText(wish: Wish, { entry, eventBridge }: Wiring): string {
  const ours = entry === undefined ? [] : (sdkConfiguration({ entries: [entry], eventBridge: false }).TopicConfigurations ?? []);
  const earlier =
    wish.adopt === true
      ? ` and ((((.Id // "") | test("${MARK_PATTERN}")) and (.Id[6:14] as $of | .TopicArn | contains(":tally-" + $of + "-"))) | not)`
      : '';
  const change = entry === undefined ? '.' : `.TopicConfigurations = ([.TopicConfigurations[]? | select(.Id != $id${earlier})] + $ours)`;
  return `# the notification configuration of the bucket: one document, which a write replaces as a whole
read_it() { aws s3api get-bucket-notification-configuration --bucket "$BUCKET" --expected-bucket-owner "$OWNER" --output json | jq -S '. // {}'; }
read_it > "$FOLDER/before.json"
[ -s "$FOLDER/before.json" ] || echo '{}' > "$FOLDER/before.json"
jq -S --arg id ${quoted(markOf(wish))} --argjson ours ${quoted(ours)} ${quoted(`${change}${eventBridge ? ' | .EventBridgeConfiguration = {}' : ''}`)} "$FOLDER/before.json" > "$FOLDER/after.json"
# lists have no order
canonical() { jq -cS 'walk(if type == "array" then sort else . end)' "$1"; }
BEFORE=$(canonical "$FOLDER/before.json")
AFTER=$(canonical "$FOLDER/after.json")
if [ "$BEFORE" = "$AFTER" ]; then
  # a write would send a test event to every destination
  echo "the configuration is right already"
  exit 0
fi
diff "$FOLDER/before.json" "$FOLDER/after.json" || true
read_it > "$FOLDER/now.json"
[ -s "$FOLDER/now.json" ] || echo '{}' > "$FOLDER/now.json"
if ! cmp -s "$FOLDER/before.json" "$FOLDER/now.json"; then
  echo "the configuration was changed meanwhile: run this script again" >&2
  exit 1
fi
aws s3api put-bucket-notification-configuration --bucket "$BUCKET" --expected-bucket-owner "$OWNER" --notification-configuration "file://$FOLDER/after.json"
`;
}
