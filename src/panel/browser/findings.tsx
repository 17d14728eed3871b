/** What the checks of a connection found: what is wrong, why it matters, and what to paste. */
import type { Diagnosis } from '../../api/connections.ts';
import { pagesIn } from '../../domain/doc-pages.ts';
import { Advice, CopyButton, Link, Text } from './parts.tsx';

type Finding = Diagnosis['findings'][number];

/** A text of several lines, each shown as it is. */
export function Lines({ children }: { readonly children: string | readonly string[] }) {
  const lines = typeof children === 'string' ? children.split('\n') : children;
  return (
    <pre tabIndex={0}>{lines.flatMap((line, index) => [...(index === 0 ? [] : ['\n']), <Text key={`line ${index}`}>{line}</Text>])}</pre>
  );
}

/** `ok` is good, `broken` loses events; whatever else a check or the watch says needs a look. */
export function Severity({ of }: { readonly of: string }) {
  return <span class={`state ${LOOKS.get(of) ?? 'notable'}`}>{of}</span>;
}

const LOOKS: ReadonlyMap<string, string> = new Map([
  ['ok', 'good'],
  ['broken', 'bad'],
]);

/** Whether the panel has a button for what this command does: a person here needs no command line. */
function isButton(fix: string): boolean {
  return /^`?tally bucket add /.test(fix);
}

interface FindingsProps {
  readonly findings: readonly Finding[];
  /** The bucket whose page has the buttons. Absent: they are shown beside the findings. */
  readonly bucket?: string;
}

export function Findings({ findings, bucket }: FindingsProps) {
  return (
    <ul class="findings">
      {findings.map((finding, index) => (
        <li key={`${finding.code} ${index}`}>
          <p>
            <Severity of={finding.severity} /> <Text>{finding.what}</Text> <small>({finding.code})</small>
          </p>
          <p>
            Why it matters: <Advice>{finding.why}</Advice>
          </p>
          <Remedy fix={finding.fix} bucket={bucket} />
        </li>
      ))}
    </ul>
  );
}

function Remedy({ fix, bucket }: { readonly fix: string; readonly bucket: string | undefined }) {
  if (pagesIn(fix).length > 1) {
    return (
      <p>
        What to do: <Advice>{fix}</Advice>
      </p>
    );
  }
  if (!isButton(fix)) {
    return (
      <>
        <p>What to do:</p>
        <Lines>{fix}</Lines>
        <CopyButton copied={{ text: fix, isJson: false }}>Copy the fix</CopyButton>
      </>
    );
  }
  if (bucket === undefined) return null;
  return (
    <p>
      What to do:{' '}
      <Link page="bucket" choices={{ bucket, tab: 'settings' }}>
        its settings have the button, under In AWS
      </Link>
    </p>
  );
}
