/** What the page of applications says about one of them. */
import type { Application } from '@/api/types';

/** Who describes an application: a host, or nobody who was checked. */
export function describedBy(application: Pick<Application, 'client_host' | 'client_id'>): { host: string } | 'unverified' {
  return application.client_host === null ? 'unverified' : { host: application.client_host };
}

/** When an application is disconnected if nobody does anything: the end that was chosen, or that of an unused connection. */
export function endOf(application: Pick<Application, 'expires_at' | 'idle_until'>): string | null {
  const ends = [application.expires_at, application.idle_until].filter((end) => end !== null);
  return ends.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0] ?? null;
}

/** Whether a text occurs in what identifies an application. */
export function matches(application: Pick<Application, 'name' | 'destination' | 'client_id' | 'actor'>, text: string): boolean {
  const words = [application.name, application.destination, application.client_id, application.actor?.name ?? ''];
  return words.join(' ').toLowerCase().includes(text.toLowerCase());
}

/** The addresses that somebody entered, one per line or separated by commas or spaces. */
export function redirectUris(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/** The names of the people who have connected a client. */
export function peopleOf(all: readonly Pick<Application, 'client_id' | 'actor'>[], clientId: string): string[] {
  const names = all.filter((one) => one.client_id === clientId).map((one) => one.actor?.name ?? '—');
  return [...new Set(names)].toSorted((a, b) => a.localeCompare(b));
}
