/** What a connection's checks found: what is wrong, why it matters, and what to paste. */
import type { Diagnosis } from '../../registry/contract/connections.ts';
import { pagesIn } from '../../base/doc-pages.ts';
import { Advice, CopyButton, Text } from './parts.tsx';

type Finding = Diagnosis['findings'][number];

/** A text of several lines, shown as they are. */
export function Lines({ children }: { readonly children: string | readonly string[] }) {
  const lines = typeof children === 'string' ? children.split('\n') : children;
  return (
    <pre tabIndex={0}>{lines.flatMap((line, index) => [...(index === 0 ? [] : ['\n']), <Text key={`line ${index}`}>{line}</Text>])}</pre>
  );
}

const severities: Readonly<Record<Finding['severity'], readonly [look: string, text: string]>> = {
  broken: ['bad', 'broken'],
  degraded: ['notable', 'degraded'],
  unknown: ['quiet', 'not checked'],
  note: ['quiet', 'note'],
};

export function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding, index) => {
        const [look, text] = severities[finding.severity];
        return (
          <li key={`${finding.code} ${index}`} class={look}>
            <p>
              <span class={`state ${look}`}>{text}</span> <Text>{finding.what}</Text> <small>({finding.code})</small>
            </p>
            <p>
              Why it matters: <Advice>{finding.why}</Advice>
            </p>
            <Remedy fix={finding.fix} />
          </li>
        );
      })}
    </ul>
  );
}

function Remedy({ fix }: { readonly fix: string }) {
  if (pagesIn(fix).length > 1) {
    return (
      <p>
        What to do: <Advice>{fix}</Advice>
      </p>
    );
  }
  return (
    <>
      <p>What to do:</p>
      <Lines>{fix}</Lines>
      <CopyButton copied={fix}>Copy the fix</CopyButton>
    </>
  );
}
