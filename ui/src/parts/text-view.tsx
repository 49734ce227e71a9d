/** Long text and process output: virtual lines, ANSI colours, follows the end while it grows. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, type CSSProperties } from 'react';
import type { OutputLine } from '@/api/invoke';
import { parseAnsi, toLines, type AnsiStyle } from './ansi';
import { visibleText } from './format';
import classes from './parts.module.css';

const ROW = 18;

function spanStyle({ color, background, bold, dim, italic, underline, inverse }: AnsiStyle): CSSProperties | undefined {
  const front = color && (color.startsWith('rgb') ? color : `light-dark(var(--mantine-color-${color}-9), var(--mantine-color-${color}-4))`);
  const back = background && (background.startsWith('rgb') ? background : `light-dark(var(--mantine-color-${background}-2), var(--mantine-color-${background}-9))`);
  const [text, ground] = inverse ? [back ?? 'var(--mantine-color-body)', front ?? 'var(--mantine-color-text)'] : [front, back];
  return { color: text, background: ground, fontWeight: bold ? 700 : undefined, opacity: dim ? 0.75 : undefined, fontStyle: italic ? 'italic' : undefined, textDecoration: underline ? 'underline' : undefined };
}

function Line({ text, start }: { text: string; start: AnsiStyle | undefined }) {
  return <>{parseAnsi(text, start).map((span, index) => <span key={index} style={spanStyle(span)}>{visibleText(span.text)}</span>)}</>;
}

interface StyledLine extends OutputLine {
  /** The style in which the line begins. */
  style?: AnsiStyle;
}

export function OutputView({ lines, follow = false, maxHeight = 380, label }: { lines: StyledLine[]; follow?: boolean; maxHeight?: number; label: string }) {
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => scroll.current, estimateSize: () => ROW, overscan: 30 });
  useEffect(() => {
    if (follow && lines.length > 0) virtual.scrollToIndex(lines.length - 1);
  }, [follow, lines.length, virtual]);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls
    <div ref={scroll} className={classes.virtual} style={{ height: Math.min(maxHeight, Math.max(2, lines.length) * ROW + 14) }} tabIndex={0} role="region" aria-label={label}>
      <div style={{ height: virtual.getTotalSize(), position: 'relative', marginTop: 5 }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          return line && (
            <div key={item.index} className={classes.textRow} data-stream={line.stream} style={{ transform: `translateY(${item.start}px)` }}><Line text={line.text} start={line.style} /></div>
          );
        })}
      </div>
    </div>
  );
}

export function TextView({ text, label, maxHeight }: { text: string; label: string; maxHeight?: number }) {
  const lines = useMemo(() => toLines(text).map((line) => ({ stream: 'stdout' as const, text: line })), [text]);
  return <OutputView lines={lines} label={label} {...(maxHeight ? { maxHeight } : {})} />;
}
