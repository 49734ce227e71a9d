/** The model of an agent: name, provider, address, key, and how it answers. */
import { Alert, Autocomplete, Group, Input, NumberInput, Select, SimpleGrid, Switch, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { modelsQuery } from '@/api/agents';
import { credentialsQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Json, JsonObject, Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Editor } from '@/parts/editor';
import { asText, Fold, problemAt } from '@/parts/form-fields';
import { PageLink } from '@/parts/links';
import { isScripted } from './definition';

interface ModelProps {
  field: 'model' | 'fallback';
  model: JsonObject;
  problems: Problem[];
  onChange: (key: string, value: Json | undefined) => void;
}

const numberOf = (value: unknown) => (typeof value === 'number' ? value : '');
const orNothing = (next: string | number) => (typeof next === 'number' ? next : undefined);

export function ModelFields({ field, model, problems, onChange }: ModelProps) {
  const t = useT();
  const mayRead = useMay('editor');
  const choices = useQuery(modelsQuery).data;
  const known = choices?.models ?? [];
  const providers = choices?.providers ?? [];
  const credentials = useQuery({ ...credentialsQuery, enabled: mayRead }).data ?? [];
  const at = (key: string) => problemAt(problems, `${field}.${key}`);
  const name = asText(model['name']);
  const chosenProvider = asText(model['provider']);
  const provider = providers.find((each) => each.name === (chosenProvider || (known.find((each_) => each_.name === name)?.provider ?? name.split('/')[0])));
  const credential = asText(model['credential']);
  const names = credentials.map((each) => each.name);
  const isMissing = credential !== '' && names.length > 0 && !names.includes(credential);
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <Autocomplete label={t('agents.modelName')} description={t('agents.modelNameHelp')} withAsterisk value={name} limit={20} data={known.map((each) => each.name)} error={at('name') ?? problems.find((problem) => problem.field === field)?.message} onChange={(next) => onChange('name', next)} />
        <Select label={t('agents.provider')} description={t('agents.providerHelp')} placeholder={t('agents.byName')} data={[...new Set([...providers.map((each) => each.name), ...(chosenProvider ? [chosenProvider] : [])])]} value={chosenProvider || null} clearable searchable error={at('provider')} onChange={(next) => onChange('provider', next ?? undefined)} />
      </SimpleGrid>
      {provider?.requires_key && !provider.has_key && !credential && <Alert color="yellow" variant="light" p="sm"><Text>{t('agents.noKey', { provider: provider.name })} <PageLink to="/credentials" search={{ add: '1' }}>{t('credentials.new')}</PageLink></Text></Alert>}
      {isScripted(model) ? (
        <Input.Wrapper label={t('agents.script')} description={t('agents.scriptHelp')} component="div" labelElement="div" error={at('script')}>
          <Editor label={t('agents.script')} language="yaml" value={asText(model['script'])} minHeight="6rem" maxHeight="20rem" onChange={(next) => onChange('script', next === '' ? undefined : next)} />
        </Input.Wrapper>
      ) : (
        <Select label={t('agents.credential')} description={t('agents.credentialHelp')} placeholder={t('agents.byProvider')} data={[...new Set([...names, ...(credential ? [credential] : [])])]} value={credential || null} clearable searchable nothingFoundMessage={t('credentials.noneFound')}
          error={at('credential') ?? (isMissing ? t('agents.credentialMissing') : undefined)} onChange={(next) => onChange('credential', next ?? undefined)} />
      )}
      <Fold label={t('agents.moreModel')} startOpen={['base_url', 'temperature', 'reasoning', 'max_tokens', 'text_tools'].some((key) => at(key) !== undefined)}>
        <TextInput label={t('agents.baseUrl')} description={t('agents.baseUrlHelp')} value={asText(model['base_url'])} placeholder={provider?.base_url ?? 'https://'} error={at('base_url')} onChange={(event) => onChange('base_url', event.currentTarget.value || undefined)} />
        <SimpleGrid cols={{ base: 1, xs: 3 }}>
          <NumberInput label={t('agents.temperature')} min={0} max={2} step={0.1} decimalScale={2} value={numberOf(model['temperature'])} error={at('temperature')} onChange={(next) => onChange('temperature', orNothing(next))} />
          <Select label={t('agents.reasoning')} placeholder={t('tools.defaultTimeout')} data={(['low', 'medium', 'high'] as const).map((value) => ({ value, label: t(`agents.reasoning.${value}`) }))} value={asText(model['reasoning']) || null} clearable error={at('reasoning')} onChange={(next) => onChange('reasoning', next ?? undefined)} />
          <NumberInput label={t('agents.maxTokens')} min={1} thousandSeparator value={numberOf(model['max_tokens'])} error={at('max_tokens')} onChange={(next) => onChange('max_tokens', orNothing(next))} />
        </SimpleGrid>
        <Group><Switch label={t('agents.textTools')} description={t('agents.textToolsHelp')} checked={model['text_tools'] === true} onChange={(event) => onChange('text_tools', event.currentTarget.checked || undefined)} /></Group>
      </Fold>
    </>
  );
}
