/** Indexing and notifications: how the events of a bucket arrive, and what is indexed of its objects. */
import { useState } from 'preact/hooks';
import type { Bucket } from '../../api/buckets.ts';
import { call, Problem } from './api.ts';
import { facts } from './facts.ts';
import { Field, Form, Select } from './form.tsx';
import { announce, Dialog, Text } from './parts.tsx';

export interface BucketSettings {
  readonly source: Bucket['source'];
  readonly topic: string;
  readonly enrich: Bucket['enrich'];
}

export const emptySettings: BucketSettings = { source: 'notification', topic: '', enrich: 'none' };

const sourceTexts: Readonly<Record<Bucket['source'], string>> = {
  notification: 'notification: S3 sends events to the bucket queue',
  topic: 'topic: S3 sends events to an SNS topic, and the topic to the bucket queue',
  eventbridge: 'eventbridge: S3 sends events to EventBridge, and a rule to the bucket queue',
  routed: 'routed: a rule for the audit trail sends events, where a notification would clash',
};

const enrichTexts: Readonly<Record<Bucket['enrich'], string>> = {
  none: 'none: what events report',
  head: 'head: content type and user metadata too, for one more request to S3 for each object',
  tags: 'tags: tags as well, for two more requests to S3 for each object',
};

interface FieldsProps {
  readonly settings: BucketSettings;
  readonly onChange: (settings: BucketSettings) => void;
}

export function SettingsFields({ settings, onChange }: FieldsProps) {
  return (
    <>
      <Select
        label="Source"
        value={settings.source}
        choices={facts.bucketSources.map((source) => [source, sourceTexts[source]])}
        onChange={(value) => onChange({ ...settings, source: facts.bucketSources.find((each) => each === value) ?? settings.source })}
        hint="How the events of the bucket reach the bucket queue."
      />
      <Field
        label="Topic identifier"
        value={settings.topic}
        onChange={(topic) => onChange({ ...settings, topic })}
        isRequired={settings.source === 'topic'}
        placeholder="arn:aws:sns:REGION:ACCOUNT:NAME"
        hint="The ARN of the SNS topic that the events come through, if there is one."
      />
      <Select
        label="Enrichment"
        value={settings.enrich}
        choices={facts.enrichModes.map((mode) => [mode, enrichTexts[mode]])}
        onChange={(value) => onChange({ ...settings, enrich: facts.enrichModes.find((each) => each === value) ?? settings.enrich })}
        hint="What is indexed of each object."
      />
    </>
  );
}

/** The settings as the API takes them. */
export function settingsBody({ source, topic, enrich }: BucketSettings) {
  return { source, enrich, ...(topic.trim() !== '' && { topic_arn: topic.trim() }) };
}

function settingsOf({ source, topic_arn: topic = '', enrich }: Bucket): BucketSettings {
  return { source, topic, enrich };
}

interface Change {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/** What a submission would change. */
function changesBetween(before: BucketSettings, after: BucketSettings): readonly Change[] {
  const all = [
    { name: 'Source', from: before.source, to: after.source },
    { name: 'Topic identifier', from: before.topic, to: after.topic.trim() },
    { name: 'Enrichment', from: before.enrich, to: after.enrich },
  ];
  return all.filter(({ from, to }) => from !== to);
}

/** The section of a bucket's page. What changes is shown before it is stored. */
export function SettingsSection({ bucket, onSaved }: { readonly bucket: Bucket; readonly onSaved: () => void }) {
  const [settings, setSettings] = useState(() => settingsOf(bucket));
  const [isShown, setShown] = useState(false);
  const [advice, setAdvice] = useState<string>();
  const changes = changesBetween(settingsOf(bucket), settings);
  async function review(): Promise<void> {
    if (changes.length === 0) throw new Problem('nothing was changed', 'settings.unchanged');
    if (bucket.topic_arn !== undefined && settings.topic.trim() === '' && settings.source === bucket.source) {
      throw new Problem('the topic identifier can be replaced, and goes only with another source', 'settings.topic');
    }
    setShown(true);
  }
  async function save(): Promise<void> {
    const saved = await call('POST /v1/buckets', { body: { bucket: bucket.bucket, ...settingsBody(settings) } });
    setSettings(settingsOf(saved));
    setAdvice(saved.advice);
    setShown(false);
    announce('The settings are saved.');
    onSaved();
  }
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Indexing and notifications</h2>
      <Form submit="Save…" onSubmit={review}>
        <SettingsFields settings={settings} onChange={setSettings} />
      </Form>
      {advice !== undefined && <p class="advice">{advice}</p>}
      {isShown && (
        <Dialog title="Save these settings?" onClose={() => setShown(false)}>
          <Form submit="Save" onSubmit={save} onCancel={() => setShown(false)}>
            <ul>
              {changes.map(({ name, from, to }) => (
                <li key={name}>
                  {name}: {from === '' ? 'none' : <Text>{from}</Text>} → {to === '' ? 'none' : <Text>{to}</Text>}
                </li>
              ))}
            </ul>
            <p>Nothing is changed in AWS. Events that arrive by another way than this one are not trusted to be complete.</p>
          </Form>
        </Dialog>
      )}
    </section>
  );
}
