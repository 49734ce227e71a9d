import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { sourceQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { SourceForm, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { Editor } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { RestoredNote } from '@/parts/form-fields';
import { Loading } from '@/parts/page';
import { DefinitionEditor } from './definition-editor';
import { PublishDialog } from './tool-actions';

function EditDefinition({ tool, stored, form }: { tool: Tool; stored: string; form: SourceForm }) {
  const t = useT();
  const ref = toolRef(tool);
  const draft = useDraft(`tool.${ref}.${form}`, stored);
  const [publishing, setPublishing] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const save = useAction(() => tools.update(ref, draft.value, form), {
    invalidates: [keys.tools], failed: setFailure,
    done: () => { draft.clear(); setFailure(undefined); notify(t('define.saved')); },
  });
  const changed = draft.isDirty && draft.value !== stored;
  return (
    <Stack>
      <RestoredNote at={changed ? draft.restoredAt : undefined} onDiscard={draft.clear} />
      <Group gap="sm" justify="flex-end">
        {changed && <Button variant="subtle" color="gray" onClick={draft.clear}>{t('common.discard')}</Button>}
        <Button variant={changed ? 'filled' : 'default'} disabled={!changed} loading={save.isPending} onClick={() => save.mutate(undefined)}>{t('define.saveDraft')}</Button>
        <Button variant={changed ? 'default' : 'filled'} disabled={changed} onClick={() => setPublishing(true)}>{t('tools.publishMenu')}</Button>
      </Group>
      {Boolean(failure) && <ErrorPanel error={failure} />}
      <DefinitionEditor name={ref} text={draft.value} form={form} onChange={draft.set} isNew={false} />
      <PublishDialog tool={tool} opened={publishing} onClose={() => setPublishing(false)} />
    </Stack>
  );
}

function ReadDefinition({ tool }: { tool: Tool }) {
  const t = useT();
  const [format, setFormat] = useState<SourceForm>('yaml');
  const { data, error } = useQuery(sourceQuery(toolRef(tool), format));
  return (
    <Stack>
      {tool.built_in ? <Text c="dimmed">{t('define.builtIn')}</Text> : <PermissionNote needs="editor" />}
      <SegmentedControl value={format} onChange={(next) => setFormat(next as SourceForm)} data={['yaml', 'json']} style={{ alignSelf: 'flex-start' }} />
      {error ? <ErrorPanel error={error} /> : data ? <Editor readOnly language={format} label={t('define.source')} value={data.text} maxHeight="65vh" /> : <Loading />}
    </Stack>
  );
}

export function DefinitionPanel({ tool }: { tool: Tool }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const isNarrow = useMediaQuery('(max-width: 48em)');
  const isReadOnly = tool.built_in || tool.tool_type === 'mcp' || !mayEdit;
  const { data, error, refetch } = useQuery({ ...sourceQuery(toolRef(tool)), enabled: !isReadOnly });
  if (isReadOnly) return <ReadDefinition tool={tool} />;
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <>
      {isNarrow && <Text size="xs" c="dimmed" mb="sm">{t('define.wideHint')}</Text>}
      <EditDefinition key={data.text} tool={tool} stored={data.text} form={data.form} />
    </>
  );
}
