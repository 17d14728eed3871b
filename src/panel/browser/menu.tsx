/** A button that opens a small panel over the page, which Escape and a click beside it close. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface MenuProps {
  readonly shown: ComponentChildren;
  readonly look?: string;
  readonly children: ComponentChildren;
}

/** The panel stands at its button, where browsers know anchors, and in the middle otherwise. A choice closes it. */
export function Menu({ shown, look = 'outline small', children }: MenuProps) {
  const id = useId();
  return (
    <>
      <button type="button" class={look} {...{ popovertarget: id }}>
        {shown}
      </button>
      <div
        id={id}
        class="menu"
        popover="auto"
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest('button, a') !== null) event.currentTarget.hidePopover();
        }}
      >
        {children}
      </div>
    </>
  );
}
