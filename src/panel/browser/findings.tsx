/** What the checks of a connection found: what is wrong, why it matters, and what to paste. */
import type { Diagnosis } from '../../api/connections.ts';
import { CopyButton, Text } from './parts.tsx';

type Finding = Diagnosis['findings'][number];

/** A text of several lines, each shown as it is. */
export function Lines({ children }: { readonly children: string | readonly string[] }) {
  const lines = typeof children === 'string' ? children.split('\n') : children;
  return (
    <pre tabIndex={0}>{lines.flatMap((line, index) => [...(index === 0 ? [] : ['\n']), <Text key={`line ${index}`}>{line}</Text>])}</pre>
  );
}

/** `ok` is good; whatever else a check or the watch says needs a look. */
export function Severity({ of }: { readonly of: string }) {
  return <span class={`state ${of === 'ok' ? 'good' : 'notable'}`}>{of}</span>;
}

export function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding, index) => (
        <li key={`${finding.code} ${index}`}>
          <p>
            <Severity of={finding.severity} /> <Text>{finding.what}</Text> <small>({finding.code})</small>
          </p>
          <p>
            Why it matters: <Text>{finding.why}</Text>
          </p>
          <p>What to do:</p>
          <Lines>{finding.fix}</Lines>
          <CopyButton copied={{ text: finding.fix, isJson: false }}>Copy the fix</CopyButton>
        </li>
      ))}
    </ul>
  );
}
