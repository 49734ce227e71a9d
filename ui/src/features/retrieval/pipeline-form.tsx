/** The settings of a pipeline. */
import { Button, Group, NumberInput, Select, SimpleGrid, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '@/api/error';
import { credentialsQuery } from '@/api/queries';
import { pipelineKeys, pipelines } from '@/api/retrieval';
import type { Pipeline, PipelineFields } from '@/api/retrieval-types';
import type { Problem } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { Fold, problemAt } from '@/parts/form-fields';

const NEW: PipelineFields = { slug: '', name: '', description: '', chunking: { size: 300, unit: 'tokens', overlap: 40 }, embedding: null };

export function fieldsOf({ slug, name, description, chunking, embedding, language }: PipelineFields): PipelineFields {
  return { slug, name, description, chunking, embedding, ...(language ? { language } : {}) };
}

export function PipelineForm({ known, onDone, onCancel }: { known?: Pipeline; onDone: (pipeline: Pipeline) => void; onCancel?: () => void }) {
  const t = useT();
  const [fields, setFields] = useState<PipelineFields>(() => fieldsOf(known ?? NEW));
  const [failure, setFailure] = useState<unknown>();
  const credentials = (useQuery(credentialsQuery).data ?? []).map((each) => each.name);
  const set = (change: Partial<PipelineFields>) => setFields({ ...fields, ...change });
  const { chunking, embedding } = fields;
  const save = useAction(() => (known ? pipelines.update(known.slug, fields) : pipelines.create({ ...fields, name: fields.name || fields.slug })), {
    invalidates: [pipelineKeys.all], failed: setFailure, done: (pipeline) => { setFailure(undefined); notify(known ? t('common.saved') : t('define.created', { name: pipeline.name })); onDone(pipeline); },
  });
  const problems = failure instanceof ApiError && Array.isArray(failure.details['problems']) ? (failure.details['problems'] as Problem[]) : [];
  const at = (field: string) => problemAt(problems, field);
  const cutsAnew = known !== undefined && (JSON.stringify(known.chunking) !== JSON.stringify(chunking) || JSON.stringify(known.embedding) !== JSON.stringify(embedding));
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput label={t('agents.slug')} description={known ? undefined : t('retrieval.slugHelp')} required pattern="[a-z0-9][a-z0-9_\-]*" disabled={known !== undefined} value={fields.slug} error={at('slug')} onChange={(event) => set({ slug: event.currentTarget.value })} data-autofocus={known ? undefined : true} />
          <TextInput label={t('common.name')} description={known ? undefined : t('agents.nameHelp')} value={fields.name} error={at('name')} onChange={(event) => set({ name: event.currentTarget.value })} />
        </SimpleGrid>
        <Textarea label={t('common.description')} description={t('retrieval.descriptionHelp')} autosize minRows={1} value={fields.description} error={at('description')} onChange={(event) => set({ description: event.currentTarget.value })} />
        <Fold label={t('retrieval.chunking')} startOpen={at('chunking') !== undefined}>
          <Text size="xs" c="dimmed">{t('retrieval.chunkingHelp')}</Text>
          <SimpleGrid cols={{ base: 2, xs: 4 }}>
            <NumberInput label={t('workspaces.size')} min={16} max={16_000} value={chunking.size} error={at('chunking.size')} onChange={(next) => set({ chunking: { ...chunking, size: typeof next === 'number' ? next : 300 } })} />
            <Select label={t('retrieval.unit')} allowDeselect={false} data={(['tokens', 'characters'] as const).map((value) => ({ value, label: t(`retrieval.unit.${value}`) }))} value={chunking.unit} onChange={(next) => set({ chunking: { ...chunking, unit: next === 'characters' ? 'characters' : 'tokens' } })} />
            <NumberInput label={t('retrieval.overlap')} min={0} max={8000} value={chunking.overlap} error={at('chunking.overlap')} onChange={(next) => set({ chunking: { ...chunking, overlap: typeof next === 'number' ? next : 0 } })} />
            <Select label={t('retrieval.language')} placeholder={t('retrieval.detected')} clearable data={(['english', 'german'] as const).map((value) => ({ value, label: t(`retrieval.language.${value}`) }))} value={fields.language ?? null} onChange={(next) => set({ language: next === 'english' || next === 'german' ? next : undefined })} />
          </SimpleGrid>
        </Fold>
        <Switch label={t('retrieval.embedding')} description={t('retrieval.embeddingHelp')} checked={embedding !== null} onChange={(event) => set({ embedding: event.currentTarget.checked ? { model: 'text-embedding-3-small', base_url: 'https://api.openai.com/v1' } : null })} />
        {embedding && (
          <SimpleGrid cols={{ base: 1, xs: 2 }} pl="lg">
            <TextInput label={t('agents.modelName')} required value={embedding.model} error={at('embedding.model')} onChange={(event) => set({ embedding: { ...embedding, model: event.currentTarget.value } })} />
            <TextInput label={t('agents.baseUrl')} required value={embedding.base_url} error={at('embedding.base_url')} onChange={(event) => set({ embedding: { ...embedding, base_url: event.currentTarget.value } })} />
            <Select label={t('agents.credential')} clearable searchable data={[...new Set([...credentials, ...(embedding.credential ? [embedding.credential] : [])])]} value={embedding.credential ?? null} error={at('embedding.credential')}
              onChange={(next) => { const { credential: _, ...rest } = embedding; set({ embedding: next ? { ...rest, credential: next } : rest }); }} />
            <NumberInput label={t('retrieval.dimensions')} min={1} max={16_384} placeholder={t('tools.defaultTimeout')} value={embedding.dimensions ?? ''} error={at('embedding.dimensions')}
              onChange={(next) => { const { dimensions: _, ...rest } = embedding; set({ embedding: typeof next === 'number' ? { ...rest, dimensions: next } : rest }); }} />
          </SimpleGrid>
        )}
        {cutsAnew && <Text c="var(--haft-warn)">{t('retrieval.readsAnew')}</Text>}
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end">{onCancel && <Button variant="default" onClick={onCancel}>{t('common.cancel')}</Button>}<Button type="submit" loading={save.isPending}>{t(known ? 'common.save' : 'retrieval.create')}</Button></Group>
      </Stack>
    </form>
  );
}
