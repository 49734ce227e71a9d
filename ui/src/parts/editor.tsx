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
  language: 'json' | 'yaml' | 'skill' | 'python' | 'bash' | 'text';
  label: string;
  readOnly?: boolean;
  problems?: EditorProblem[];
  minHeight?: string;
  maxHeight?: string;
}

const CodeMirror = lazyPart(async () => (await import('./code-mirror')).default);
const MAX_CHARACTERS = 2_000_000;

/** An editor for code; text too large for it is shown plainly. */
export function Editor(props: EditorProps) {
  if (props.value.length > MAX_CHARACTERS) return <CodeBlock text={props.value.slice(0, MAX_CHARACTERS)} maxHeight="32rem" />;
  return <Suspense fallback={<CodeBlock text={props.value.slice(0, 5000)} maxHeight="32rem" />}><CodeMirror {...props} /></Suspense>;
}
