/** docs/reference/error-codes.md, written from the catalogues of faults and of refused requests, and from the exit codes. */
import { circuitOf, faults, jobAnswerOf, type FaultCircuit, type FaultCode, type JobAnswer } from '../../src/base/fault.ts';
import { requestErrors } from '../../src/base/request-error.ts';
import { statusOf } from '../../src/registry/contract/problem.ts';
import { docsPage, pagesIn } from '../../src/base/doc-pages.ts';
import { findings } from './findings.ts';
import { textOf } from './pages.ts';
import { exitMeanings, exitCodes } from '../../src/cli/errors.ts';

/** What waits for the end of a fault. */
const waits: Readonly<Record<FaultCircuit, string>> = {
  cluster: 'All records wait: Tally receives nothing until a probe of the index store succeeds.',
  index: "The bucket's records wait. Other buckets are not affected.",
  endpoint: "The region's records that need S3 wait. Tally still writes exact events.",
  bucket: "The bucket's records that need S3 wait. Tally still writes exact events, and other buckets are not affected.",
  queue: 'While this lasts, Tally receives nothing from the queue.',
  object: 'Only this record or request fails. Tally retries a message until its last receive, then dead-letters it.',
  never: 'Nothing waits: the message goes to the dead-letter queue at once, with its original text.',
};

/** What happens instead, for single faults. */
const ownWaits: Partial<Record<FaultCode, string>> = {
  'lifecycle.denied': 'Nothing waits, and no job fails.',
  'queue.no-dead-letter': 'Tally opens the gaps that the message needs, and the message stays in its queue.',
  'message.too-large': 'The message stays in its queue.',
  'message.moved': "Tally opens a gap for each bucket that the letter names, or for all the queue's buckets if it names none.",
};

/** What a re-index job or a sweep does. */
const ofJobs: Readonly<Record<JobAnswer, string>> = {
  stop: 'Re-index jobs keep their place and wait.',
  wait: "The bucket's re-index jobs keep their place and wait.",
  skip: 'Re-index jobs wait; sweeps continue with the next object.',
  retry: 'A re-index job fails after three attempts without progress.',
  fail: 'A re-index job fails.',
};

/** The status of a request that meets a fault, with few exceptions. */
const USUAL_STATUS = statusOf('index.unreachable');

/** What no re-index job and no sweep meets: the queue and its messages, logins, the registry of a command, and what it does in AWS. */
const NOT_IN_JOBS = /^(?:message|issuer|queue|registry|connect|audit)\./;

/** What only a request of a person or a program meets. */
const OF_REQUESTS = /^(?:issuer|registry|connect|audit)\./;

/** The page. */
export function errorCodesPage(): string {
  const causes = {
    ...causesIn('src/base/fault.ts'),
    ...causesIn('src/base/request-error.ts'),
  };
  const causeOf = (code: string): string => {
    const cause = causes[code];
    if (cause === undefined) throw new Error(`${code} has no comment that says what happened`);
    return cause;
  };
  const faultParts = Object.keys(faults).map((name) => {
    const code = name as FaultCode;
    const { advice } = faults[code];
    const ownWait = ownWaits[code];
    const jobs = NOT_IN_JOBS.test(code) || ownWait !== undefined ? '' : ` ${ofJobs[jobAnswerOf(code)]}`;
    const status = statusOf(code) === USUAL_STATUS ? '' : `Status ${statusOf(code)}. `;
    return part(
      code,
      `${status}${causeOf(code)} ${ownWait ?? (OF_REQUESTS.test(code) ? 'Only this request fails.' : waits[circuitOf(code)])}${jobs}`,
      `*What to do.* ${withLinks(advice)}`,
    );
  });
  const requestParts = Object.entries(requestErrors).map(([code, status]) => part(code, `Status ${status}. ${causeOf(code)}`));
  const exits = Object.entries(exitMeanings).map(([name, meaning]) => `| ${exitCodes[name as keyof typeof exitCodes]} | ${meaning} |`);
  return `# Error codes

Logs, metrics, commands and problem documents identify failures by code. A code's meaning never changes. A problem document's \`type\` is the URL of its code on this page; commands print it too.

## Faults

A fault is something that doesn't work: a service, a bucket, a message. Tally retries by itself where that can help. Affected requests get status ${USUAL_STATUS}, unless this page says otherwise.

${faultParts.join('\n')}
## Refused requests

The response's message says what to do.

${requestParts.join('\n')}
## Findings of the doctor

Plans, \`tally doctor\` and the hourly check of connections report these. Each finding says what is wrong, why it matters, and which command or statement to paste.

${findings()
  .map(([code, meaning]) => part(code, meaning))
  .join('\n')}
## Exit codes

| code | meaning |
|---|---|
${exits.join('\n')}
`;
}

/** The text with links to the pages that it names. */
function withLinks(text: string): string {
  return pagesIn(text)
    .map(({ text: each, isPage }) => (isPage ? linkTo(each.replace(docsPage('docs/'), '')) : each))
    .join('');
}

function linkTo(page: string): string {
  const [, title] = /^# (.+)$/m.exec(textOf(`docs/${page.split('#')[0]}`)) ?? [];
  return `[${title}](../${page})`;
}

/** GitHub makes no anchor with hyphens of a code, so that the address stands before the heading. */
function part(code: string, ...texts: readonly string[]): string {
  return `<a id="${code.replaceAll('.', '-')}"></a>\n\n### ${code}\n\n${texts.join('\n\n')}\n`;
}

/** The comment above each code of a catalogue. */
function causesIn(path: string): Readonly<Record<string, string>> {
  const entries = textOf(path).matchAll(/^  \/\*\* (.+?) \*\/\n  '([a-z0-9.-]+)':/gm);
  return Object.fromEntries([...entries].map(([, comment = '', code = '']) => [code, comment]));
}
