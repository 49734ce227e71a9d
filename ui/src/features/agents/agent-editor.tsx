/** Form and source of an agent beside each other; the server checks while one types. */
import { Alert, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconCircleCheck } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Agent } from '@/api/agent-types';
import { agentKeys, agentQuery, agents } from '@/api/agents';
import type { JsonObject, Problem, SourceForm } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { useDraft } from '@/parts/draft';
import { Editor, type EditorProblem } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { FormAndSource, ProblemLines, RestoredNote } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
import { readSource, toYaml } from '@/parts/source';
import { PublishDialog } from './agent-actions';
import { AgentForm } from './agent-form';
import { definitionOf, isConflict } from './definition';

export type AgentSourceForm = Extract<SourceForm, 'yaml' | 'json'>;

export interface AgentDraft {
  text: string;
  form: AgentSourceForm;
  /** The revision that was edited. */
  revision?: number;
}

export const write = (doc: JsonObject, form: AgentSourceForm): string => (form === 'json' ? `${JSON.stringify(doc, null, 2)}\n` : toYaml(doc));

function useCheck(doc: JsonObject | undefined) {
  const [settled] = useDebouncedValue(doc, 400);
  return useQuery({
    queryKey: ['check-agent', JSON.stringify(settled)],
    queryFn: () => agents.check(settled ?? {}),
    enabled: settled !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    // Tools may change meanwhile.
    staleTime: 30_000,
    gcTime: 60_000,
  });
}

const NONE: Problem[] = [];

export function AgentEditor({ draft, onChange, isNew }: { draft: AgentDraft; onChange: (draft: AgentDraft) => void; isNew: boolean }) {
  const t = useT();
  const { text, form } = draft;
  const source = useMemo(() => readSource(text, form), [text, form]);
  const check = useCheck(source.error === undefined ? source.doc : undefined);
  const errors = check.data?.errors ?? NONE;
  const warnings = check.data?.warnings ?? NONE;
  const problems = useMemo<EditorProblem[]>(() => (source.error ? [{ message: source.error, line: source.line ?? 1, severity: 'error' }] : []), [source]);
  const changeForm = (next: AgentSourceForm) => { if (source.error === undefined) onChange({ ...draft, text: write(source.doc, next), form: next }); };
  const formSide = source.error
    ? <Alert color="yellow" variant="light" title={t('define.fixSource')}>{visibleText(source.error)}</Alert>
    : <AgentForm text={text} form={form} source={source} errors={errors} warnings={warnings} isNew={isNew} onChange={(next) => onChange({ ...draft, text: next })} />;
  const sourceSide = (
    <Stack gap="sm">
      <SegmentedControl aria-label={t('define.source')} value={form} disabled={source.error !== undefined} onChange={(next) => changeForm(next as AgentSourceForm)} data={[{ value: 'yaml', label: 'YAML' }, { value: 'json', label: 'JSON' }]} style={{ alignSelf: 'flex-start' }} />
      <Editor language={form} label={t('define.source')} value={text} onChange={(next) => onChange({ ...draft, text: next })} problems={problems} minHeight="20rem" maxHeight="60vh" />
      {check.error && <ErrorPanel error={check.error} />}
      {check.data?.valid && source.error === undefined && <Group gap={6}><IconCircleCheck size={15} color="var(--haft-good)" /><Text c="dimmed">{t('define.valid')}</Text></Group>}
      <ProblemLines errors={errors} warnings={warnings} />
    </Stack>
  );
  return <FormAndSource form={formSide} source={sourceSide} />;
}

/** Somebody else has stored another revision since. */
function Conflict({ agent, mine, onTakeTheirs, onKeepMine }: { agent: Agent; mine: string; onTakeTheirs: () => void; onKeepMine: (revision: number) => void }) {
  const t = useT();
  const theirs = useQuery({ ...agentQuery(agent.id), staleTime: 0 }).data;
  return (
    <Alert color="yellow" variant="light" title={t('agents.conflict')} role="alert">
      <Stack gap="sm">
        <Text>{t('agents.conflictHint')}</Text>
        {theirs && <DiffView before={toYaml(definitionOf(theirs))} after={mine} beforeLabel={t('tools.revisionN', { n: theirs.revision })} afterLabel={t('agents.mine')} />}
        <Group gap="sm">
          <Button variant="default" onClick={onTakeTheirs}>{t('files.loadCurrent')}</Button>
          <Button variant="default" disabled={!theirs} onClick={() => { if (theirs) onKeepMine(theirs.revision); }}>{t('files.overwrite')}</Button>
        </Group>
      </Stack>
    </Alert>
  );
}

/** The editor of a stored agent. */
export function EditAgent({ agent }: { agent: Agent }) {
  const t = useT();
  const stored = useMemo(() => write(definitionOf(agent), 'yaml'), [agent]);
  const draft = useDraft<AgentDraft>(`agent.${agent.id}`, { text: stored, form: 'yaml', revision: agent.revision });
  const [publishing, setPublishing] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const { text, form, revision } = draft.value;
  const source = readSource(text, form);
  const changed = draft.isDirty && text !== write(definitionOf(agent), form);
  const save = useAction((expected: number | undefined) => agents.update(agent.id, source.doc, expected), {
    invalidates: [agentKeys.all], failed: setFailure,
    done: () => { draft.clear(); setFailure(undefined); notify(t('define.saved')); },
  });
  const discard = () => { draft.clear(); setFailure(undefined); };
  return (
    <Stack>
      <RestoredNote at={changed ? draft.restoredAt : undefined} onDiscard={discard} />
      <Group gap="sm" justify="flex-end">
        {changed && <Button variant="subtle" color="gray" onClick={discard}>{t('common.discard')}</Button>}
        <Button variant={changed ? 'filled' : 'default'} disabled={!changed || source.error !== undefined} loading={save.isPending} onClick={() => save.mutate(revision ?? agent.revision)}>{t('define.saveDraft')}</Button>
        <Button variant={changed ? 'default' : 'filled'} disabled={changed} onClick={() => setPublishing(true)}>{t('tools.publishMenu')}</Button>
      </Group>
      {isConflict(failure)
        ? <Conflict agent={agent} mine={form === 'yaml' ? text : toYaml(source.doc)} onTakeTheirs={discard} onKeepMine={(expected) => save.mutate(expected)} />
        : Boolean(failure) && <ErrorPanel error={failure} />}
      <AgentEditor draft={draft.value} onChange={(next) => draft.set({ ...next, revision: revision ?? agent.revision })} isNew={false} />
      {publishing && <PublishDialog agent={agent} onClose={() => setPublishing(false)} />}
    </Stack>
  );
}

/** The definition for those who may not change it. */
export function ReadAgent({ agent }: { agent: Agent }) {
  const t = useT();
  const [form, setForm] = useState<AgentSourceForm>('yaml');
  const text = useMemo(() => write(definitionOf(agent), form), [agent, form]);
  return (
    <Stack>
      <SegmentedControl aria-label={t('define.source')} value={form} onChange={(next) => setForm(next as AgentSourceForm)} data={[{ value: 'yaml', label: 'YAML' }, { value: 'json', label: 'JSON' }]} style={{ alignSelf: 'flex-start' }} />
      <Editor readOnly language={form} label={t('define.source')} value={text} maxHeight="65vh" />
    </Stack>
  );
}
