import { Suspense } from 'react';
import { CodeBlock } from './basics';
import { lazyPart } from './lazy';

export interface EditorProblem {
  line?: number | undefined;
  column?: number | undefined;
  message: string;
  severity: 'error' | 'warning';
}

export interface EditorProps {
  value: string;
  onChange?: (value: string) => void;
  /** `json`, `python`, `rust`, …; one that is not known is shown plainly. */
  language: string;
  /** Called by Ctrl S. */
  onSave?: () => void;
  label: string;
  readOnly?: boolean;
  problems?: EditorProblem[];
  minHeight?: string;
  maxHeight?: string;
}

const CodeMirror = lazyPart(async () => (await import('./code-mirror')).default);
/** Longer texts are shown without an editor. */
export const MAX_CHARACTERS = 2_000_000;

/** An editor for code; text too large for it is shown plainly. */
export function Editor(props: EditorProps) {
  if (props.value.length > MAX_CHARACTERS) return <CodeBlock text={props.value.slice(0, MAX_CHARACTERS)} maxHeight="32rem" />;
  return <Suspense fallback={<CodeBlock text={props.value.slice(0, 5000)} maxHeight="32rem" />}><CodeMirror {...props} /></Suspense>;
}
