/** Buttons that act, and forms. What they do takes a moment and may fail. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { problemFrom, type Problem } from './api.ts';
import { Dialog, Failure } from './parts.tsx';

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

/**
 * What takes a moment and may fail, once at a time, however often it is asked for meanwhile. A dialog around it stays open until
 * then, unless the person `mayLeave`, and a button that is disabled while it acts has the focus again afterwards.
 */
function useActing(mayLeave = false) {
  const [isActing, setActing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  // what is drawn follows a moment later
  const acting = useRef(false);
  const focused = useRef<Element | null>(null);
  useLayoutEffect(() => {
    const { current: element } = focused;
    if (!isActing && document.activeElement === document.body && element instanceof HTMLElement) element.focus({ preventScroll: true });
    if (!mayLeave) element?.closest('dialog')?.setAttribute('closedby', isActing ? 'none' : 'closerequest');
  }, [isActing]);
  async function run(act: () => Promise<void>): Promise<void> {
    if (acting.current) return;
    acting.current = true;
    focused.current = document.activeElement;
    setActing(true);
    setProblem(undefined);
    try {
      await act();
    } catch (error) {
      setProblem(problemFrom(error));
    } finally {
      acting.current = false;
      setActing(false);
    }
  }
  return { isActing, problem, run };
}

interface ActProps {
  readonly children: string;
  /** What is done. It is done once at a time. */
  readonly act: () => Promise<void>;
  readonly look?: string;
  readonly isDisabled?: boolean;
  /** Closing the dialog ends the act. Otherwise the dialog stays until its answer, which takes less than a minute. */
  readonly mayLeave?: boolean;
  /** What a screen reader says of the button. Absent: its text. */
  readonly label?: string;
}

/** A button whose act takes a moment and may fail. */
export function Act({ children, act, look, isDisabled, mayLeave, label }: ActProps) {
  const { isActing, problem, run } = useActing(mayLeave);
  return (
    <>
      <button
        type="button"
        class={look}
        aria-label={label}
        disabled={isActing || isDisabled === true}
        aria-busy={isActing}
        onClick={() => void run(act)}
      >
        {children}
      </button>
      {problem !== undefined && <Failure problem={problem} />}
    </>
  );
}

interface FormProps {
  readonly submit: string;
  /** Throws what the person is shown. */
  readonly onSubmit: () => Promise<void>;
  readonly onCancel?: () => void;
  /** The button of onCancel; `Cancel` is no answer where the act itself is to cancel something. */
  readonly cancelText?: string;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  readonly children: ComponentChildren;
}

/** A form whose submission takes a moment and may fail. What was typed stays. */
export function Form({ submit, onSubmit, onCancel, cancelText = 'Cancel', isDanger, isDisabled, children }: FormProps) {
  const { isActing, problem, run } = useActing();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(onSubmit);
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
        {onCancel !== undefined && (
          <button type="button" class="outline" disabled={isActing} onClick={onCancel}>
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

interface OpenerProps {
  readonly text: string;
  readonly look?: string | undefined;
  /** What a screen reader says of the button. Absent: its text. */
  readonly label?: string | undefined;
  /** Called when the dialog is closed, whatever came of it: what it is about may be another by now. */
  readonly onClosed?: (() => void) | undefined;
  /** The dialog. */
  readonly children: (close: () => void) => ComponentChildren;
}

/** A button, and the dialog that it opens. */
export function Opener({ text, look, label, onClosed, children }: OpenerProps) {
  const [isOpen, setOpen] = useState(false);
  function close(): void {
    setOpen(false);
    onClosed?.();
  }
  return (
    <>
      <button type="button" class={look} aria-label={label} onClick={() => setOpen(true)}>
        {text}
      </button>
      {isOpen && children(close)}
    </>
  );
}

interface AskedActProps extends Pick<FormDialogProps, 'title' | 'submit' | 'cancelText' | 'children'>, Omit<OpenerProps, 'children'> {
  readonly act: () => Promise<unknown>;
}

/** A button that asks before it acts. What is dangerous is red in both places. */
export function AskedAct({ text, label, onClosed, act, look = 'danger outline small', ...dialog }: AskedActProps) {
  return (
    <Opener text={text} label={label} onClosed={onClosed} look={look}>
      {(close) => <FormDialog {...dialog} isDanger={look.includes('danger')} onClose={close} onSubmit={() => act().then(close)} />}
    </Opener>
  );
}

interface LabelledProps {
  readonly label: string;
  readonly hint?: string | undefined;
}

interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
}

/** A control with its label above it, and a hint below it. */
function Labelled({ label, hint, children }: LabelledProps & { readonly children: (control: ControlProps) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': hint === undefined ? undefined : `${id}-hint` })}
      {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

interface FieldProps extends LabelledProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Called when the person is done with the field. */
  readonly onDone?: (value: string) => void;
  readonly type?: 'text' | 'number' | 'date' | 'email';
  readonly isRequired?: boolean;
  readonly placeholder?: string;
}

/** One line of text. */
export function Field({ label, hint, value, onChange, onDone, type = 'text', isRequired, placeholder }: FieldProps) {
  return (
    <Labelled label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          // Preact's types of attributes depend on the type of the input
          {...({ type } as object)}
          value={value}
          required={isRequired}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          autocapitalize="off"
          onInput={(event) => onChange(event.currentTarget.value)}
          onChange={(event) => onDone?.(event.currentTarget.value)}
        />
      )}
    </Labelled>
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

interface SelectProps extends LabelledProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly (readonly [value: string, text: string])[];
  /** The choice that is empty is none. */
  readonly isRequired?: boolean;
}

export function Select({ label, hint, value, onChange, choices, isRequired }: SelectProps) {
  return (
    <Labelled label={label} hint={hint}>
      {(control) => (
        <select {...control} value={value} required={isRequired} onChange={(event) => onChange(event.currentTarget.value)}>
          {choices.map(([each, text]) => (
            <option value={each} key={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

interface CheckProps extends LabelledProps {
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
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
