/** What is shown while the documents of a bucket do not have the fields that a search reads: how far their upgrade is. */
import { useEffect } from 'preact/hooks';
import { problemFrom, type Problem } from './api.ts';
import { useLoaded } from './load.ts';
import { Text } from './parts.tsx';
import { numberText } from './words.ts';

/** The upgrade of a bucket takes minutes to hours. */
const ASK_MS = 5_000;

interface UpgradingProps {
  /** Identifies what is wanted. */
  readonly of: string;
  /** Asks for it once more. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly problem: Problem;
  readonly onDone: () => void;
}

/** Asks again until it is possible. */
export function Upgrading({ of, ask, problem: before, onDone }: UpgradingProps) {
  const read = async (signal: AbortSignal): Promise<Problem | undefined> => {
    try {
      await ask(signal);
      return undefined;
    } catch (error) {
      return problemFrom(error);
    }
  };
  const { value, atMs } = useLoaded(`upgrading ${of}`, read, { everyMs: ASK_MS });
  const isOver = atMs !== undefined && value?.code !== 'index.upgrading';
  useEffect(() => {
    if (isOver) onDone();
  }, [isOver]);
  const { message, numbers } = value ?? before;
  const { documents = 0, documents_left: left = 0 } = numbers;
  return (
    <div class="advice">
      <p>
        <Text>{message}</Text>.
      </p>
      <progress value={documents - left} max={Math.max(documents, 1)} aria-label="Upgraded documents" />
      <p>
        {numberText(documents - left)} of {numberText(documents)} documents are upgraded. The page continues by itself.
      </p>
    </div>
  );
}
