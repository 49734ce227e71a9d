import { Button, Group, Select, SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { bundlesQuery, sourceQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { JsonObject, SourceForm } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { notify, useAction } from '@/parts/feedback';
import { RestoredNote } from '@/parts/form-fields';
import { Content, Page } from '@/parts/page';
import classes from '@/parts/parts.module.css';
import { useUrlState, type UrlState } from '@/parts/url-state';
import { DefinitionEditor } from './definition-editor';
import { IMPLEMENTATIONS, implementationSpec } from './implementations';
import { readSource, toYaml, writeSource } from './source';

const SKILL = '---\nname: my-tool\ndescription: What it does, and when to use it\nruntime: bash\nparameters:\n  type: object\n  properties:\n    who: { type: string, description: Who to greet }\n  required: [who]\n---\necho "Hello, $who"\n';

interface NewDraft {
  text: string;
  form: SourceForm;
  bundle: string;
}

/** What an address can choose ahead: `?type=rag_retrieval&pipeline=handbook`. */
const CHOSEN: Record<string, string> = { agent: 'target_agent_slug', pipeline: 'pipeline_id', artifact: 'artifact_id' };

function startText(type: string, form: SourceForm, url: UrlState = {}): string {
  if (form === 'skill') return SKILL;
  const template = structuredClone(implementationSpec(type)?.template ?? {});
  for (const [name, key] of Object.entries(CHOSEN)) {
    const value = url[name];
    if (value !== undefined && key in (template['implementation'] as JsonObject)) (template['implementation'] as JsonObject)[key] = value;
  }
  const doc: JsonObject = { name: 'my-tool', description: 'What it does, and when to use it', ...template };
  return form === 'json' ? `${JSON.stringify(doc, null, 2)}\n` : toYaml(doc);
}

function ChooseType({ onChoose }: { onChoose: (type: string) => void }) {
  const t = useT();
  return (
    <Stack>
      <Text c="dimmed">{t('define.choose')}</Text>
      <div className={classes.cards}>
        {IMPLEMENTATIONS.map((spec) => (
          <button key={spec.type} type="button" className={classes.cardButton} onClick={() => onChoose(spec.type)}>
            <Text fw={600}>{t(spec.label)}</Text><Text size="xs" c="dimmed">{t(spec.hint)}</Text>
          </button>
        ))}
      </div>
    </Stack>
  );
}

export function NewToolPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const type = url['type'] ?? '';
  const bundles = useQuery(bundlesQuery).data ?? [];
  const draft = useDraft<NewDraft>('new-tool', { text: startText(type, 'yaml', url), form: 'yaml', bundle: url['bundle'] ?? '' });
  const original = useQuery({ ...sourceQuery(url['from'] ?? ''), enabled: url['from'] !== undefined }).data;
  const [failure, setFailure] = useState<unknown>();
  const { set } = draft;
  useEffect(() => {
    if (!original) return;
    const name = readSource(original.text, original.form).doc['name'];
    set({ text: writeSource(original.text, original.form, ['name'], `${String(name)}-copy`), form: original.form, bundle: '' });
    setUrl({ from: undefined, type: 'copy' });
  }, [original, set, setUrl]);
  const { text, form, bundle } = draft.value;
  const create = useAction(() => tools.create(text, form, bundle || undefined), {
    invalidates: [keys.tools, keys.bundles], failed: setFailure,
    done: (tool) => {
      draft.clear();
      notify(t('define.created', { name: tool.name }));
      void navigate({ to: '/tools/$ref', params: { ref: toolRef(tool) } as never, search: { tab: 'try' } as never });
    },
  });
  if (!mayEdit) return <Page title={t('tools.new')}><Content><PermissionNote needs="editor" /></Content></Page>;
  const started = type !== '' || draft.isDirty;
  const changeForm = (next: SourceForm) => {
    const { doc, error } = readSource(text, form);
    const converted = error === undefined && next !== 'skill' && form !== 'skill' ? (next === 'json' ? `${JSON.stringify(doc, null, 2)}\n` : toYaml(doc)) : startText(type || 'script', next);
    draft.set({ text: converted, form: next, bundle });
  };
  const own = bundles.filter((item) => item.kind === 'user' && !item.soft_deleted_at).map((item) => item.slug);
  return (
    <Page title={t('tools.new')} primary={started && <Button loading={create.isPending} onClick={() => create.mutate(undefined)}>{t('define.create')}</Button>}>
      <Content>
        {!started ? <ChooseType onChoose={(chosen) => { set({ text: startText(chosen, 'yaml'), form: 'yaml', bundle }); setUrl({ type: chosen }, { push: true }); }} /> : (
          <Stack>
            <RestoredNote at={draft.restoredAt} onDiscard={() => { draft.clear(); setUrl({ type: undefined }); }} />
            <Group gap="sm" align="flex-end">
              <Select label={t('tools.bundle')} data={[...new Set(['user-created', ...own])]} value={bundle || 'user-created'} allowDeselect={false} onChange={(next) => draft.set({ text, form, bundle: next === 'user-created' ? '' : (next ?? '') })} />
              <SegmentedControl aria-label={t('define.source')} value={form} onChange={(next) => changeForm(next as SourceForm)} data={[{ value: 'yaml', label: 'YAML' }, { value: 'json', label: 'JSON' }, { value: 'skill', label: '.skill' }]} />
              <Button variant="subtle" color="gray" onClick={() => { draft.clear(); setUrl({ type: undefined }); }}>{t('define.startOver')}</Button>
            </Group>
            {Boolean(failure) && <ErrorPanel error={failure} />}
            <DefinitionEditor name="new" text={text} form={form} onChange={(next) => draft.set({ text: next, form, bundle })} isNew />
          </Stack>
        )}
      </Content>
    </Page>
  );
}
