import { Button, Group, Stack, Stepper, Text, TextInput } from '@mantine/core';
import { IconBraces, IconCalculator, IconDatabase, IconMail, IconMessage, IconSearch, IconSun, IconWorld } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { stringify } from 'yaml';
import { credentials, tools } from '@/api/actions';
import { runTool, type RunResult } from '@/api/invoke';
import { keys } from '@/api/keys';
import { toolRef } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { JsonObject, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { Content, Guided, Page } from '@/parts/page';
import classes from '@/parts/parts.module.css';
import { ResultView } from '@/parts/result-view';
import type { Schema } from '@/parts/schema';
import { ArgumentsInput } from '@/parts/schema-form';
import { SecretField } from '@/parts/secret-field';
import { useUrlState } from '@/parts/url-state';
import { RECIPES, type Recipe } from './recipes';

const ICONS = { sun: IconSun, message: IconMessage, calculator: IconCalculator, braces: IconBraces, database: IconDatabase, mail: IconMail, search: IconSearch, world: IconWorld };

function Gallery({ onChoose }: { onChoose: (id: string) => void }) {
  const t = useT();
  return (
    <Stack>
      <Text c="dimmed">{t('recipe.intro')}</Text>
      <div className={classes.cards}>{RECIPES.map((recipe) => {
        const Shape = ICONS[recipe.icon];
        return <button key={recipe.id} type="button" className={classes.cardButton} onClick={() => onChoose(recipe.id)}><Group gap="sm" wrap="nowrap" align="flex-start"><Shape size={20} stroke={1.6} aria-hidden /><div><Text fw={600}>{t(recipe.title)}</Text><Text size="xs" c="dimmed">{t(recipe.hint)}</Text></div></Group></button>;
      })}</div>
    </Stack>
  );
}

function TryStep({ tool, example }: { tool: Tool; example: JsonObject }) {
  const t = useT();
  const session = useSession();
  const [args, setArgs] = useState(example);
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const [result, setResult] = useState<RunResult>();
  const run = useAction(() => runTool({ ref: toolRef(tool), args, asTest: (tool.requires_confirmation || tool.policy === 'elevated') && !session.elevated, signal: new AbortController().signal, onProgress: () => undefined }), { done: setResult, invalidates: [keys.calls] });
  return (
    <Stack>
      <ArgumentsInput schema={(tool.input_schema ?? {}) as Schema} value={args} onChange={setArgs} violations={[]} mode={mode} onMode={setMode} />
      <Group><Button loading={run.isPending} onClick={() => run.mutate(undefined)}>{t('try.run')}</Button></Group>
      {result?.kind === 'rejected' && <ErrorPanel error={result.error} />}
      {result?.kind === 'call' && <ResultView call={result.call} />}
    </Stack>
  );
}

function Builder({ recipe, onBack }: { recipe: Recipe; onBack: () => void }) {
  const t = useT();
  const navigate = useNavigate();
  const mayAdmin = useMay('admin');
  const [answers, setAnswers] = useState<Record<string, string>>(() => Object.fromEntries(recipe.questions.map((question) => [question.key, question.value])));
  const [tool, setTool] = useState<Tool>();
  const text = useMemo(() => stringify(recipe.build(answers), { lineWidth: 0 }), [recipe, answers]);
  const create = useAction(async () => {
    for (const question of recipe.questions) {
      const value = answers[question.key];
      if (question.secret && value && mayAdmin) await credentials.put(question.secret, { value });
    }
    return tools.create(text, 'yaml');
  }, { invalidates: [keys.tools, keys.credentials], done: (created) => { setTool(created); notify(t('define.created', { name: created.name })); } });
  return (
    <Guided preview={<><SectionTitle>{t('recipe.preview')}</SectionTitle><CodeBlock text={text} maxHeight="32rem" /></>}>
      <Stepper active={tool ? 1 : 0} size="sm" mb="lg"><Stepper.Step label={t('recipe.step.answer')} /><Stepper.Step label={t('recipe.step.try')} /></Stepper>
      {tool ? (
        <Stack><TryStep tool={tool} example={recipe.example} /><Group><Button variant="default" onClick={() => void navigate({ to: '/tools/$ref', params: { ref: toolRef(tool) } as never })}>{t('recipe.openTool')}</Button><Button variant="subtle" onClick={() => void navigate({ to: '/connect' })}>{t('home.connect')}</Button></Group></Stack>
      ) : (
        <form onSubmit={(event) => { event.preventDefault(); create.mutate(undefined); }}>
          <Stack>
            {recipe.questions.map((question) => (question.secret
              ? <div key={question.key}><SecretField label={t(question.label)} value={answers[question.key] ?? ''} onChange={(value) => setAnswers({ ...answers, [question.key]: value })} /><Text size="xs" c="dimmed">{t(mayAdmin ? 'recipe.secretStored' : 'recipe.secretAdmin', { name: question.secret })}</Text></div>
              : <TextInput key={question.key} label={t(question.label)} required value={answers[question.key] ?? ''} onChange={(event) => setAnswers({ ...answers, [question.key]: event.currentTarget.value })} />))}
            <Group><Button variant="default" onClick={onBack}>{t('common.back')}</Button><Button type="submit" loading={create.isPending}>{t('define.create')}</Button></Group>
          </Stack>
        </form>
      )}
    </Guided>
  );
}

export function RecipesPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const recipe = RECIPES.find((item) => item.id === url['recipe']);
  return (
    <Page title={recipe ? t(recipe.title) : t('nav.recipes')}>
      <Content>{!mayEdit ? <PermissionNote needs="editor" /> : recipe ? <Builder key={recipe.id} recipe={recipe} onBack={() => setUrl({ recipe: undefined })} /> : <Gallery onChoose={(id) => setUrl({ recipe: id }, { push: true })} />}</Content>
    </Page>
  );
}
