/** Buttons that act, and forms. What they do takes a moment and may fail. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { problemFrom, type Problem } from './api.ts';
import { Dialog, Failure } from './parts.tsx';
import type { Choices } from './place.ts';

/**
 * What takes a moment and may fail, once at a time, however often it is asked for meanwhile. A dialog around it stays open until
 * then, and a button that is disabled while it acts has the focus again afterwards.
 */
function useActing() {
  const [isActing, setActing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  // what is drawn follows a moment later
  const acting = useRef(false);
  const focused = useRef<Element | null>(null);
  useLayoutEffect(() => {
    const { current: element } = focused;
    if (!isActing && document.activeElement === document.body && element instanceof HTMLElement) element.focus({ preventScroll: true });
    element?.closest('dialog')?.setAttribute('closedby', isActing ? 'none' : 'closerequest');
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
}

/** A button whose act takes a moment and may fail. */
export function Act({ children, act, look, isDisabled }: ActProps) {
  const { isActing, problem, run } = useActing();
  return (
    <>
      <button type="button" class={look} disabled={isActing || isDisabled === true} aria-busy={isActing} onClick={() => void run(act)}>
        {children}
      </button>
      {problem !== undefined && <Failure problem={problem} />}
    </>
  );
}

interface FormProps {
  readonly submit: string;
  /** Gets what was entered, by the names of the fields; a box that is not checked is absent. Throws what the person is shown. */
  readonly onSubmit: (entered: Choices) => Promise<unknown>;
  readonly onCancel?: () => void;
  /** The button of onCancel; `Cancel` is no answer where the act itself is to cancel something. */
  readonly cancelText?: string | undefined;
  readonly isDanger?: boolean | undefined;
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
        const entered = Object.fromEntries(
          [...new FormData(event.currentTarget)].map(([name, value]) => [name, typeof value === 'string' ? value : '']),
        );
        void run(async () => void (await onSubmit(entered)));
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

interface FormDialogProps extends Omit<FormProps, 'onCancel' | 'isDisabled'> {
  readonly title: string;
  /** What the person types before an act that cannot be undone. */
  readonly typed?: { readonly label: string; readonly text: string } | undefined;
  readonly onClose: () => void;
}

/** A dialog that asks before it acts. Cancel closes it. */
export function FormDialog({ title, typed, onClose, children, ...form }: FormDialogProps) {
  const [text, setText] = useState('');
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onCancel={onClose} isDisabled={typed !== undefined && text !== typed.text}>
        {children}
        {typed !== undefined && <Field label={typed.label} name="typed" onTyped={setText} />}
      </Form>
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

interface AskedActProps
  extends Pick<FormDialogProps, 'title' | 'submit' | 'cancelText' | 'typed' | 'children'>, Omit<OpenerProps, 'children'> {
  /** Gets what was entered. */
  readonly act: (entered: Choices) => Promise<unknown>;
}

/** A button that asks before it acts. What is dangerous is red in both places. */
export function AskedAct({ text, label, onClosed, act, look = 'danger outline small', ...dialog }: AskedActProps) {
  return (
    <Opener text={text} label={label} onClosed={onClosed} look={look}>
      {(close) => (
        <FormDialog {...dialog} isDanger={look.includes('danger')} onClose={close} onSubmit={(entered) => act(entered).then(close)} />
      )}
    </Opener>
  );
}

interface LabelledProps {
  readonly label: string;
  /** In what is entered. */
  readonly name?: string;
  readonly hint?: string | undefined;
}

interface ControlProps {
  readonly id: string;
  readonly name: string | undefined;
  readonly 'aria-describedby': string | undefined;
}

/** A control with its label above it, and a hint below it. */
function Labelled({ label, name, hint, children }: LabelledProps & { readonly children: (control: ControlProps) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, name, 'aria-describedby': hint === undefined ? undefined : `${id}-hint` })}
      {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

interface FieldProps extends LabelledProps {
  /** To begin with. */
  readonly value?: string;
  readonly onTyped?: (text: string) => void;
  /** Called when another value was typed and the field is left or Enter is pressed: that of a filter takes effect then. */
  readonly onChosen?: (text: string) => void;
  readonly type?: 'text' | 'number' | 'date' | 'email';
  readonly isRequired?: boolean;
  readonly placeholder?: string;
}

/** One line of text. */
export function Field({ value = '', onTyped, onChosen, type = 'text', isRequired, placeholder, ...labelled }: FieldProps) {
  return (
    <Labelled {...labelled}>
      {(control) => (
        <input
          key={value}
          {...control}
          // Preact's types of attributes depend on the type of the input
          {...({ type } as object)}
          defaultValue={value}
          required={isRequired}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          autocapitalize="off"
          onInput={(event) => onTyped?.(event.currentTarget.value)}
          onChange={(event) => onChosen?.(event.currentTarget.value)}
        />
      )}
    </Labelled>
  );
}

interface SelectProps extends LabelledProps {
  readonly value: string;
  readonly onChosen?: (value: string) => void;
  readonly choices: readonly (readonly [value: string, text: string])[];
  /** The choice that is empty is none. */
  readonly isRequired?: boolean;
}

export function Select({ value, onChosen, choices, isRequired, ...labelled }: SelectProps) {
  return (
    <Labelled {...labelled}>
      {(control) => (
        <select {...control} required={isRequired} onChange={(event) => onChosen?.(event.currentTarget.value)}>
          {choices.map(([each, text]) => (
            <option value={each} key={each} selected={each === value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

interface CheckProps extends LabelledProps {
  readonly isChecked?: boolean;
  readonly onChecked?: (isChecked: boolean) => void;
  readonly isDisabled?: boolean;
}

export function Check({ label, name, hint, isChecked, onChecked, isDisabled }: CheckProps) {
  const hintId = useId();
  return (
    <div class="check">
      <label>
        <input
          type="checkbox"
          name={name}
          defaultChecked={isChecked}
          disabled={isDisabled}
          aria-describedby={hint === undefined ? undefined : hintId}
          onChange={(event) => onChecked?.(event.currentTarget.checked)}
        />
        {label}
      </label>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}
