import type { WebhookEvent } from '@/api/types';

/** The events that a webhook can subscribe to; `webhook.test` is sent on request only. */
export const WEBHOOK_EVENTS: WebhookEvent[] = ['call.finished', 'run.finished', 'approval.requested', 'approval.decided', 'approval.expired', 'approval.cancelled'];

/** The patch of the events: nothing if the same ones are chosen, whatever their order. */
export function changedEvents(before: WebhookEvent[], after: WebhookEvent[]): { events?: WebhookEvent[] } {
  const isSame = before.length === after.length && before.every((event) => after.includes(event));
  return isSame ? {} : { events: after };
}
