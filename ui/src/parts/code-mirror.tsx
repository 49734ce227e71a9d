/** CodeMirror 6; loaded only where an editor is shown. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, defaultHighlightStyle, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useLayoutEffect, useRef } from 'react';
import type { EditorProps } from './editor';
import { loadLanguage } from './editor-languages';
import { styleNonce } from './nonce';
import classes from './parts.module.css';

const darkColors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.attributeName, tags.definition(tags.variableName)], color: '#78b4f5' },
  { tag: [tags.string, tags.special(tags.string)], color: '#8fd19e' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: '#f2b45c' },
  { tag: [tags.keyword, tags.operator, tags.tagName, tags.meta], color: '#d0a2f7' },
  { tag: [tags.typeName, tags.className, tags.heading, tags.function(tags.variableName)], color: '#78b4f5' },
  { tag: tags.inserted, color: '#8fd19e' }, { tag: [tags.deleted, tags.invalid], color: '#ff8787' }, { tag: [tags.link, tags.url], color: '#8fd19e', textDecoration: 'underline' },
  { tag: tags.comment, color: '#9aa1ad', fontStyle: 'italic' },
]);

const base = EditorView.theme({
  '&': { backgroundColor: 'var(--mantine-color-body)', color: 'var(--mantine-color-text)' },
  '.cm-content': { fontFamily: 'var(--mantine-font-family-monospace)', caretColor: 'var(--mantine-color-text)' },
  '.cm-gutters': { backgroundColor: 'var(--haft-surface)', color: 'var(--mantine-color-dimmed)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--mantine-color-text) 5%, transparent)' },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)', outlineOffset: '-2px' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--mantine-primary-color-filled) 30%, transparent) !important' },
  '.cm-tooltip': { backgroundColor: 'var(--mantine-color-body)', color: 'var(--mantine-color-text)', border: '1px solid var(--haft-border)' },
});

export default function CodeMirror(props: EditorProps) {
  const { value, onChange, onSave, language, readOnly = false, label, problems, minHeight = '8rem', maxHeight = '32rem' } = props;
  const isDark = useComputedColorScheme('light') === 'dark';
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const change = useRef(onChange);
  const save = useRef(onSave);
  const text = useRef(value);
  useLayoutEffect(() => {
    change.current = onChange;
    save.current = onSave;
    text.current = value;
  });

  useEffect(() => {
    if (!box.current) return;
    const nonce = styleNonce();
    const languageSlot = new Compartment();
    const editor = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: text.current,
        extensions: [
          lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightSelectionMatches(),
          ...(readOnly ? [] : [highlightActiveLine()]), lintGutter(), languageSlot.of([]),
          syntaxHighlighting(isDark ? darkColors : defaultHighlightStyle, { fallback: true }), base,
          EditorView.theme({ '.cm-scroller': { minHeight, maxHeight, overflow: 'auto' } }, { dark: isDark }),
          // Escape leaves the editor, so that Tab is no trap for the keyboard.
          keymap.of([
            { key: 'Escape', run: (target) => { target.contentDOM.blur(); return true; } },
            { key: 'Mod-Enter', run: () => true },
            { key: 'Mod-s', run: () => { save.current?.(); return save.current !== undefined; } },
            ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap, indentWithTab,
          ]),
          EditorState.readOnly.of(readOnly), EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorView.lineWrapping,
          ...(nonce ? [EditorView.cspNonce.of(nonce)] : []),
          EditorView.updateListener.of((update) => { if (update.docChanged) change.current?.(update.state.doc.toString()); }),
        ],
      }),
    });
    view.current = editor;
    let isShown = true;
    void loadLanguage(language).then((extension) => { if (isShown) editor.dispatch({ effects: languageSlot.reconfigure(extension) }); });
    return () => {
      isShown = false;
      editor.destroy();
    };
  }, [language, readOnly, isDark, label, minHeight, maxHeight]);

  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
    }
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const diagnostics: Diagnostic[] = (problems ?? []).filter((problem) => problem.line !== undefined).map((problem) => {
      const line = editor.state.doc.line(Math.max(1, Math.min(editor.state.doc.lines, problem.line ?? 1)));
      return { from: Math.min(line.to, line.from + Math.max(0, (problem.column ?? 1) - 1)), to: line.to, severity: problem.severity, message: problem.message };
    });
    editor.dispatch(setDiagnostics(editor.state, diagnostics));
    // The positions depend on the text, which is read from the editor.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [problems, value]);

  return <div ref={box} className={classes.editor} data-error={problems?.some((problem) => problem.severity === 'error')} />;
}
