/** A question to the pipeline, and what it finds. */
import { Button, Group, NumberInput, Progress, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { pipelines } from '@/api/retrieval';
import type { Hit, Pipeline, RetrievalQuery } from '@/api/retrieval-types';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { Fold } from '@/parts/form-fields';
import { oneLine, visibleText } from '@/parts/format';
import { useUrlState } from '@/parts/url-state';
import { readFilter, share, splitMarked } from './query';
import classes from './retrieval.module.css';

const number = (value: number) => value.toLocaleString(undefined, { maximumFractionDigits: 4 });

function HitCard({ hit, rank, hits, query }: { hit: Hit; rank: number; hits: Hit[]; query: string }) {
  const t = useT();
  const { position } = hit;
  const place = [
    position.page && t('retrieval.page', { n: position.page }), position.line && t('tools.line', { n: position.line }), t('retrieval.bytes', { from: position.start, to: position.end }),
  ].filter(Boolean).join(' · ');
  return (
    <article className={classes.hit} aria-label={`${rank}. ${hit.document}`}>
      <Group justify="space-between" gap="sm" wrap="nowrap" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Text fw={600} style={{ overflowWrap: 'anywhere' }}>{rank}. <Mono>{visibleText(hit.document)}</Mono></Text>
          <Text size="xs" c="dimmed">{hit.headings.length > 0 && `${visibleText(hit.headings.join(' › '))} · `}{place}</Text>
        </div>
        <Stack gap={2} miw={90} align="flex-end">
          <Text fw={600} style={{ fontVariantNumeric: 'tabular-nums' }} title={t('retrieval.scoreHelp')}>{number(hit.score)}</Text>
          <Progress value={share(hit, hits) * 100} size="xs" w={90} aria-label={t('retrieval.score')} />
        </Stack>
      </Group>
      {/* The box scrolls, so it must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <p className={classes.hitText} tabIndex={0}>{splitMarked(visibleText(hit.text), query).map((piece, index) => (index % 2 === 1 ? <mark key={index} className={classes.mark}>{piece}</mark> : piece))}</p>
      <Group gap={4} mt="sm">
        {hit.bm25 !== undefined && hit.bm25 !== null && <Chip title={t('retrieval.bm25Help')}>BM25 {number(hit.bm25)}</Chip>}
        {hit.cosine !== undefined && hit.cosine !== null && <Chip title={t('retrieval.cosineHelp')}>{t('retrieval.cosine')} {number(hit.cosine)}</Chip>}
        {Object.entries(hit.metadata).map(([key, value]) => <Chip key={key}>{visibleText(key)}: {oneLine(value, 60)}</Chip>)}
      </Group>
    </article>
  );
}

export function TryQuery({ pipeline }: { pipeline: Pipeline }) {
  const t = useT();
  const mayCall = useMay('caller');
  const [url, setUrl] = useUrlState();
  const [text, setText] = useState(url['query'] ?? '');
  const [topK, setTopK] = useState(5);
  const [mode, setMode] = useState<NonNullable<RetrievalQuery['mode']>>('hybrid');
  const [filterText, setFilterText] = useState('');
  const [asked, setAsked] = useState('');
  const ask = useMutation({ mutationFn: (question: RetrievalQuery) => pipelines.query(pipeline.slug, question) });
  const filter = readFilter(filterText);
  const hits = ask.data;
  if (!mayCall) return <PermissionNote needs="caller" />;
  const submit = () => {
    const query = text.trim();
    if (query === '' || 'error' in filter) return;
    setAsked(query);
    setUrl({ query });
    ask.mutate({ query, top_k: topK, ...(filter.filter ? { filter: filter.filter } : {}), ...(pipeline.embedding ? { mode } : {}) });
  };
  return (
    <Stack>
      <form onSubmit={(event) => { event.preventDefault(); submit(); }}>
        <Stack gap="sm">
          <Group gap="sm" align="flex-end" wrap="nowrap">
            <TextInput flex={1} label={t('retrieval.question')} placeholder={t('retrieval.questionHint')} value={text} onChange={(event) => setText(event.currentTarget.value)} leftSection={<IconSearch size={14} />} />
            <Button type="submit" loading={ask.isPending} disabled={text.trim() === '' || 'error' in filter}>{t('retrieval.search')}</Button>
          </Group>
          <Group gap="sm" align="flex-end">
            <NumberInput w={110} label={t('retrieval.topK')} min={1} max={100} value={topK} onChange={(next) => setTopK(typeof next === 'number' ? next : 5)} />
            {pipeline.embedding && <SegmentedControl aria-label={t('retrieval.mode')} value={mode} onChange={(next) => setMode(next as typeof mode)} data={(['hybrid', 'bm25', 'embedding'] as const).map((value) => ({ value, label: t(`retrieval.mode.${value}`) }))} />}
          </Group>
          <Fold label={t('retrieval.metadataFilter')}>
            <Textarea aria-label={t('retrieval.metadataFilter')} description={t('retrieval.filterHelp')} placeholder="team = core" autosize minRows={1} maxRows={8} value={filterText} error={'error' in filter ? t('retrieval.filterWrong', { text: filter.error }) : undefined} onChange={(event) => setFilterText(event.currentTarget.value)} />
          </Fold>
        </Stack>
      </form>
      {ask.error && <ErrorPanel error={ask.error} onRetry={submit} />}
      <div aria-live="polite">
        {hits && (hits.length === 0 ? <EmptyState title={t('retrieval.noHits')}>{t('retrieval.noHitsHint')}</EmptyState> : (
          <Stack gap="sm">
            <Text c="dimmed">{t('retrieval.hits', { n: hits.length })}</Text>
            {hits.map((hit, index) => <HitCard key={hit.chunk_id} hit={hit} rank={index + 1} hits={hits} query={asked} />)}
          </Stack>
        ))}
        {!hits && !ask.isPending && !ask.error && <Text c="dimmed" ta="center" py="xl">{t('retrieval.tryHint')}</Text>}
      </div>
    </Stack>
  );
}
