/** What a bucket has in AWS: what the hourly watch found, and what a person can do about it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Bucket } from '../../api/buckets.ts';
import { call, type AnswerTo } from './api.ts';
import { untilApplied } from './applying.ts';
import { Severity } from './findings.tsx';
import { Act, FormDialog } from './form.tsx';
import { announce, Dialog, Link, Text, Time } from './parts.tsx';
import { KeptParts } from './remove-dialog.tsx';
import { ScriptDialog } from './script.tsx';
import { may } from './session.ts';
import type { PlanWish } from './plan.tsx';

type Open = 'pause' | 'resume' | 'script' | 'clean';

interface PartProps {
  readonly bucket: Bucket;
  /** As it is stored. */
  readonly wish: PlanWish;
  readonly onChanged: () => void;
  /** Shows the plan once the bucket is read again. */
  readonly onPlan: () => Promise<void>;
}

export function ConnectionPart({ bucket, wish, onChanged, onPlan }: PartProps) {
  const { bucket: name, source, wiring } = bucket;
  const [open, setOpen] = useState<Open>();
  // the watch sees a pause some seconds after it
  const [acted, setActed] = useState<'paused' | 'applied'>();
  const isPaused = acted === undefined ? wiring?.state === 'paused' : acted === 'paused';
  const close = (): void => setOpen(undefined);
  const done = (state: 'paused' | 'applied', text: string): void => {
    setActed(state);
    announce(text);
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
        {source === 'notification' && !isPaused && (
          <button type="button" class="outline" onClick={() => setOpen('pause')}>
            Pause notification…
          </button>
        )}
        {source === 'notification' && isPaused && (
          <button type="button" onClick={() => setOpen('resume')}>
            Resume notification…
          </button>
        )}
        <button type="button" class="outline" onClick={() => setOpen('script')}>
          Show the script
        </button>
        <button type="button" class="outline" onClick={() => setOpen('clean')}>
          Clean…
        </button>
      </div>
      {open !== undefined && <Opened open={open} name={name} wish={wish} onDone={done} onClose={close} />}
    </section>
  );
}

interface OpenedProps {
  readonly open: Open;
  readonly name: string;
  readonly wish: PlanWish;
  readonly onDone: (state: 'paused' | 'applied', text: string) => void;
  readonly onClose: () => void;
}

function Opened({ open, name, wish, onDone, onClose }: OpenedProps) {
  switch (open) {
    case 'pause':
      return <PauseDialog name={name} onDone={(text) => onDone('paused', text)} onClose={onClose} />;
    case 'resume':
      return <ResumeDialog name={name} onDone={(text) => onDone('applied', text)} onClose={onClose} />;
    case 'script':
      return <ScriptDialog bucket={name} wish={wish} onClose={onClose} />;
    case 'clean':
      return <CleanDialog name={name} onClose={onClose} />;
  }
}

function WiringDetails({ bucket: { bucket, wiring } }: { readonly bucket: Bucket }) {
  return (
    <>
      {wiring === undefined ? (
        <p class="quiet">The hourly watch has not looked at it yet.</p>
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
          <Link page="doctor" choices={{ bucket }}>
            Ask the doctor
          </Link>
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
    await call('POST /v1/buckets/{bucket}/pause-notification', { params: { bucket: name } });
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
    const request = () => call('POST /v1/buckets/{bucket}/resume-notification', { params: { bucket: name } });
    await untilApplied({ request, onWaiting: setWaitingFor }, end.current.signal);
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

function CleanDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [cleaned, setCleaned] = useState<AnswerTo<'POST /v1/buckets/{bucket}/clean'>>();
  async function clean(): Promise<void> {
    setCleaned(await call('POST /v1/buckets/{bucket}/clean', { params: { bucket: name } }));
  }
  if (cleaned === undefined) {
    return (
      <FormDialog title={`Clean what ${name} had before?`} onClose={onClose} submit="Clean" onSubmit={clean} isDanger>
        <p>
          What Tally made in AWS for the sources that the bucket had before is taken away. It is refused until the present source is applied
          and a re-index has closed the gap of the change.
        </p>
      </FormDialog>
    );
  }
  return (
    <Dialog title={`${name} is clean`} onClose={onClose}>
      <p role="status">{cleaned.kept.length === 0 ? 'Only what the bucket needs now is left in AWS.' : 'Left in AWS:'}</p>
      {cleaned.kept.length > 0 && <KeptParts kept={cleaned.kept} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
