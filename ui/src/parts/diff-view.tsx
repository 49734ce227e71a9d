import { Text } from '@mantine/core';
import { useMemo } from 'react';
import { useT } from '@/i18n';
import { diffLines, foldUnchanged, type Folded } from './diff';
import { visibleText } from './format';
import classes from './parts.module.css';

// Rows have no fixed height, so they are not virtual; more of them would freeze the page.
const MAX_ROWS = 3000;

/** Two texts side by side, as rows. */
export function DiffRows({ rows, beforeLabel, afterLabel }: { rows: Folded[]; beforeLabel: string; afterLabel: string }) {
  const t = useT();
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls
    <div className={classes.diff} tabIndex={0} role="region" aria-label={`${beforeLabel} / ${afterLabel}`}>
      <div className={`${classes.diffRow} ${classes.diffHead}`} data-same={beforeLabel === afterLabel}><div>{beforeLabel}</div><div>{afterLabel}</div></div>
      {rows.slice(0, MAX_ROWS).map((row, index) => ('fold' in row ? <div key={index} className={classes.diffFold}>⋯ {t('diff.unchanged', { n: row.fold })}</div> : (
        <div key={index} className={classes.diffRow} data-same={!row.changed}>
          <div className={row.changed && row.left !== null ? classes.removed : undefined}>{row.left !== null && visibleText(row.left)}</div>
          <div className={row.changed && row.right !== null ? classes.added : undefined}>{row.right !== null && visibleText(row.right)}</div>
        </div>
      )))}
      {rows.length > MAX_ROWS && <div className={classes.diffFold}>{t('json.moreItems', { n: rows.length - MAX_ROWS })}</div>}
    </div>
  );
}

export function DiffView({ before, after, beforeLabel, afterLabel }: { before: string; after: string; beforeLabel?: string; afterLabel?: string }) {
  const t = useT();
  const rows = useMemo(() => foldUnchanged(diffLines(before, after)), [before, after]);
  if (before === after) return <Text c="dimmed">{t('diff.same')}</Text>;
  return <DiffRows rows={rows} beforeLabel={beforeLabel ?? t('diff.before')} afterLabel={afterLabel ?? t('diff.after')} />;
}
