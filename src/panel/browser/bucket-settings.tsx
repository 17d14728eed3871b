/** Indexing and notifications: how the events of a bucket arrive, and what is indexed of its objects. */
import { useRef, useState, useEffect } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../api/bucket.ts';
import { call } from './api.ts';
import { facts } from './facts.ts';
import { Field, Form, Select, Act, FormDialog } from './form.tsx';
import { announce, Dialog, Text, Time } from './parts.tsx';
import { PlanStep, type PlanWish } from './plan.tsx';
import { applyUntilDone } from './applying.ts';
import { Severity } from './findings.tsx';
import { may } from './session.ts';
import { ToPage } from './bucket-act.tsx';

interface BucketSettings {
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
  head: 'head: content type and user metadata too; one more S3 request per object',
  tags: 'tags: tags as well; two more S3 requests per object',
};

interface FieldsProps {
  readonly settings: BucketSettings;
  readonly onChange: (settings: BucketSettings) => void;
  /** As they are stored, for a bucket that is connected. */
  readonly stored?: BucketSettings;
}

/** A topic belongs to its source: the stored one does not stay under another source. */
function withSource(settings: BucketSettings, source: Bucket['source'], stored: BucketSettings | undefined): BucketSettings {
  if (stored === undefined) return { ...settings, source };
  if (source === stored.source && settings.topic === '') return { ...settings, source, topic: stored.topic };
  return { ...settings, source, topic: source !== stored.source && settings.topic === stored.topic ? '' : settings.topic };
}

export function SettingsFields({ settings, onChange, stored }: FieldsProps) {
  const sourceOf = (value: string): Bucket['source'] => facts.bucketSources.find((each) => each === value) ?? settings.source;
  return (
    <>
      <Select
        label="Source"
        value={settings.source}
        choices={facts.bucketSources.map((source) => [source, sourceTexts[source]])}
        onChange={(value) => onChange(withSource(settings, sourceOf(value), stored))}
        hint="How the events of the bucket reach the bucket queue."
      />
      <Field
        label="Topic identifier"
        value={settings.topic}
        onChange={(topic) => onChange({ ...settings, topic })}
        isRequired={settings.source === 'topic'}
        placeholder="arn:aws:sns:REGION:ACCOUNT:NAME"
        hint="The ARN of the SNS topic that the events come through, if it is yours. Empty: Tally makes one where the source needs it. The sources notification and eventbridge take none of yours."
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

/** The settings as the operation takes them that adds a bucket. */
export function settingsBody({ source, topic, enrich }: BucketSettings) {
  return { source, enrich, ...(topic.trim() !== '' && { topic_arn: topic.trim() }) };
}

/** Whether a plan leads the events through a topic that is not Tally's. */
function hasOwnTopic({ source }: Pick<BucketSettings, 'source'>): boolean {
  return source === 'topic' || source === 'routed';
}

/** The settings as a plan takes them. A topic that was stored for another source than `topic` or `routed` is Tally's, and not asked for. */
export function wishOf(settings: BucketSettings, stored?: BucketSettings): PlanWish {
  const { topic_arn: topicArn, ...wish } = settingsBody(settings);
  const isAsked = hasOwnTopic(settings) || topicArn !== stored?.topic;
  return { ...wish, ...(isAsked && topicArn !== undefined && { topic_arn: topicArn }) };
}

/** The settings after another wish was chosen. */
export function settingsAfter(settings: BucketSettings, { source, topic_arn: topic }: PlanWish): BucketSettings {
  if (source === undefined || (source === settings.source && topic === undefined)) return settings;
  return { ...settings, source, topic: topic ?? '' };
}

/** Administrators, who alone see the form, are shown all of a bucket. */
function settingsOf({ source = 'notification', topic_arn: topic = '', enrich = 'none' }: ShownBucket): BucketSettings {
  return { source, topic, enrich };
}

/** What another person or tab has stored since the form was opened; what was not changed in the form follows it. */
function rebased(settings: BucketSettings, opened: BucketSettings, now: BucketSettings): BucketSettings {
  return {
    source: settings.source === opened.source ? now.source : settings.source,
    topic: settings.topic === opened.topic ? now.topic : settings.topic,
    enrich: settings.enrich === opened.enrich ? now.enrich : settings.enrich,
  };
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

/** The section of a bucket's page. What changes, in the record and in AWS, is shown before it is done. */
export function SettingsSection({ bucket, onSaved }: { readonly bucket: Bucket; readonly onSaved: () => void }) {
  // as the form was opened with: a submission is compared with it
  const [opened, setOpened] = useState(() => settingsOf(bucket));
  const [settings, setSettings] = useState(opened);
  const [others, setOthers] = useState<readonly Change[]>([]);
  const [isShown, setShown] = useState(false);
  const [advice, setAdvice] = useState<string>();
  async function review(): Promise<void> {
    const now = settingsOf(await call('GET /v1/buckets/{bucket}', { params: { bucket: bucket.bucket } }));
    setOthers(changesBetween(opened, now));
    setSettings(rebased(settings, opened, now));
    setOpened(now);
    // once the button has the focus again, to which the dialog gives it back
    requestAnimationFrame(() => setShown(true));
  }
  function keep(saved: BucketSettings): void {
    setOpened(saved);
    setSettings(saved);
  }
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Indexing and notifications</h2>
      <Form submit="Save…" onSubmit={review}>
        <SettingsFields settings={settings} onChange={setSettings} stored={opened} />
      </Form>
      {advice !== undefined && (
        <p class="advice">
          <Text>{advice}</Text>
        </p>
      )}
      <ConnectionPart bucket={bucket} onChanged={onSaved} onPlan={review} />
      {isShown && (
        <ReviewDialog
          bucket={bucket.bucket}
          stored={opened}
          others={others}
          settings={settings}
          onSettings={setSettings}
          onStored={keep}
          onAdvice={setAdvice}
          onSaved={onSaved}
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
  /** What another person or tab has changed since the form was opened. */
  readonly others: readonly Change[];
  readonly settings: BucketSettings;
  /** Another wish was chosen. */
  readonly onSettings: (settings: BucketSettings) => void;
  /** The settings are stored. */
  readonly onStored: (settings: BucketSettings) => void;
  readonly onAdvice: (advice: string | undefined) => void;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

function Changes({ of }: { readonly of: readonly Change[] }) {
  return (
    <ul>
      {of.map(({ name, from, to }) => (
        <li key={name}>
          {name}: {from === '' ? 'none' : <Text>{from}</Text>} → {to === '' ? 'none' : <Text>{to}</Text>}
        </li>
      ))}
    </ul>
  );
}

/** The changes, and the plan of what they take in AWS. */
function ReviewDialog({ bucket, stored, others, settings, onSettings, onStored, onAdvice, onSaved, onClose }: ReviewProps) {
  const applied = useRef<BucketSettings | undefined>(undefined);
  const changes = changesBetween(stored, settings);
  async function save(): Promise<void> {
    const { source, enrich } = settings;
    const topic = settings.topic.trim();
    const body = {
      // a topic is that of a source, which a request names with it
      ...((source !== stored.source || topic !== stored.topic) && { source }),
      ...(enrich !== stored.enrich && { enrich }),
      ...(topic !== stored.topic && { topic_arn: topic === '' ? null : topic }),
    };
    const saved = await call('PATCH /v1/buckets/{bucket}', { params: { bucket }, body });
    onStored(settingsOf(saved));
    onAdvice(saved.advice);
    announce('The settings are saved.');
    onSaved();
    onClose();
  }
  async function follow(): Promise<void> {
    announce('Everything is applied.');
    onSaved();
    applied.current = settingsOf(await call('GET /v1/buckets/{bucket}', { params: { bucket } }));
  }
  /** What was applied is shown as it was chosen, until the dialog is closed. */
  function close(): void {
    if (applied.current !== undefined) onStored(applied.current);
    onClose();
  }
  const record = { text: 'Save without changing AWS', act: save };
  return (
    <Dialog title={changes.length === 0 ? `Plan for ${bucket}` : 'Save these settings?'} onClose={close}>
      {others.length > 0 && (
        <div class="advice" role="status">
          <p>Changed by someone else while this form was open, and kept:</p>
          <Changes of={others} />
        </div>
      )}
      {changes.length > 0 && <Changes of={changes} />}
      {changes.some(({ name }) => name === 'Enrichment') && settings.enrich !== 'none' && (
        <p>Documents that are indexed already get it by a re-index that fills in missing fields.</p>
      )}
      <PlanStep
        bucket={bucket}
        wish={wishOf(settings, stored)}
        apply="Apply"
        record={changes.length === 0 ? undefined : record}
        onWish={(wish) => onSettings(settingsAfter(settings, wish))}
        onApplied={() => {
          onAdvice(undefined);
          // without an answer the settings stay as they were chosen
          follow().catch(() => undefined);
        }}
        onClose={close}
      />
    </Dialog>
  );
}

/** What a bucket has in AWS: what the hourly watch found, and what a person can do about it. */

type Open = 'pause' | 'resume';

interface PartProps {
  readonly bucket: Bucket;
  readonly onChanged: () => void;
  /** Shows the plan once the bucket is read again. */
  readonly onPlan: () => Promise<void>;
}

function ConnectionPart({ bucket, onChanged, onPlan }: PartProps) {
  const { bucket: name, source, wiring } = bucket;
  const [open, setOpen] = useState<Open>();
  // the watch sees a pause some seconds after it
  const [acted, setActed] = useState<'paused' | 'applied'>();
  const isPaused = acted === undefined ? wiring?.state === 'paused' : acted === 'paused';
  const [next, text, look] = isPaused
    ? (['resume', 'Resume notification…', undefined] as const)
    : (['pause', 'Pause notification…', 'outline'] as const);
  const close = (): void => setOpen(undefined);
  const done = (state: 'paused' | 'applied', said: string): void => {
    setActed(state);
    announce(said);
    onChanged();
    close();
  };
  return (
    <section aria-labelledby="connection-heading">
      <h3 id="connection-heading">In AWS</h3>
      <WiringDetails bucket={bucket} />
      <div class="actions">
        <Act act={onPlan} isSecondary>
          Show the plan
        </Act>
        {source === 'notification' && (
          <button type="button" class={look} onClick={() => setOpen(next)}>
            {text}
          </button>
        )}
      </div>
      {open === 'pause' && <PauseDialog name={name} onDone={(said) => done('paused', said)} onClose={close} />}
      {open === 'resume' && <ResumeDialog name={name} onDone={(said) => done('applied', said)} onClose={close} />}
    </section>
  );
}

function WiringDetails({ bucket: { bucket, wiring } }: { readonly bucket: Bucket }) {
  return (
    <>
      {wiring === undefined ? (
        <p class="quiet">The hourly watch has not checked it yet.</p>
      ) : (
        <p>
          <Severity of={wiring.state} /> since <Time at={wiring.since} />, as the hourly watch saw <Time at={wiring.checked_at} />
        </p>
      )}
      {wiring !== undefined && wiring.findings.length > 0 && (
        <ul>
          {wiring.findings.map(({ code, what }, index) => (
            <li key={`${code} ${index}`}>
              <Text>{what}</Text> <small>({code})</small>
            </li>
          ))}
        </ul>
      )}
      {may('GET /v1/buckets/{bucket}/doctor') && (
        <p class="links">
          <ToPage page="doctor" bucket={bucket} />
        </p>
      )}
    </>
  );
}

interface DialogProps {
  readonly name: string;
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
}

function PauseDialog({ name, onDone, onClose }: DialogProps) {
  async function pause(): Promise<void> {
    await call('PATCH /v1/buckets/{bucket}/notification', { params: { bucket: name }, body: { paused: true } });
    onDone('The notification is taken away. No events arrive until it is resumed.');
  }
  return (
    <FormDialog title={`Pause the notification of ${name}?`} onClose={onClose} submit="Pause" onSubmit={pause} isDanger>
      <p>
        Tally’s notification is taken away from the bucket, for the moment in which another one is made that would overlap with it. Only
        Resume restores it, and what happens meanwhile is found by the re-index that follows.
      </p>
    </FormDialog>
  );
}

function ResumeDialog({ name, onDone, onClose }: DialogProps) {
  const [waitingFor, setWaitingFor] = useState<string>();
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  async function resume(): Promise<void> {
    const request = () => call('PATCH /v1/buckets/{bucket}/notification', { params: { bucket: name }, body: { paused: false } });
    await applyUntilDone({ request, onWaiting: setWaitingFor }, end.current.signal);
    if (end.current.signal.aborted) return;
    onDone('The notification is there again. A re-index follows.');
  }
  return (
    <FormDialog title={`Resume the notification of ${name}?`} onClose={onClose} submit="Resume" onSubmit={resume} mayLeave>
      <p>Tally’s notification is made again. Events of the meantime are lost, so a re-index follows.</p>
      {waitingFor !== undefined && (
        <p role="status">
          Waiting for <Text>{waitingFor}</Text>.
        </p>
      )}
    </FormDialog>
  );
}
