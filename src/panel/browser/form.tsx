/** Buttons that act, and forms. What they do takes a moment and may fail. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { problemFrom, type Problem } from './api.ts';
import { restoreFocus } from './focus.ts';
import { Dialog, Failure } from './parts.tsx';

/** A button that is disabled while it acts loses the focus. Returns what notes the place of the focus, to which it returns then. */
function useKeptFocus(isActing: boolean): () => void {
  const place = useRef<Element | null>(null);
  useLayoutEffect(() => {
    if (!isActing) restoreFocus(place.current);
  }, [isActing]);
  return () => {
    place.current = document.activeElement;
  };
}

/** Whether the component is shown still, for what follows an answer that took a moment. */
export function useIsShown(): () => boolean {
  const isGone = useRef(false);
  useLayoutEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  return () => !isGone.current;
}

/** What takes a moment and may fail, once at a time, however often it is asked for meanwhile. */
function useActing(report: (problem: Problem | undefined) => void) {
  const [isActing, setActing] = useState(false);
  // what is drawn follows a moment later
  const acting = useRef(false);
  const noteFocus = useKeptFocus(isActing);
  function show(is: boolean): void {
    acting.current = is;
    setActing(is);
  }
  async function run(act: () => Promise<void>): Promise<void> {
    if (acting.current) return;
    noteFocus();
    show(true);
    report(undefined);
    try {
      await act();
    } catch (error) {
      report(problemFrom(error));
    } finally {
      show(false);
    }
  }
  return { isActing, run };
}

interface ActProps {
  readonly children: string;
  /** What is done. It is done once at a time. */
  readonly act: () => Promise<void>;
  readonly isDanger?: boolean;
  readonly isSecondary?: boolean;
  readonly isDisabled?: boolean;
  readonly onProblem?: (problem: Problem | undefined) => void;
}

/** A button whose act takes a moment and may fail. */
export function Act({ children, act, isDanger, isSecondary, isDisabled, onProblem }: ActProps) {
  const [problem, setProblem] = useState<Problem>();
  const { isActing, run } = useActing(onProblem ?? setProblem);
  return (
    <>
      <button
        type="button"
        class={classOf(isDanger, isSecondary)}
        disabled={isActing || isDisabled === true}
        aria-busy={isActing}
        data-acting={isActing}
        onClick={() => void run(act)}
      >
        {children}
      </button>
      {problem !== undefined && <Failure problem={problem} />}
    </>
  );
}

function classOf(isDanger: boolean | undefined, isSecondary: boolean | undefined): string | undefined {
  if (isDanger === true) return 'danger';
  return isSecondary === true ? 'secondary outline' : undefined;
}

interface FormProps {
  readonly submit: string;
  /** Throws what the person is shown. */
  readonly onSubmit: () => Promise<void>;
  readonly onCancel?: () => void;
  /** The button of onCancel; `Cancel` is no answer where the act itself is to cancel something. */
  readonly cancelText?: string;
  /** A second way to submit what was typed. */
  readonly otherwise?: { readonly text: string; readonly act: () => Promise<void> };
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  /** Closing the dialog ends the submission. Otherwise the dialog stays until its answer, which takes less than a minute. */
  readonly mayLeave?: boolean;
  readonly children: ComponentChildren;
}

/** A form whose submission takes a moment and may fail. What was typed stays. */
export function Form({
  submit,
  onSubmit,
  onCancel,
  cancelText = 'Cancel',
  otherwise,
  isDanger,
  isDisabled,
  mayLeave,
  children,
}: FormProps) {
  const [problem, setProblem] = useState<Problem>();
  const { isActing, run } = useActing(setProblem);
  return (
    <form
      data-acting={isActing && mayLeave !== true}
      onSubmit={(event) => {
        event.preventDefault();
        const isOtherwise = event.submitter?.dataset['otherwise'] !== undefined;
        void run(isOtherwise && otherwise !== undefined ? otherwise.act : onSubmit);
      }}
    >
      {children}
      {problem !== undefined && <Failure problem={problem} />}
      <div class="actions">
        <button
          type="submit"
          class={isDanger === true ? 'danger' : undefined}
          disabled={isActing || isDisabled === true}
          aria-busy={isActing}
        >
          {submit}
        </button>
        {otherwise !== undefined && (
          <button type="submit" class="secondary outline" data-otherwise disabled={isActing || isDisabled === true}>
            {otherwise.text}
          </button>
        )}
        {onCancel !== undefined && (
          <button type="button" class="secondary outline" disabled={isActing && mayLeave !== true} onClick={onCancel}>
            {cancelText}
          </button>
        )}
      </div>
    </form>
  );
}

interface FormDialogProps extends Omit<FormProps, 'onCancel'> {
  readonly title: string;
  readonly onClose: () => void;
}

/** A dialog that asks before it acts. Cancel closes it. */
export function FormDialog({ title, onClose, ...form }: FormDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  );
}

type FieldType = 'text' | 'search' | 'number' | 'date' | 'email';

/** Preact's types of attributes depend on the type of the input, so the type is set apart from them. */
function inputType(type: FieldType): object {
  return { type };
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Called when the person is done with the field. */
  readonly onDone?: (value: string) => void;
  readonly hint?: string;
  readonly type?: FieldType;
  readonly isRequired?: boolean;
  readonly id?: string;
  readonly placeholder?: string;
}

/** One line of text. */
export function Field({ label, value, onChange, onDone, hint, type = 'text', isRequired, id, placeholder }: FieldProps) {
  const hintId = useId();
  return (
    <div class="field">
      <label>
        {label}
        <input
          {...inputType(type)}
          id={id}
          value={value}
          required={isRequired}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          autocapitalize="off"
          aria-describedby={hint === undefined ? undefined : hintId}
          onInput={(event) => onChange(event.currentTarget.value)}
          onChange={(event) => onDone?.(event.currentTarget.value)}
        />
      </label>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}

interface ChosenProps extends Omit<FieldProps, 'onChange' | 'onDone'> {
  readonly onChosen: (value: string) => void;
}

/** One line of a filter, which takes effect when it is left or Enter is pressed. */
export function Chosen({ value, onChosen, ...field }: ChosenProps) {
  const [typed, setTyped] = useState(value);
  useLayoutEffect(() => setTyped(value), [value]);
  return <Field {...field} value={typed} onChange={setTyped} onDone={(text) => text !== value && onChosen(text)} />;
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly (readonly [value: string, text: string])[];
  readonly hint?: string;
}

export function Select({ label, value, onChange, choices, hint }: SelectProps) {
  const hintId = useId();
  return (
    <div class="field">
      <label>
        {label}
        <select
          value={value}
          aria-describedby={hint === undefined ? undefined : hintId}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {choices.map(([each, text]) => (
            <option value={each} key={each}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}

interface CheckProps {
  readonly label: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly hint?: string;
  readonly isDisabled?: boolean;
}

export function Check({ label, isChecked, onChange, hint, isDisabled }: CheckProps) {
  const hintId = useId();
  return (
    <div class="check">
      <label>
        <input
          type="checkbox"
          checked={isChecked}
          disabled={isDisabled}
          aria-describedby={hint === undefined ? undefined : hintId}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        {label}
      </label>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}
