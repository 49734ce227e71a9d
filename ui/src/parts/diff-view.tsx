import { Text } from '@mantine/core';
import { useMemo } from 'react';
import { useT } from '@/i18n';
import { diffLines, foldUnchanged } from './diff';
import { visibleText } from './format';
import classes from './parts.module.css';

export function DiffView({ before, after, beforeLabel, afterLabel }: { before: string; after: string; beforeLabel?: string; afterLabel?: string }) {
  const t = useT();
  const rows = useMemo(() => foldUnchanged(diffLines(before, after)), [before, after]);
  if (before === after) return <Text c="dimmed">{t('diff.same')}</Text>;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls
    <div className={classes.diff} tabIndex={0} role="region" aria-label={`${beforeLabel ?? t('diff.before')} / ${afterLabel ?? t('diff.after')}`}>
      <div className={`${classes.diffRow} ${classes.diffHead}`}><div>{beforeLabel ?? t('diff.before')}</div><div>{afterLabel ?? t('diff.after')}</div></div>
      {rows.map((row, index) => ('fold' in row ? <div key={index} className={classes.diffFold}>⋯ {t('diff.unchanged', { n: row.fold })}</div> : (
        <div key={index} className={classes.diffRow}>
          <div className={row.changed && row.left !== null ? classes.removed : undefined}>{row.left !== null && visibleText(row.left)}</div>
          <div className={row.changed && row.right !== null ? classes.added : undefined}>{row.right !== null && visibleText(row.right)}</div>
        </div>
      )))}
    </div>
  );
}
