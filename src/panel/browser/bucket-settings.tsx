/** Indexing and notifications: how the events of a bucket arrive, what is indexed of its objects, and how it is disconnected. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Bucket } from '../../api/bucket.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { Act, AskedAct, Check, Field, Form, FormDialog, Opener, Select, useIsShown } from './form.tsx';
import { announce, Dialog, Text } from './parts.tsx';
import { applyUntilDone, PlanStep, type PlanWish } from './plan.tsx';
import { go, hrefOf } from './place.ts';
import { may } from './session.ts';

export interface BucketSettings {
  readonly source: Bucket['source'];
  /** A topic that is not Tally's; empty: none. */
  readonly topic: string;
  readonly enrich: Bucket['enrich'];
}

const sourceTexts: Readonly<Record<Bucket['source'], string>> = {
  notification: 'notification: S3 sends events to the bucket queue',
  topic: 'topic: S3 sends events to an SNS topic, and the topic to the bucket queue',
  eventbridge: 'eventbridge: S3 sends events to EventBridge, and a rule to the bucket queue',
  routed: 'routed: a rule for the audit trail sends events, where a notification would clash',
};

/** The sources of a topic that is not Tally's. */
const topicTexts = {
  topic: 'topic: S3 sends its notifications to it',
  routed: 'routed: a rule for the audit trail publishes to it',
} as const;

const enrichTexts: Readonly<Record<Bucket['enrich'], string>> = {
  none: 'none: what events report',
  head: 'head: content type and user metadata too; one more S3 request per object',
  tags: 'tags: tags as well; two more S3 requests per object',
};

interface FieldsProps {
  readonly settings: BucketSettings;
  readonly onChange: (settings: BucketSettings) => void;
}

/** A person who enters a topic also chooses its source: only these two sources take a named topic. */
export function SettingsFields({ settings, onChange }: FieldsProps) {
  const { source, topic, enrich } = settings;
  const hasTopic = topic.trim() !== '';
  const isFitting = !hasTopic || Object.hasOwn(topicTexts, source);
  return (
    <>
      <Field
        label="Topic identifier"
        value={topic}
        onChange={(changed) => onChange({ ...settings, topic: changed })}
        isRequired={source === 'topic'}
        placeholder="arn:aws:sns:REGION:ACCOUNT:NAME"
        hint="The ARN of the SNS topic that the events come through, if it is yours. Empty: Tally makes one where the source needs it."
      />
      <Select
        label={hasTopic ? 'What sends events to this topic' : 'Source'}
        value={isFitting ? source : ''}
        isRequired
        choices={[
          ...(isFitting ? [] : [['', 'choose…'] as const]),
          ...(hasTopic ? Object.entries(topicTexts) : facts.bucketSources.map((each) => [each, sourceTexts[each]] as const)),
        ]}
        onChange={(value) => onChange({ ...settings, source: facts.bucketSources.find((each) => each === value) ?? source })}
        hint="How the events of the bucket reach the bucket queue."
      />
      <Select
        label="Enrichment"
        value={enrich}
        choices={facts.enrichModes.map((mode) => [mode, enrichTexts[mode]])}
        onChange={(value) => onChange({ ...settings, enrich: facts.enrichModes.find((each) => each === value) ?? enrich })}
        hint="What is indexed of each object."
      />
    </>
  );
}

/** The settings as a plan and the operation that adds a bucket take them. */
export function wishOf({ source, topic, enrich }: BucketSettings): PlanWish & Pick<BucketSettings, 'source' | 'enrich'> {
  return { source, enrich, ...(topic.trim() !== '' && { topic_arn: topic.trim() }) };
}

/** The topic of another source is Tally's. */
function settingsOf({ source, topic_arn: topic = '', enrich }: Bucket): BucketSettings {
  return { source, topic: Object.hasOwn(topicTexts, source) ? topic : '', enrich };
}

type Change = readonly [name: string, from: string, to: string];

/** What a submission would change. */
function changesBetween(before: BucketSettings, after: BucketSettings): readonly Change[] {
  const all: readonly Change[] = [
    ['Source', before.source, after.source],
    ['Topic identifier', before.topic, after.topic.trim()],
    ['Enrichment', before.enrich, after.enrich],
  ];
  return all.filter(([, from, to]) => from !== to);
}

interface SectionProps {
  readonly bucket: Bucket;
  readonly onSaved: () => void;
}

/** What changes, in the record and in AWS, is shown before it is done. */
export function SettingsSection({ bucket, onSaved }: SectionProps) {
  const stored = settingsOf(bucket);
  const [settings, setSettings] = useState(stored);
  const [isShown, setShown] = useState(false);
  const [advice, setAdvice] = useState<string>();
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Indexing and notifications</h2>
      <Form submit="Save…" onSubmit={async () => setShown(true)} isDisabled={changesBetween(stored, settings).length === 0}>
        <SettingsFields settings={settings} onChange={setSettings} />
      </Form>
      {advice !== undefined && (
        <p class="advice">
          <Text>{advice}</Text>
        </p>
      )}
      <InAws bucket={bucket} onChanged={onSaved} onPlan={() => setShown(true)} />
      {isShown && (
        <ReviewDialog
          bucket={bucket.bucket}
          stored={stored}
          settings={settings}
          onSettings={setSettings}
          onSaved={(advised) => {
            setAdvice(advised);
            onSaved();
          }}
          onClose={() => setShown(false)}
        />
      )}
    </section>
  );
}

interface ReviewProps {
  readonly bucket: string;
  /** As they are stored now. */
  readonly stored: BucketSettings;
  readonly settings: BucketSettings;
  readonly onSettings: (settings: BucketSettings) => void;
  readonly onSaved: (advice?: string) => void;
  readonly onClose: () => void;
}

/** The changes, and the plan of what they take in AWS. */
function ReviewDialog({ bucket, stored, settings, onSettings, onSaved, onClose }: ReviewProps) {
  const changes = changesBetween(stored, settings);
  const wish = wishOf(settings);
  async function save(): Promise<void> {
    const { source, enrich, topic_arn: topic = '' } = wish;
    const body = {
      // a topic is that of a source, which a request names with it
      ...((source !== stored.source || topic !== stored.topic) && { source }),
      ...(enrich !== stored.enrich && { enrich }),
      ...(topic !== stored.topic && { topic_arn: topic === '' ? null : topic }),
    };
    const saved = await call('PATCH /v1/buckets/{bucket}', { params: { bucket }, body });
    announce('The settings are saved.');
    onSaved(saved.advice);
    onClose();
  }
  return (
    <Dialog title={changes.length === 0 ? `Plan for ${bucket}` : 'Save these settings?'} onClose={onClose}>
      {changes.length > 0 && (
        <ul>
          {changes.map(([name, from, to]) => (
            <li key={name}>
              {name}: {from === '' ? 'none' : <Text>{from}</Text>} → {to === '' ? 'none' : <Text>{to}</Text>}
            </li>
          ))}
        </ul>
      )}
      {settings.enrich !== stored.enrich && settings.enrich !== 'none' && (
        <p>Documents that are indexed already get it by a re-index that fills in missing fields.</p>
      )}
      <PlanStep
        bucket={bucket}
        wish={wish}
        apply="Apply"
        request={(plan) => call('POST /v1/buckets/{bucket}/apply', { params: { bucket }, body: { plan, ...wish } })}
        record={changes.length === 0 ? undefined : { text: 'Save without changing AWS', act: save }}
        onSource={(source) => onSettings({ ...settings, source, topic: '' })}
        onApplied={() => {
          announce('Everything is applied. S3 needs about five minutes until it sends every event, and a trail up to twenty.');
          onSaved();
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}

interface InAwsProps {
  readonly bucket: Bucket;
  readonly onChanged: () => void;
  readonly onPlan: () => void;
}

/** What a person can do about what the bucket has in AWS. */
function InAws({ bucket: { bucket: name, source, wiring }, onChanged, onPlan }: InAwsProps) {
  const [waitingFor, setWaitingFor] = useState<string>();
  // the watch sees a pause some seconds after it
  const [acted, setActed] = useState<'paused' | 'applied'>();
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  const isPaused = (acted ?? wiring?.state) === 'paused';
  const change = (paused: boolean) => call('PATCH /v1/buckets/{bucket}/notification', { params: { bucket: name }, body: { paused } });
  async function pause(): Promise<void> {
    await change(true);
    setActed('paused');
    announce('The notification is taken away. No events arrive until it is resumed.');
  }
  async function resume(): Promise<void> {
    await applyUntilDone({ request: () => change(false), onWaiting: setWaitingFor }, end.current.signal);
    setWaitingFor(undefined);
    setActed('applied');
    announce('The notification is there again. A re-index follows.');
    onChanged();
  }
  return (
    <>
      <div class="actions">
        <button type="button" class="outline" onClick={onPlan}>
          Show the plan
        </button>
        {source === 'notification' && !isPaused && (
          <AskedAct
            text="Pause notification…"
            look="outline"
            title={`Pause the notification of ${name}?`}
            submit="Pause"
            act={pause}
            onClosed={onChanged}
          >
            <p>
              Tally takes its notification away from the bucket, for the moment in which another one is made that would overlap with it.
              Only Resume restores it, and the re-index that follows finds what happens meanwhile.
            </p>
          </AskedAct>
        )}
        {source === 'notification' && isPaused && <Act act={resume}>Resume notification</Act>}
      </div>
      {waitingFor !== undefined && (
        <p role="status">
          Waiting for <Text>{waitingFor}</Text>.
        </p>
      )}
    </>
  );
}

type Kept = AnswerTo<'DELETE /v1/buckets/{bucket}'>['kept'];

/** Disconnects a bucket, and says what is left of it. */
export function DisconnectSection({ bucket: name }: { readonly bucket: string }) {
  if (!may('DELETE /v1/buckets/{bucket}')) return null;
  return (
    <section>
      <h2>Disconnect</h2>
      <p>Tally takes away what it made in AWS and deletes the bucket’s documents. The bucket and its objects are not touched.</p>
      <Opener text="Disconnect…" look="danger outline">
        {(close) => <DisconnectDialog name={name} onClose={close} />}
      </Opener>
    </section>
  );
}

const leave = (): void => go(hrefOf('buckets'));

function DisconnectDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [keepsAws, setKeepsAws] = useState(false);
  const [keepsDocuments, setKeepsDocuments] = useState(false);
  const [kept, setKept] = useState<Kept>();
  const isShown = useIsShown();
  async function remove(): Promise<void> {
    const query = { ...(keepsAws && { keep_aws: 'true' as const }), ...(keepsDocuments && { keep_documents: 'true' as const }) };
    const removed = await call('DELETE /v1/buckets/{bucket}', { params: { bucket: name }, query });
    announce(`${name} is disconnected.`);
    if (!isShown()) return;
    if (removed.kept.length === 0) leave();
    else setKept(removed.kept);
  }
  if (kept !== undefined) {
    return (
      <Dialog title={`${name} is disconnected`} onClose={leave}>
        <p>Left in AWS, because Tally does not delete what others have changed or need:</p>
        <ul>
          {kept.map(({ name: part, reason }) => (
            <li key={part}>
              <Text>{part}</Text>: <Text>{reason}</Text>
            </li>
          ))}
        </ul>
        <div class="actions">
          <button type="button" onClick={leave}>
            Show the buckets
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog title={`Disconnect ${name}?`} onClose={onClose} submit="Disconnect" onSubmit={remove} isDanger isDisabled={typed !== name}>
      <p>Searches find nothing of it any more. To index it again takes a re-index of the whole bucket.</p>
      <Check
        label="Keep what Tally made in AWS"
        isChecked={keepsAws}
        onChange={setKeepsAws}
        hint="Its events continue to arrive, and Tally forgets that it made what sends them."
      />
      <Check
        label="Keep the documents in the index"
        isChecked={keepsDocuments}
        onChange={setKeepsDocuments}
        hint="They stay as they are, and are not kept current."
      />
      <Field label="Type the name of the bucket" value={typed} onChange={setTyped} />
    </FormDialog>
  );
}
