/** Groups as areas: d3-hierarchy places them, and they are drawn as SVG. The table beside it is for those who cannot see it. */
import { hierarchy, treemap, type HierarchyRectangularNode } from 'd3-hierarchy';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { printable } from '../../domain/printable.ts';
import { inFolder, type Usage } from './group-name.tsx';
import { go, hrefOf } from './place.ts';
import { choicesOf, type Search } from './search-place.ts';
import { sizeText } from './words.ts';

/** Smaller areas cannot be told apart. */
const AREAS_MAX = 60;
const HEIGHT_PX = 320;
/** An area of this width has room for a name. */
const NAMED_PX = 56;
/** A character of a name, in pixels. */
const LETTER_PX = 7;

interface TreemapProps {
  readonly areas: readonly Usage[];
  readonly search: Search;
  readonly prefix: string;
}

interface Area {
  readonly group?: Usage;
  readonly children?: readonly Area[];
}

export function Treemap({ areas: groups, search, prefix }: TreemapProps) {
  const drawing = useRef<SVGSVGElement>(null);
  const [widthPx, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = drawing;
    if (current === null) return undefined;
    const resized = new ResizeObserver(() => setWidth(current.clientWidth));
    setWidth(current.clientWidth);
    resized.observe(current);
    return () => resized.disconnect();
  }, []);
  const areas = useMemo(() => placed(groups, widthPx), [groups, widthPx]);
  return (
    <svg ref={drawing} class="treemap" aria-hidden="true">
      {areas.map((area, place) => (
        <AreaDrawn key={place} area={area} search={search} prefix={prefix} />
      ))}
    </svg>
  );
}

function placed(groups: readonly Usage[], widthPx: number): readonly HierarchyRectangularNode<Area>[] {
  if (widthPx === 0) return [];
  const largest = groups.toSorted((a, b) => b.bytes - a.bytes).slice(0, AREAS_MAX);
  const root = hierarchy<Area>({ children: largest.map((group) => ({ group })) }).sum(({ group }) => group?.bytes ?? 0);
  return treemap<Area>().size([widthPx, HEIGHT_PX]).padding(1).round(true)(root).leaves();
}

interface AreaProps {
  readonly area: HierarchyRectangularNode<Area>;
  readonly search: Search;
  readonly prefix: string;
}

function AreaDrawn({ area: { data, x0, x1, y0, y1 }, search, prefix }: AreaProps) {
  const { group } = data;
  if (group === undefined || x1 <= x0 || y1 <= y0) return null;
  const { name } = group;
  const whole = name === undefined ? '(here)' : printable(name.slice(prefix.length));
  const drawn = <Drawn x={x0} y={y0} width={x1 - x0} height={y1 - y0} text={whole} bytes={group.bytes} />;
  if (name === undefined) return <g>{drawn}</g>;
  const href = hrefOf('usage', choicesOf(inFolder(search, name)));
  return (
    <a
      href={href}
      {...UNREACHED}
      onClick={(event) => {
        event.preventDefault();
        go(href);
      }}
    >
      {drawn}
    </a>
  );
}

/** The table is for the keyboard. SVG knows the attribute only. */
const UNREACHED: object = { tabindex: '-1' };

interface DrawnProps {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly text: string;
  readonly bytes: number;
}

function Drawn({ x, y, width, height, text, bytes }: DrawnProps) {
  const room = Math.floor((width - 12) / LETTER_PX);
  const shown = text.length > room ? `${text.slice(0, Math.max(0, room - 1))}…` : text;
  const isNamed = width > NAMED_PX;
  return (
    <>
      <title>{`${text}: ${sizeText(bytes)}`}</title>
      <rect x={x} y={y} width={width} height={height} rx={3} />
      {isNamed && height > 22 && (
        <text x={x + 6} y={y + 16}>
          {shown}
        </text>
      )}
      {isNamed && height > 40 && (
        <text x={x + 6} y={y + 32} class="bytes">
          {sizeText(bytes)}
        </text>
      )}
    </>
  );
}
