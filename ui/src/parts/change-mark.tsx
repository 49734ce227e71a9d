import type { FileChangeKind } from '@/api/types';
import { useT } from '@/i18n';
import classes from './parts.module.css';

const LETTERS: Record<FileChangeKind, string> = { added: 'A', modified: 'M', removed: 'D' };

/** A letter and a colour for what happened to a file. */
export function ChangeMark({ change }: { change: FileChangeKind }) {
  const t = useT();
  const word = t(`workspaces.change.${change}`);
  return <span className={classes.change} data-change={change} role="img" aria-label={word} title={word}>{LETTERS[change]}</span>;
}
