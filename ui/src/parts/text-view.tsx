/** Long text and process output: virtual lines, ANSI colours, follows the end while it grows. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef } from 'react';
import type { OutputLine } from '@/api/invoke';
import { parseAnsi, toLines } from './ansi';
import { visibleText } from './format';
import classes from './parts.module.css';

const ROW = 18;

function Line({ text }: { text: string }) {
  return (
    <>
      {parseAnsi(text).map((span, index) => (
        <span key={index} style={{ color: span.color && `light-dark(var(--mantine-color-${span.color}-9), var(--mantine-color-${span.color}-4))`, fontWeight: span.bold ? 700 : undefined }}>
          {visibleText(span.text)}
        </span>
      ))}
    </>
  );
}

export function OutputView({ lines, follow = false, maxHeight = 380, label }: { lines: OutputLine[]; follow?: boolean; maxHeight?: number; label: string }) {
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
            <div key={item.index} className={classes.textRow} data-stream={line.stream} style={{ transform: `translateY(${item.start}px)` }}><Line text={line.text} /></div>
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
