import { notifyManager, QueryObserver } from '@tanstack/react-query';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiError } from '@/api/error';
import { queries } from './queries';

afterEach(() => queries.clear());

/** What a page sees after its data was read once and the second read failed. */
async function afterFailure(status: number) {
  let reads = 0;
  const observer = new QueryObserver(queries, {
    queryKey: ['tool'],
    queryFn: () => {
      reads += 1;
      if (reads > 1) throw new ApiError(status, undefined, 'failed');
      return 'an edited tool';
    },
    retry: false,
  });
  const seen: boolean[] = [];
  // As `useQuery` does: notified in the next task, it reads the result that is current then.
  const stop = observer.subscribe(notifyManager.batchCalls(() => seen.push(observer.getCurrentResult().isError)));
  await observer.refetch();
  await observer.refetch();
  await new Promise((resolve) => { setTimeout(resolve, 0); });
  const result = observer.getCurrentResult();
  stop();
  return { result, wasError: seen.includes(true) };
}

describe('a failed second read', () => {
  it.each([0, 401, 429, 500, 502])('keeps what is shown if the answer is %d', async (status) => {
    const { result, wasError } = await afterFailure(status);
    expect(result.data).toBe('an edited tool');
    expect(result.error).toBeNull();
    expect(wasError).toBe(false);
    expect(result.isStale).toBe(true);
  });

  it.each([403, 404])('is an error if the answer is %d', async (status) => {
    expect((await afterFailure(status)).result.error).toBeInstanceOf(ApiError);
  });
});

it('is an error if nothing was read before', async () => {
  await queries.fetchQuery({ queryKey: ['new'], queryFn: () => { throw new ApiError(0, undefined, 'failed'); }, retry: false }).catch(() => undefined);
  expect(queries.getQueryState(['new'])?.status).toBe('error');
});
