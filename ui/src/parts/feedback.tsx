/** What a person sees after an action: a notice, a notice with undo, an error, a question before. */
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query';
import { createContext, use, useCallback, useMemo, useRef, useState, type ReactNode } from 'react';
import { ApiError } from '@/api/error';
import { useT } from '@/i18n';
import { visibleText } from './format';

export function notify(message: string, undo?: { label: string; run: () => void }) {
  const id = `notice-${Date.now()}-${Math.random()}`;
  notifications.show({
    id,
    withBorder: true,
    autoClose: undo ? 8000 : 3500,
    message: undo ? (
      <Group justify="space-between" wrap="nowrap">
        <Text>{message}</Text>
        <Button variant="subtle" size="compact-xs" onClick={() => { notifications.hide(id); undo.run(); }}>{undo.label}</Button>
      </Group>
    ) : message,
  });
}

export function notifyError(error: unknown, title: string) {
  const requestId = error instanceof ApiError ? error.requestId : undefined;
  notifications.show({
    color: 'red', withBorder: true, autoClose: 9000, title,
    message: visibleText((error instanceof Error ? error.message : String(error)).slice(0, 600)) + (requestId ? ` (${requestId})` : ''),
  });
}

interface ActionOptions<A, R> {
  /** Keys to read again. */
  invalidates?: readonly (readonly unknown[])[];
  done?: (result: R, input: A) => void;
  /** Handles the error itself; otherwise a notice shows it. */
  failed?: (error: unknown) => void;
}

/** A write: reads the affected data again and shows a failure. */
export function useAction<A, R>(run: (input: A) => Promise<R>, options: ActionOptions<A, R> = {}): UseMutationResult<R, Error, A> {
  const queries = useQueryClient();
  const t = useT();
  return useMutation<R, Error, A>({
    mutationFn: run,
    onSuccess: (result, input) => options.done?.(result, input),
    onError: (error) => (options.failed ? options.failed(error) : notifyError(error, t('common.failed'))),
    onSettled: () => {
      for (const key of options.invalidates ?? []) void queries.invalidateQueries({ queryKey: key });
    },
  });
}

interface Question {
  title: string;
  body?: ReactNode;
  confirm: string;
  danger?: boolean;
  /** The text to type as confirmation. */
  typed?: string;
}

type Ask = (question: Question) => Promise<boolean>;
const AskContext = createContext<Ask>(() => Promise.resolve(false));
export const useAsk = (): Ask => use(AskContext);

export function AskProvider({ children }: { children: ReactNode }) {
  const t = useT();
  const [question, setQuestion] = useState<Question>();
  const [typed, setTyped] = useState('');
  const answer = useRef<(yes: boolean) => void>(() => undefined);
  const ask = useCallback<Ask>((next) => {
    setTyped('');
    setQuestion(next);
    return new Promise((resolve) => { answer.current = resolve; });
  }, []);
  const finish = (yes: boolean) => {
    setQuestion(undefined);
    answer.current(yes);
  };
  const value = useMemo(() => ask, [ask]);
  return (
    <AskContext value={value}>
      {children}
      <Modal opened={question !== undefined} onClose={() => finish(false)} title={<Text fw={600} size="md">{question?.title}</Text>} size="md">
        <form onSubmit={(event) => { event.preventDefault(); finish(true); }}>
          <Stack>
            {question?.body && <Text component="div">{question.body}</Text>}
            {question?.typed && (
              <TextInput label={t('common.typeToConfirm', { name: question.typed })} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} data-autofocus />
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={() => finish(false)}>{t('common.cancel')}</Button>
              <Button type="submit" color={question?.danger ? 'red.8' : undefined} disabled={question?.typed !== undefined && typed !== question.typed}
                data-autofocus={question?.typed === undefined ? true : undefined}>
                {question?.confirm}
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
    </AskContext>
  );
}
