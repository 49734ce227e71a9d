/** Fields that choose an agent, a pipeline or a code artifact. */
import { Anchor, Autocomplete, NumberInput, Select, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ArtifactInput } from '@/api/artifact-types';
import { agentsQuery } from '@/api/agents';
import { artifactQuery, artifactsQuery, artifactVersionsQuery } from '@/api/artifacts';
import { pipelinesQuery } from '@/api/retrieval';
import type { JsonObject } from '@/api/types';
import { useT } from '@/i18n';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import type { Parameter } from './source';

interface ReferenceProps {
  label: string;
  description: string | undefined;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

export function AgentField({ timeout, onTimeout, ...props }: ReferenceProps & { timeout: number | undefined; onTimeout: (ms: number | undefined) => void }) {
  const t = useT();
  const { data } = useQuery(agentsQuery);
  const chosen = data?.find((agent) => agent.slug === props.value || agent.id === props.value);
  const isUnknown = data !== undefined && props.value !== '' && chosen === undefined;
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Autocomplete label={props.label} description={props.description} withAsterisk value={props.value} data={(data ?? []).map((agent) => agent.slug)} limit={50} error={props.error ?? (isUnknown ? t('impl.unknownAgent') : undefined)} onChange={props.onChange}
          renderOption={({ option }) => <div><Text>{visibleText(option.value)}</Text><Text size="xs" c="dimmed" lineClamp={1}>{visibleText(data?.find((agent) => agent.slug === option.value)?.description ?? '')}</Text></div>} />
        <NumberInput label={t('impl.agentTimeout')} description={t('impl.agentTimeout.help')} min={1} thousandSeparator value={timeout === undefined ? '' : timeout / 1000} onChange={(next) => onTimeout(typeof next === 'number' ? Math.round(next * 1000) : undefined)} />
      </SimpleGrid>
      {chosen && chosen.status !== 'published' && <Text size="xs" c="var(--haft-warn)">{t('impl.agentDraft')} <PageLink to={`/agents/${chosen.slug}`}>{visibleText(chosen.name)}</PageLink></Text>}
      {data?.length === 0 && <Text size="xs" c="dimmed">{t('agents.empty')}. <PageLink to="/agents/new">{t('agents.create')}</PageLink></Text>}
    </>
  );
}

export function PipelineField(props: ReferenceProps) {
  const t = useT();
  const { data } = useQuery(pipelinesQuery);
  const chosen = data?.find((pipeline) => pipeline.slug === props.value || pipeline.id === props.value);
  const isUnknown = data !== undefined && props.value !== '' && chosen === undefined;
  return (
    <>
      <Autocomplete label={props.label} description={props.description} withAsterisk value={props.value} data={(data ?? []).map((pipeline) => pipeline.slug)} limit={50} error={props.error ?? (isUnknown ? t('impl.unknownPipeline') : undefined)} onChange={props.onChange}
        renderOption={({ option }) => { const pipeline = data?.find((each) => each.slug === option.value); return <div><Text>{visibleText(option.value)}</Text><Text size="xs" c="dimmed">{t('retrieval.documentCount', { n: pipeline?.documents ?? 0 })} · {t(`status.${pipeline?.status ?? 'draft'}`)}</Text></div>; }} />
      {chosen && chosen.status !== 'published' && <Text size="xs" c="var(--haft-warn)">{t('impl.pipelineDraft')} <PageLink to={`/retrieval/${chosen.slug}`}>{visibleText(chosen.name)}</PageLink></Text>}
      {data?.length === 0 && <Text size="xs" c="dimmed">{t('retrieval.empty')}. <PageLink to="/retrieval" search={{ new: '1' }}>{t('retrieval.create')}</PageLink></Text>}
    </>
  );
}

/** The arguments of a tool that runs an artifact: its inputs. */
export function inputParameters(inputs: readonly ArtifactInput[]): Parameter[] {
  return inputs.map((input) => ({ name: input.name, type: input.type ?? 'any', description: input.description ?? '', required: input.required ?? false, rest: (input.default === undefined ? {} : { default: input.default }) as JsonObject }));
}

interface ArtifactProps extends ReferenceProps {
  version: string;
  onVersion: (version: string | undefined) => void;
  /** Takes the inputs of the artifact as the arguments of the tool. */
  onInputs: (parameters: Parameter[]) => void;
  /** The names of the arguments that the tool has now. */
  parameters: readonly string[] | undefined;
}

export function ArtifactField({ version, onVersion, onInputs, parameters, ...props }: ArtifactProps) {
  const t = useT();
  const { data } = useQuery(artifactsQuery);
  const chosen = data?.find((artifact) => artifact.slug === props.value || artifact.id === props.value);
  const versions = useQuery({ ...artifactVersionsQuery(chosen?.id ?? ''), enabled: chosen !== undefined }).data ?? [];
  const artifact = useQuery({ ...artifactQuery(chosen?.slug ?? ''), enabled: chosen !== undefined }).data;
  const isUnknown = data !== undefined && props.value !== '' && chosen === undefined;
  const inputs = artifact?.inputs ?? [];
  const differs = artifact !== undefined && parameters !== undefined && (inputs.length !== parameters.length || inputs.some((input) => !parameters.includes(input.name)));
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Autocomplete label={props.label} description={props.description} withAsterisk value={props.value} data={(data ?? []).map((each) => each.slug)} limit={50} error={props.error ?? (isUnknown ? t('impl.unknownArtifact') : undefined)} onChange={props.onChange}
          renderOption={({ option }) => { const each = data?.find((other) => other.slug === option.value); return <div><Text>{visibleText(option.value)}</Text><Text size="xs" c="dimmed" lineClamp={1}>{[each && t(`artifacts.runtime.${each.runtime}`), visibleText(each?.description ?? '')].filter(Boolean).join(' · ')}</Text></div>; }} />
        <Select label={t('impl.artifactVersion')} description={t('impl.artifactVersion.help')} allowDeselect={false} value={version} disabled={chosen === undefined && version === ''} onChange={(next) => onVersion(next || undefined)}
          data={[{ value: '', label: t('impl.newestVersion') }, ...[...new Set([...versions.map((each) => String(each.version)), ...(version ? [version] : [])])].map((each) => ({ value: each, label: t('artifacts.versionN', { n: each }) }))]} />
      </SimpleGrid>
      {differs && <Text size="xs" c="var(--haft-warn)">{t('impl.inputsDiffer', { names: inputs.map((input) => input.name).join(', ') || '—' })} <Anchor component="button" type="button" size="xs" onClick={() => onInputs(inputParameters(inputs))}>{t('impl.takeInputs')}</Anchor></Text>}
      {chosen && <Text size="xs"><PageLink to={`/artifacts/${chosen.slug}`}>{t('impl.openArtifact')}</PageLink></Text>}
      {data?.length === 0 && <Text size="xs" c="dimmed">{t('artifacts.empty')}. <PageLink to="/artifacts/new">{t('artifacts.create')}</PageLink></Text>}
    </>
  );
}
