/** Forms, and buttons that act. Their action takes a moment and may fail. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { problemFrom, type Problem } from './api.ts';
import { Dialog, Failure } from './parts.tsx';
import type { Choices } from './place.ts';

interface FormProps {
  readonly submit: string;
  /** Receives the entered values by field name, without unchecked boxes. Throws the error to show. */
  readonly onSubmit: (entered: Choices) => Promise<unknown>;
  readonly look?: string;
  readonly onCancel?: () => void;
  /** The text of the cancel button, because `Cancel` is ambiguous if the action itself cancels something. */
  readonly cancelText?: string | undefined;
  readonly isDisabled?: boolean;
  /** The fields; without any, the form is just a button. */
  readonly children?: ComponentChildren;
}

/**
 * A form whose submission takes a moment and may fail. It submits once at a time, however often the person clicks, and keeps what they
 * typed. A dialog around it stays open until it is done, and the button, disabled in the meantime, gets the focus back.
 */
export function Form({ submit, onSubmit, look, onCancel, cancelText = 'Cancel', isDisabled = false, children }: FormProps) {
  const [isActing, setActing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  // the page is drawn a moment later
  const acting = useRef(false);
  const focused = useRef<Element | null>(null);
  useLayoutEffect(() => {
    const { current: element } = focused;
    if (!isActing && document.activeElement === document.body && element instanceof HTMLElement) element.focus({ preventScroll: true });
    element?.closest('dialog')?.setAttribute('closedby', isActing ? 'none' : 'closerequest');
  }, [isActing]);
  async function run(form: HTMLFormElement): Promise<void> {
    if (acting.current) return;
    acting.current = true;
    focused.current = document.activeElement;
    setActing(true);
    setProblem(undefined);
    try {
      await onSubmit(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, typeof value === 'string' ? value : ''])));
    } catch (error) {
      setProblem(problemFrom(error));
    } finally {
      acting.current = false;
      setActing(false);
    }
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(event.currentTarget);
      }}
    >
      {children}
      {problem !== undefined && <Failure problem={problem} />}
      <div class="actions">
        <button type="submit" class={look} disabled={isActing || isDisabled} aria-busy={isActing}>
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

interface AskedActProps extends Pick<FormProps, 'cancelText' | 'children'> {
  readonly text: string;
  /** The text of the dialog's button. Default: `text`. */
  readonly submit?: string;
  readonly look?: string;
  /** The button's label for screen readers. Default: its text. */
  readonly label?: string;
  readonly title: string;
  /** What the person must type before an action that cannot be undone. */
  readonly typed?: { readonly label: string; readonly text: string };
  /** Receives the entered values. Resolves with what the dialog shows next; if nothing, the dialog closes. */
  readonly act: (entered: Choices) => Promise<ComponentChildren | void>;
  /** Called when the dialog closes, whatever the result: its subject may have changed by then. */
  readonly onClosed?: () => void;
}

const focus = (element: HTMLElement | null): void => element?.focus();

/** A button that asks in a dialog before it acts. Dangerous actions are red in both places. */
export function AskedAct({
  text,
  submit = text.replace('…', ''),
  label,
  look = 'danger outline small',
  title,
  typed,
  act,
  onClosed,
  children,
  cancelText,
}: AskedActProps) {
  const [isOpen, setOpen] = useState(false);
  const [entered, setEntered] = useState('');
  const [result, setResult] = useState<ComponentChildren>();
  function close(): void {
    setOpen(false);
    setEntered('');
    setResult(undefined);
    onClosed?.();
  }
  async function run(all: Choices): Promise<void> {
    const shown = (await act(all)) ?? undefined;
    if (shown === undefined) close();
    else setResult(shown);
  }
  return (
    <>
      <button type="button" class={look} aria-label={label} onClick={() => setOpen(true)}>
        {text}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={close}>
          {result === undefined ? (
            <Form
              submit={submit}
              cancelText={cancelText}
              {...(look.includes('danger') && { look: 'danger' })}
              isDisabled={typed !== undefined && entered !== typed.text}
              onSubmit={run}
              onCancel={close}
            >
              {children}
              {typed !== undefined && <Field label={typed.label} name="typed" onTyped={setEntered} />}
            </Form>
          ) : (
            <>
              {result}
              <button ref={focus} type="button" onClick={close}>
                Close
              </button>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}

interface LabelledProps {
  readonly label: string;
  /** Its name in the entered values. */
  readonly name?: string;
  readonly hint?: string | undefined;
}

interface ControlProps {
  readonly id: string;
  readonly name: string | undefined;
  readonly 'aria-describedby': string | undefined;
}

/** A control with its label above and a hint below. */
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
  /** The initial value. */
  readonly value?: string;
  readonly onTyped?: (text: string) => void;
  /** Called when the person has changed the value and leaves the field or presses Enter. Filters take effect then. */
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
          // in Preact, the attributes' types depend on the input's type
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
}

export function Select({ value, onChosen, choices, ...labelled }: SelectProps) {
  return (
    <Labelled {...labelled}>
      {(control) => (
        <select {...control} onChange={(event) => onChosen?.(event.currentTarget.value)}>
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
  readonly isDisabled?: boolean;
}

export function Check({ label, name, hint, isChecked, isDisabled }: CheckProps) {
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
        />
        {label}
      </label>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}
